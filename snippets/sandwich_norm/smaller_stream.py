# --8<-- [start:shrink]
import torch
from torch import Tensor, nn

from snippets.rms_norm.reference import RMSNorm
from snippets.sandwich_norm.blocks import SandwichNorm
from snippets.sandwich_norm.stacks import stack


@torch.no_grad()
def shrink(blocks: nn.ModuleList, final: RMSNorm, by: float, eps: bool) -> None:
    """Make the stream of sandwich blocks smaller, in place, by a factor.

    Whoever embeds divides by it too. All that reads the stream is a norm,
    which divides by the size: exact if its epsilon shrinks by the square.
    """
    for block in blocks:
        block.post.gain /= by  # the only writer
    for norm in (*(block.pre for block in blocks), final):
        norm.eps /= by**2 if eps else 1


# --8<-- [end:shrink]


# --8<-- [start:compare]
def built() -> tuple[nn.ModuleList, RMSNorm]:
    blocks, final = stack(SandwichNorm, layers=8), RMSNorm(64).double()
    for block in blocks:
        block.post.gain.data *= 40  # as trained gains may be
    return blocks, final


@torch.no_grad()
def run(
    blocks: nn.ModuleList, final: RMSNorm, x: Tensor
) -> tuple[float, Tensor]:
    largest = x.abs().max()
    for block in blocks:
        x = block(x)
        largest = torch.maximum(largest, x.abs().max())
    return float(largest), final(x)


torch.manual_seed(1)
x = torch.randn(2, 16, 64, dtype=torch.float64)
largest, right = run(*built(), x)
print(f"as it is: largest {largest:.0f}")
for eps, name in ((True, "over 64**2"), (False, "kept")):
    model = built()
    shrink(*model, by=64, eps=eps)
    largest, y = run(*model, x / 64)
    gap = float((y - right).abs().max() / right.abs().max())
    words = f"{gap:.0e}" if gap > 1e-9 else "none"
    print(f"1/64, epsilon {name}: largest {largest:.0f}, difference {words}")
# --8<-- [end:compare]
