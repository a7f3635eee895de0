"""How far a result is from float64, and whether it comes out the same again."""

from dataclasses import dataclass

# ||found - wanted|| / ||wanted||. Rounding alone gives 1.69e-3 in bfloat16.
OURS = {"float32": 5e-7, "bfloat16": 1.9e-3, "float16": 2.5e-4}
INTERPRETED = {"float32": 5e-7, "bfloat16": 4e-3, "float16": 3e-4}  # it truncates
PEERS = 2e-2


@dataclass(frozen=True)
class Distance:
    """Relative Frobenius distance; units in the last place, 99.9th centile and most."""

    relative: float
    ulp: float
    most_ulp: float


def distance(found, wanted) -> Distance:
    """Of a tensor from its float64 answer; inf where NaN stands."""
    import torch

    exact = wanted.double()
    gap = (found.double() - exact).abs()
    if not bool(torch.isfinite(gap).all()):
        return Distance(float("inf"), float("inf"), float("inf"))
    if gap.numel() == 0:
        return Distance(0.0, 0.0, 0.0)
    norm = torch.linalg.vector_norm(exact)
    relative = float(torch.linalg.vector_norm(gap) / norm) if norm else float(gap.max())
    # The spacing of the dtype at the exact value; subnormals count as the smallest.
    info = torch.finfo(found.dtype)
    exponent = torch.floor(torch.log2(exact.abs().clamp(min=info.smallest_normal)))
    units = (gap / (info.eps * torch.exp2(exponent))).flatten()
    place = max(1, round(0.999 * units.numel()))
    centile = float(units.kthvalue(place).values)
    return Distance(relative, centile, float(units.max()))


def same_bits(one, other) -> bool:
    """Whether two results agree in every bit."""
    import torch

    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def most_allowed(dtype: str, ours: bool, interpreted: bool = False) -> float:
    """The relative distance that still passes."""
    return (INTERPRETED if interpreted else OURS)[dtype] if ours else PEERS
