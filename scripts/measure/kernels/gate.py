"""How far a result is from float64, and whether it comes out the same again."""

from dataclasses import dataclass

# ||found - wanted|| / ||wanted||. Rounding alone gives 1.69e-3 in bfloat16.
OURS = {"float32": 5e-7, "bfloat16": 1.9e-3}
INTERPRETED = {"float32": 5e-7, "bfloat16": 4e-3}  # it truncates
PEERS = 2e-2
# Units in the last place that all but MOST_BEYOND of ours keep to in 16 bits. Not all:
# where terms cancel, any kernel that computes in float32 has a few elements far off.
UNIT, UNIT_INTERPRETED, MOST_BEYOND = 1.0, 1.05, 1e-3
FEW = 2**16  # elements, below which the luck of rounding shows in a distance
PIECE = 2**26  # numbers at a time: all of a tensor in float64 may not fit


@dataclass(frozen=True)
class Distance:
    """Relative Frobenius distance; units in the last place: above one, and the most."""

    relative: float
    beyond: float  # their share
    most_ulp: float


INFINITE = Distance(float("inf"), 1.0, float("inf"))


def distance(found, wanted, unit: float = UNIT) -> Distance:
    """Of a tensor from its float64 answer.

    Where the answer is infinite or NaN the same must stand; anything else that is
    not finite is infinitely far, and so is a tensor of another shape.
    """
    import torch

    if found.shape != wanted.shape:
        return INFINITE
    total = found.numel()
    if total == 0:
        return Distance(0.0, 0.0, 0.0)
    off = norm = most = most_ulp = beyond = 0.0
    pairs = zip(
        found.flatten().split(PIECE), wanted.flatten().split(PIECE), strict=True
    )
    for each, right in pairs:
        exact, each = right.double(), each.double()
        known = exact.isfinite()
        same = (each == exact) | (each.isnan() & exact.isnan())
        if not bool((known | same).all()):
            return INFINITE
        exact, each = exact.where(known, 0.0), each.where(known, 0.0)
        gap = (each - exact).abs()
        if not bool(torch.isfinite(gap).all()):
            return INFINITE
        off += float(gap.square().sum())
        norm += float(exact.square().sum())
        most = max(most, float(gap.max()))
        units = gap / _unit(exact, found.dtype)
        most_ulp = max(most_ulp, float(units.max()))
        beyond += float((units > unit).sum())
    relative = (off / norm) ** 0.5 if norm else most
    return Distance(relative, beyond / total, most_ulp)


def _unit(exact, dtype):
    """The spacing of dtype at exact values; subnormals count as the smallest."""
    import torch

    info = torch.finfo(dtype)
    exponent = torch.floor(torch.log2(exact.abs().clamp(min=info.smallest_normal)))
    return info.eps * torch.exp2(exponent)


def rounding(wanted, dtype) -> float:
    """The relative distance of an answer that is only rounded; 0 if it overflows."""
    found = distance(wanted.to(dtype), wanted).relative
    return found if found < float("inf") else 0.0


def same_bits(one, other) -> bool:
    """Whether two results agree in every bit, also where they are NaN."""
    import torch

    def bits(tensor):
        same_size = {2: torch.int16, 4: torch.int32}[tensor.element_size()]
        return tensor.contiguous().view(same_size)

    return all(torch.equal(bits(a), bits(b)) for a, b in zip(one, other, strict=True))


def limits(dtype: str, ours: bool, interpreted: bool = False) -> tuple[float, float]:
    """The relative distance that passes, and the share of elements beyond a unit."""
    if not ours:
        return PEERS, 1.0
    most = (INTERPRETED if interpreted else OURS)[dtype]
    return most, 1.0 if dtype == "float32" else MOST_BEYOND
