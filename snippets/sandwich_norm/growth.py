import torch
from torch import nn

from snippets.rms_norm.reference import rms_norm
from snippets.sandwich_norm.blocks import SandwichNorm
from snippets.sandwich_norm.stacks import PreNorm, stack

WRITERS = ("output.weight", "down.weight")


@torch.no_grad()
def stream(blocks: nn.ModuleList) -> list[float]:
    """RMS of the stream after 1, 4, 16 and 64 sublayers; it starts at 1."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(2, 16, 64, dtype=torch.float64, generator=generator)
    x, sizes = rms_norm(x), []
    for block in blocks:
        x = block(x)
        sizes.append(x.square().mean().sqrt().item())
    return [sizes[count - 1] for count in (1, 4, 16, 64)]


def multiply(blocks: nn.ModuleList, names: tuple, factor: float) -> None:
    """Multiply, in place, each parameter whose name ends in one of names."""
    with torch.no_grad():
        for name, parameter in blocks.named_parameters():
            if name.endswith(names):
                parameter *= factor


print("RMS after sublayer      1      4     16     64")
print("root of 1 + l     ", end="")
print("".join(f"{(1 + count) ** 0.5:7.2f}" for count in (1, 4, 16, 64)))
for placement in (PreNorm, SandwichNorm):
    print(placement.__name__)
    for factor in (1.0, 0.1, 100.0):
        blocks = stack(placement, layers=32)
        multiply(blocks, WRITERS, factor)
        print(f"  writers x {factor:<6g}", end="")
        print("".join(f"{size:7.2f}" for size in stream(blocks)))
blocks = stack(SandwichNorm, layers=32)
multiply(blocks, ("post.gain",), 0.1)
print("  post gains x 0.1", end="")
print("".join(f"{size:7.2f}" for size in stream(blocks)))
