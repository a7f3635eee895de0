"""How far a result is from float64, and whether it comes out the same again."""

# ||found - wanted|| / ||wanted||. Rounding alone gives 1.69e-3 in bfloat16.
OURS = {"float32": 5e-7, "bfloat16": 1.9e-3}
PEERS = 2e-2
# Of ours in 16 bits this share may be further off than one unit in the last place:
# where terms cancel, any kernel that computes in float32 has a few such elements.
MOST_BEYOND = 1e-3
FEW = 2**16  # elements, below which the luck of rounding shows in a distance
INFINITE = float("inf"), 1.0


def distance(found, wanted) -> tuple[float, float]:
    """Relative Frobenius distance; the share of elements off by more than a unit.

    From a float64 answer. A tensor of another shape, or one that holds anything that
    is not finite, is infinitely far.
    """
    import torch

    if found.shape != wanted.shape:
        return INFINITE
    gap = (found.double() - wanted).abs_()
    if not gap.isfinite().all():
        return INFINITE
    # The spacing of the dtype at each answer; subnormals count as the smallest.
    info = torch.finfo(found.dtype)
    exponent = wanted.abs().clamp_(min=info.smallest_normal).log2_().floor_()
    beyond = (gap > info.eps * exponent.exp2_()).double().mean()
    return float(gap.norm() / wanted.norm()), float(beyond)


def same_bits(one, other) -> bool:
    """Whether two results agree in every bit, also where they are NaN."""
    import torch

    def bits(tensor):
        return tensor.contiguous().view(torch.uint8)

    return all(torch.equal(bits(a), bits(b)) for a, b in zip(one, other, strict=True))
