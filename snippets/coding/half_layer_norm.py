from torch import Tensor


def half_layer_norm(x: Tensor, eps: float = 1e-5) -> Tensor:
    """x is (..., d) in float16. Scale first, so that squares fit."""
    c = x / 2 - (x / 2).mean(dim=-1, keepdim=True)  # x - mean may not fit
    c = c - c.mean(dim=-1, keepdim=True)  # what the rounded mean left over
    floor = eps**0.5 / 2
    size = c.abs().amax(dim=-1, keepdim=True).clamp_min(floor)
    z = c / size  # at most one
    variance = z.square().mean(dim=-1, keepdim=True)
    return z / (variance + (floor / size).square()).sqrt()
