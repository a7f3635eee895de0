# --8<-- [start:through]
import torch
from torch import Tensor

from snippets.rms_norm.reference import rms_norm

LARGEST = {torch.float8_e4m3fn: 448.0, torch.int8: 127.0}


def through(y: Tensor, scale: Tensor | float, dtype: torch.dtype) -> Tensor:
    """y / scale in eight bits and back: what the next matrix reads."""
    low = (y / scale).clamp(-LARGEST[dtype], LARGEST[dtype])
    if dtype == torch.int8:
        low = low.round()
    return low.to(dtype).to(y.dtype) * scale


# --8<-- [end:through]


# --8<-- [start:compare]
def row(y: Tensor) -> Tensor:
    return y.abs().amax(dim=-1, keepdim=True)


d, generator = 256, torch.Generator().manual_seed(0)
stream = 1000 * torch.randn(512, d, generator=generator)
stream[:, 3] *= 30  # one massive feature
gain = 0.5 + torch.rand(d, generator=generator)
gain[5] = 20  # and one large gain
matrix = torch.randn(64, d, generator=generator) / d**0.5
y, n = rms_norm(stream, gain), rms_norm(stream, torch.ones(d))
right = y.double() @ matrix.T.double()
bound = d**0.5 * gain.abs().max()  # no entry of y is larger
ways = {  # what is rounded, the size that its scale maps to the largest number
    "norm, no scale": (y, None),
    "norm, one scale, its bound": (y, bound),
    "norm, one scale, largest seen": (y, y.abs().max()),
    "norm, a scale per row": (y, row(y)),
    "norm, 1.7 times that scale": (y, 1.7 * row(y)),
    "norm, gain in the matrix, per row": (n, row(n)),
    "stream, no scale": (stream, None),
    "stream, a scale per row": (stream, row(stream)),
}
print("relative error                    float8_e4m3  int8")
for name, (what, size) in ways.items():
    cells = []
    for dtype, largest in LARGEST.items():
        read = through(what, 1.0 if size is None else size / largest, dtype)
        if what is n:
            read = read * gain  # (W gain) n = W (gain n)
        elif what is stream:
            read = rms_norm(read, gain)
        found = read @ matrix.T
        cells.append(((found - right).norm() / right.norm()).item())
    print(f"{name:33} {cells[0]:11.2g} {cells[1]:5.2g}")
# --8<-- [end:compare]
