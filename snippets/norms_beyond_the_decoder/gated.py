import torch
from torch import Tensor
from torch.nn import functional as F

from snippets.rms_norm.reference import rms_norm


def gated_rms_norm(
    x: Tensor,
    gate: Tensor,
    gain: Tensor | None = None,
    groups: int = 1,
    norm_before_gate: bool = False,
    eps: float = 1e-5,
) -> Tensor:
    """RMSNorm in groups of features, with a SiLU gate on either side.

    x and gate are (..., d), gain is (d,). The arithmetic is float32 (float64
    for float64 input); one rounding to x's dtype, at the end.
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    y, opening = x.to(wide), F.silu(gate.to(wide))
    if not norm_before_gate:
        y = y * opening  # the statistics see the gate
    y = rms_norm(y.unflatten(-1, (groups, -1)), eps=eps).flatten(-2)
    if gain is not None:
        y = y * gain.to(wide)
    if norm_before_gate:
        y = y * opening  # the output sees the gate
    return y.to(x.dtype)
