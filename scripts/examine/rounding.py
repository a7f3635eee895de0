"""How far two tensors are apart, and how much of that rounding may explain."""

from scripts.examine import flow, state

FLOOR = 1e-7  # of the stream: less is rounding in any case
ABOVE = 3  # times what rounding gives


def pairs(mine, yours):
    """(path, what it gives, what it gives there) of the modules of two passes."""
    other = {path: out for path, _, out in reversed(yours)}
    for path, _, out in reversed(mine):
        if out and other.get(path) and out[0].shape == other[path][0].shape:
            yield path, out[0], other[path][0]


def distance(a, b) -> float:
    """The difference of two tensors as a share of the first."""
    a, b = a.double(), b.double()
    return ((a - b).norm() / a.norm().clamp_min(1e-300)).item()


def floor(noise: dict, path: str) -> float:
    """What rounding may explain at a module."""
    return max(ABOVE * noise.get(path, 0.0), FLOOR)


def noise_of(model, given: dict, own, ours) -> tuple[dict[str, float], float]:
    """What rounding gives at every module and at the output: float32 to float64."""
    try:
        exact = state.copied(model).double()
        state.keep(exact)
        wide = {
            n: v.double() if getattr(v, "is_floating_point", bool)() else v
            for n, v in given.items()
        }
        out, seen = flow.ran(exact, wide)
    except Exception:  # it does not run in float64
        return {}, 0.0
    same = out is not None and own is not None and out.shape == own.shape
    return (
        {p: distance(b, a) for p, a, b in pairs(ours, seen)},
        distance(out, own) if same else 0.0,
    )
