# --8<-- [start:copy_weights]
import torch
from torch import nn

from snippets.pre_norm_vs_post_norm.blocks import PostNormBlock, PreNormBlock
from snippets.pre_norm_vs_post_norm.decoder import Decoder


@torch.no_grad()
def copy_weights(layer: nn.TransformerEncoderLayer, decoder: Decoder) -> None:
    """Copy torch's layer into a decoder of one layer, in place."""
    attention, feed_forward = decoder.blocks
    pairs = (
        (attention.sublayer.reader, layer.self_attn.in_proj_weight),
        (attention.sublayer.writer, layer.self_attn.out_proj.weight),
        (feed_forward.sublayer.reader, layer.linear1.weight),
        (feed_forward.sublayer.writer, layer.linear2.weight),
    )
    for ours, weight in pairs:
        ours.weight.copy_(weight)
        ours.bias.zero_()  # torch's biases are switched off below
    attention.norm.weight.copy_(layer.norm1.weight)
    feed_forward.norm.weight.copy_(layer.norm2.weight)


# --8<-- [end:copy_weights]


# --8<-- [start:agree]
d, heads, time = 32, 4, 7
mask = nn.Transformer.generate_square_subsequent_mask(time).double()
vectors = torch.randn(2, time, d, generator=torch.Generator().manual_seed(0))
vectors = vectors.double().requires_grad_()


def layer_norm(d: int) -> nn.LayerNorm:
    return nn.LayerNorm(d, bias=False)


print("norm_first  block          outputs  gradients")
for norm_first, block in ((False, PostNormBlock), (True, PreNormBlock)):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        d,
        heads,
        dim_feedforward=4 * d,
        dropout=0.0,
        activation="gelu",
        batch_first=True,
        norm_first=norm_first,
        bias=False,
    ).double()
    for norm in (layer.norm1, layer.norm2):
        nn.init.uniform_(norm.weight, 0.5, 1.5)
    decoder = Decoder(d, 1, heads, 2, block, layer_norm).double()
    copy_weights(layer, decoder)

    theirs = layer(vectors, src_mask=mask, is_causal=True)
    ours = nn.Sequential(*decoder.blocks)(vectors)
    slopes = [
        torch.autograd.grad(y.square().sum(), vectors)[0]
        for y in (theirs, ours)
    ]
    same = torch.allclose(theirs, ours, rtol=1e-10, atol=1e-10)
    same_slope = torch.allclose(*slopes, rtol=1e-9, atol=1e-9)
    verdicts = ["equal" if equal else "differ" for equal in (same, same_slope)]
    print(
        f"{norm_first!s:<12}{block.__name__:<15}{verdicts[0]:<9}{verdicts[1]}"
    )
# --8<-- [end:agree]
