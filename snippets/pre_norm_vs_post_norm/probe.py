# --8<-- [start:probe]
from collections.abc import Callable

import torch
from torch import Tensor, nn

from snippets.pre_norm_vs_post_norm.blocks import PostNormBlock, PreNormBlock
from snippets.rms_norm.reference import RMSNorm

Build = Callable[[nn.Module, nn.Module], Callable[[Tensor], Tensor]]


class Recorder(nn.Module):
    """A sublayer that keeps what it reads and answers with a fixed tensor."""

    def __init__(self, answer: Tensor) -> None:
        super().__init__()
        self.answer = answer

    def forward(self, x: Tensor) -> Tensor:
        self.read = x
        return self.answer


def probe(
    build: Build, norm: nn.Module, x: Tensor, f: Tensor
) -> tuple[str, str]:
    """What the sublayer of a block reads, and what the block makes of f.

    build(sublayer, norm) is the block; x and f are (..., d), f is what the
    sublayer answers. "else" is none of the known forms.
    """
    sublayer = Recorder(f)
    result = build(sublayer, norm)(x)
    reads = {"x": x, "norm(x)": norm(x)}
    results = {
        "x + f": x + f,
        "norm(x + f)": norm(x + f),
        "norm(x) + f": norm(x) + f,
        "x + norm(f)": x + norm(f),
        "f": f,
    }
    return tuple(
        next((k for k, v in known.items() if torch.allclose(v, found)), "else")
        for known, found in ((reads, sublayer.read), (results, result))
    )


# --8<-- [end:probe]


# --8<-- [start:compare]
written = {
    "PostNormBlock": PostNormBlock,
    "PreNormBlock": PreNormBlock,
    "norm(x) + F(norm(x))": lambda f, norm: lambda x: norm(x) + f(norm(x)),
    "x + norm(F(x))": lambda f, norm: lambda x: x + norm(f(x)),
    "x + norm(F(norm(x)))": lambda f, norm: lambda x: x + norm(f(norm(x))),
    "F(norm(x) + x)": lambda f, norm: lambda x: f(norm(x) + x),
}
generator = torch.Generator().manual_seed(0)
x, f = torch.randn(2, 2, 5, 8, generator=generator)
norm = RMSNorm(8)
nn.init.uniform_(norm.gain, 0.5, 1.5, generator=generator)  # (1)!

print("block                   F reads    result")
for name, build in written.items():
    reads, result = probe(build, norm, x, f)
    print(f"{name:<24}{reads:<11}{result}")
# --8<-- [end:compare]
