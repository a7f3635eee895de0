# --8<-- [start:fold]
import torch
from torch import Tensor


def fold(
    weight: Tensor, bias: Tensor | None, gain: Tensor, shift: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """A linear layer that reads the bare norm as this one read the norm.

    weight is (out, d), bias (out,) or None; gain (d,) and shift (d,) or None
    belong to the norm whose output the layer reads:
    W (gain n + shift) + b = (W gain) n + (W shift + b).
    """
    if shift is not None:
        moved = weight @ shift
        bias = moved if bias is None else moved + bias
    return weight * gain, bias


# --8<-- [end:fold]


# --8<-- [start:compare]
generator = torch.Generator().manual_seed(0)
x = torch.randn(100, 64, generator=generator).double()
reader = torch.randn(32, 64, generator=generator).double()
gain = 1 + 0.3 * torch.randn(64, generator=generator).double()
shift = 0.3 * torch.randn(64, generator=generator).double()

bare = torch.nn.functional.layer_norm(x, (64,))
right = (bare * gain + shift) @ reader.T
folded, bias = fold(reader, None, gain, shift)
for name, y in {
    "gain and bias folded": bare @ folded.T + bias,
    "gain alone": bare @ folded.T,
    "neither": bare @ reader.T,
}.items():
    print(f"{name:21} {((y - right).norm() / right.norm()).item():.2f}")
# --8<-- [end:compare]
