from torch import Tensor

from snippets.fused_residual.operator import add_rms_norm
from snippets.triton_rms_norm.operator import rms_norm


def plain(x: Tensor, branches, gains) -> Tensor:
    """Pre-Norm: every branch reads a norm, a last norm follows them all."""
    for branch, gain in zip(branches, gains[:-1], strict=True):
        x = x + branch(rms_norm(x, gain))
    return rms_norm(x, gains[-1])


def passed_along(x: Tensor, branches, gains) -> Tensor:
    """The same: an addition and the norm that reads it are one call."""
    y = rms_norm(x, gains[0])  # nothing to add yet
    for branch, gain in zip(branches, gains[1:], strict=True):
        x, y = add_rms_norm(x, branch(y), gain)
    return y
