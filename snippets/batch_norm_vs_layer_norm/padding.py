# --8<-- [start:MaskedBatchNorm]
import torch
from torch import Tensor

from snippets.batch_norm_vs_layer_norm.norms import (
    BatchNorm,
    LayerNorm,
    normalize,
)


class MaskedBatchNorm(BatchNorm):
    """BatchNorm that leaves padding out of its statistics.

    x is (..., d); mask is (...), bool, True at the tokens that count.
    """

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        mean, var = self.statistics(x[mask])
        return normalize(x, mean, var, self)


# --8<-- [end:MaskedBatchNorm]


# --8<-- [start:compare]
torch.manual_seed(0)
lengths = torch.tensor([3, 12, 5, 8])
real = 1 + 2 * torch.randn(4, 12, 64, dtype=torch.float64)


def pad(length: int) -> tuple[Tensor, Tensor]:
    """The four sequences, filled up with zeros to a length; their mask."""
    mask = torch.arange(length) < lengths[:, None]
    x = torch.zeros(4, length, 64, dtype=torch.float64)
    x[:, :12] = real
    return x * mask[..., None], mask


for length in (12, 48):
    x, mask = pad(length)
    for name, tokens in (("all", x.flatten(end_dim=1)), ("mask", x[mask])):
        print(f"length {length} {name:<4}{len(tokens):>4} tokens", end=" ")
        print(f"mean {tokens.mean():.2f} std {tokens.std():.2f}")

print("first token, padded to 12 and to 48:")
batch_norm, masked = BatchNorm(64), MaskedBatchNorm(64)
layer_norm = LayerNorm(64)
norms = {
    "BatchNorm": lambda x, mask: batch_norm(x),
    "masked BatchNorm": masked,
    "LayerNorm": lambda x, mask: layer_norm(x),
}
for name, norm in norms.items():
    short, long = (norm(*pad(length))[0, 0] for length in (12, 48))
    print(f"  {name:<16} moves by {(short - long).abs().max().item():.2f}")
# --8<-- [end:compare]
