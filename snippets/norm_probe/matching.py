# --8<-- [start:decompose]
from itertools import combinations

import torch
from torch import Tensor


def arranged(x: Tensor, shared: str) -> Tensor:
    """(..., d) as float64 (groups, n): each group has its own coefficients.

    shared: "all" (one group), "token" (a group a row) or "channel" (a group
    a column).
    """
    x = x.detach().double()
    if shared == "all":
        return x.reshape(1, -1)
    rows = x.reshape(-1, x.shape[-1])
    return rows if shared == "token" else rows.T


def decompose(
    target: Tensor,
    candidates: dict[str, Tensor],
    most: int = 4,
    shared: str = "all",
    tolerance: float = 1e-5,
) -> dict[str, Tensor] | None:
    """The smallest set of candidates whose combination is the target, exactly.

    target and candidates are (..., d) with equal numbers of elements.
    Returns {name: coefficients}, each (groups,), see `arranged`; None if no
    set of at most `most` reaches the target up to `tolerance` of its norm.
    Of sets of one size the nearest counts, and the first of equals. Give only
    candidates that existed before the target, none of them twice.
    """
    y = arranged(target, shared)  # (groups, n)
    size = y.norm()
    names = [n for n, c in candidates.items() if c.numel() == y.numel()]
    if not names or size == 0:
        return None
    columns = torch.stack([arranged(candidates[n], shared) for n in names], -1)
    lengths = columns.norm(dim=1, keepdim=True).clamp_min(1e-300)
    columns = columns / lengths

    def fit(chosen: list[int]) -> tuple[Tensor, float]:
        part = columns[..., chosen]  # (groups, n, k), of unit length
        gram, seen = part.mT @ part, part.mT @ y[..., None]
        inverse = torch.linalg.pinv(gram, rtol=1e-10, hermitian=True)
        found = (inverse @ seen)[..., 0]
        missed = (part @ found[..., None])[..., 0] - y
        return found / lengths[:, 0, chosen], (missed.norm() / size).item()

    everything = list(range(len(names)))
    if shared == "all" and fit(everything)[1] > 100 * tolerance:
        return None  # not even all of them together
    for k in range(1, min(most, len(names)) + 1):
        best, least = None, tolerance
        for chosen in combinations(everything, k):
            coefficients, missed = fit(list(chosen))
            if missed <= least:
                best, least = (chosen, coefficients), missed / 4
        if best:
            chosen, coefficients = best
            return {
                names[i]: coefficients[:, place]
                for place, i in enumerate(chosen)
            }
    return None


# --8<-- [end:decompose]


# --8<-- [start:written]
def written(coefficients: dict[str, Tensor], digits: int = 4) -> str:
    """A combination as people write it: x + 0.5·a − b.

    Coefficients that differ between tokens or channels become c(name)⊙name.
    """
    text = ""
    for name, values in coefficients.items():
        value = float(f"{values.mean().item():.{digits}g}")
        if values.numel() > 1 and values.std() > 1e-4 * values.abs().max():
            sign, term = "+", f"c⊙{name}"
        else:
            sign = "−" if value < 0 else "+"
            term = name if abs(value) == 1 else f"{abs(value):g}·{name}"
        if text:
            text += f" {sign} {term}"
        else:
            text = term if sign == "+" else f"−{term}"
    return text


# --8<-- [end:written]
