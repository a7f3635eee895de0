from torch import Tensor

from snippets.transformer_block.norm_calls import NormCall


def disagreement(a: Tensor, b: Tensor, tolerance: float) -> str | None:
    """How b differs from a: shape, dtype, then values relative to a's rms."""
    if a.shape != b.shape:
        return f"shape {tuple(a.shape)}, not {tuple(b.shape)}"
    if a.dtype != b.dtype:
        return f"{a.dtype}, not {b.dtype}"
    gap = (a.double() - b.double()).abs().max()
    rms = a.double().square().mean().sqrt()
    if gap <= tolerance * rms:  # false for NaN
        return None
    return f"off by {gap / rms:.1e} rms"


def first_difference(
    ours: list[NormCall], theirs: list[NormCall], tolerance: float = 1e-4
) -> str:
    """The first norm that reads or returns something else, in words.

    The lists come from norm_calls of two models on the same tokens and are
    paired in order; if their lengths differ, the answer says so.
    """
    counts = ""
    if len(ours) != len(theirs):
        counts = f" ({len(ours)} norms, not {len(theirs)})"
    for a, b in zip(ours, theirs, strict=False):
        if found := disagreement(a.x, b.x, tolerance):
            return f"{a.name}: input {found}{counts}"
        if found := disagreement(a.y, b.y, tolerance):
            return f"{a.name}: same input, output {found}{counts}"
    if counts:
        longer = max(ours, theirs, key=len)
        name = longer[min(len(ours), len(theirs))].name
        return f"{name}: only in one model{counts}"
    return "all norms agree"
