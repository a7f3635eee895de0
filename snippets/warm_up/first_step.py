import torch
from torch import Tensor
from torch.func import functional_call

from snippets.pre_norm_vs_post_norm.decoder import Decoder
from snippets.pre_norm_vs_post_norm.trial import next_token_loss


@torch.no_grad()
def noise_shift(decoder: Decoder, text: Tensor, seed: int) -> float:
    """Relative change of the logits, in %, from 1% noise on the branches.

    The noise is independent in every entry of every branch matrix. The
    decoder keeps its weights.
    """
    generator = torch.Generator().manual_seed(2000 + seed)
    noisy = {}
    for name, weight in decoder.named_parameters():
        if name.endswith(("reader.weight", "writer.weight")):
            noise = torch.empty_like(weight)
            noise.normal_(std=weight.std(), generator=generator)
            noisy[name] = weight + 0.01 * noise
    before = decoder(text)
    change = functional_call(decoder, noisy, text) - before
    return 100 * (change.norm() / before.norm()).item()


def first_adam_step(decoder: Decoder, text: Tensor) -> float:
    """Change of the loss on text by one Adam step, lr 1e-3, no warm-up.

    The decoder is left with the new weights.
    """
    parameters = list(decoder.parameters())
    before = next_token_loss(decoder, text)
    gradients = torch.autograd.grad(before, parameters)
    with torch.no_grad():
        for parameter, g in zip(parameters, gradients, strict=True):
            parameter.sub_(1e-3 * g / (g.abs() + 1e-8))  # (1)!
        return (next_token_loss(decoder, text) - before).item()
