"""Norms that `recognise` does not know, and what it does not ask of the others."""

from dataclasses import dataclass

FAR = 1024.0  # an input so much larger feels no epsilon
NEAR = 2e-4  # the share of the largest element that rounding explains


@dataclass(frozen=True)
class Odd:
    """A norm with unusual statistics."""

    centred: bool
    axes: tuple[int, ...]  # that one statistic runs over
    factor: float  # its output over that of the plain formula


def _close(a, b, tolerance: float = NEAR) -> bool:
    scale = max(a.abs().max(), b.abs().max())
    return bool((a - b).abs().max() <= tolerance * scale)


def _numbers(shape, seed: int = 0):
    import torch

    return 8 * torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def axes_felt(bare, x) -> tuple[int, ...]:
    """The axes along which other elements feel it when one changes."""
    at = tuple(min(1, n - 1) for n in x.shape)
    moved = x.clone()
    moved[at] *= 3
    felt = (bare(moved) - bare(x)).abs() > 1e-5
    felt[at] = False
    places = felt.nonzero()
    return tuple(i for i, own in enumerate(at) if (places[:, i] != own).any())


def odd(norm, shape) -> Odd | None:
    """What a module that is no plain norm normalizes over; None if it is no norm.

    The formula must hold up to one factor, over exactly the axes that are felt.
    """
    import torch

    from snippets.norm_probe.behaviour import bare_norm

    with torch.no_grad():
        x = _numbers(shape)
        _, _, bare = bare_norm(norm, x)
        y = bare(x)
        if y.shape != x.shape or not y.isfinite().all() or not _close(bare(2 * x), y):
            return None
        axes = axes_felt(bare, x)
        if not axes:
            return None
        centred = _close(bare(x + 5), y, 2e-3)
        h = x.double()
        if centred:
            h = h - h.mean(axes, keepdim=True)
        plain = h / h.square().mean(axes, keepdim=True).sqrt()
        factor = ((y.double() * plain).sum() / plain.square().sum()).item()
        if abs(factor) < 1e-3 or not _close(y.double(), factor * plain, 1e-3):
            return None
    return Odd(centred, axes, factor)


def plain(said: Odd, shape) -> str | None:
    """The kind of a norm over all features with the usual divisor; None of others."""
    n = shape[-1]
    if said.axes != (len(shape) - 1,):
        return None
    if abs(said.factor - 1) < 0.2 / n:
        return "LayerNorm" if said.centred else "RMSNorm"
    if not said.centred and abs(said.factor * n**0.5 - 1) < 0.2 / n:
        return "L2"
    return None


def unbiased(said: Odd, n: int) -> bool:
    """Whether the variance is divided by n - 1."""
    return said.centred and abs(said.factor / ((n - 1) / n) ** 0.5 - 1) < 0.2 / n


def eps_place(norm, x, size: int, axes: tuple = ()) -> tuple[str, float]:
    """("inside" | "outside" | "floor" | "none", e): how a norm treats tiny rows.

    With r the root mean square of a row, outputs are r/sqrt(r^2 + e^2) if epsilon is
    under the root, r/(r + e) if it is added to the root, r/max(r, e) if it is a floor.
    A row is ``size`` features, or what lies along ``axes``.
    """
    import torch

    from snippets.norm_probe.behaviour import bare_norm

    with torch.no_grad():
        _, _, bare = bare_norm(norm, _numbers(x.shape))
        rows = _numbers(x.shape, 1).double()
        rows = rows if axes else rows.unflatten(-1, (-1, size))
        along = axes or (-1,)
        rows = rows - rows.mean(along, keepdim=True)
        unit = rows / rows.square().mean(along, keepdim=True).sqrt()
        unit = unit if axes else unit.flatten(-2)
        full = bare(FAR * unit.float()).double().square().mean().sqrt().item()

        def gain(r: float) -> float:
            y = bare((unit * r).float()).double().square().mean().sqrt().item()
            return y / full / r

        for r in (1e-9, 1e-13, 1e-16):
            steep, steeper = gain(r), gain(r / 4)
            if steep and abs(steeper / steep - 1) < 1e-2:
                e = 1 / steeper
                share = gain(e) * e
                forms = {"outside": 0.5, "inside": 0.5**0.5, "floor": 1.0}
                return min(forms, key=lambda f: abs(forms[f] - share)), e
    return "none", 0.0


def zeros_finite(norm, x, dtype) -> bool:
    """Whether a row of zeros stays finite in a dtype."""
    import torch
    from torch.func import functional_call

    low = {n: p.to(dtype) for n, p in norm.named_parameters()}
    with torch.no_grad():
        y = functional_call(norm, low, (torch.zeros(x.shape, dtype=dtype),))
    return bool(y.isfinite().all())


def dead_parameters(norm, x) -> list[str]:
    """Parameters without any effect on the output."""
    import torch

    from snippets.norm_probe.behaviour import split_parameters

    with torch.no_grad():
        gains, biases = split_parameters(norm, _numbers(x.shape))
    return [n for n, _ in norm.named_parameters() if n not in gains + biases]


def detached(norm, x) -> bool:
    """Whether the gradient leaves out the statistics.

    The outputs do not change with the scale of x, so a gradient has nothing along x;
    without the statistics, that of half their squares has all of it. A random part
    is added, since with a gain of one that gradient is all zeros.
    """
    import torch

    h = (FAR * _numbers(x.shape)).requires_grad_(True)
    with torch.enable_grad():
        y = norm(h)
        if not y.requires_grad:
            return False
        own = y.detach()
        weigh = own + own.square().mean().sqrt() * _numbers(y.shape, 2) / 8
        (g,) = torch.autograd.grad(y, h, weigh, allow_unused=True)
    if g is None:
        return False
    along = (g * h).sum().abs()
    return bool(along > 1e-2 * g.norm() * h.norm())


def cancels(norm, x) -> bool:
    """Whether the variance of rows far off centre is lost: E[x²] − E[x]²."""
    import torch

    from snippets.norm_probe.behaviour import bare_norm

    with torch.no_grad():
        far = _numbers(x.shape) / 8 + 3000.0
        _, _, bare = bare_norm(norm, _numbers(x.shape))
        return not _close(bare(far), bare(far - 3000.0), 0.05)


def offset_rounds(norm, x) -> bool:
    """Whether 1 + w is rounded to the dtype of w: w in bfloat16, the input wide."""
    import torch
    from torch.func import functional_call

    w = 3 / 1024  # 1 + w is no bfloat16, w is
    low = {n: torch.full_like(p, w).bfloat16() for n, p in norm.named_parameters()}
    zero = {n: torch.zeros_like(p) for n, p in low.items()}
    with torch.no_grad():
        y = functional_call(norm, low, (_numbers(x.shape),)).double()
        bare = functional_call(norm, zero, (_numbers(x.shape),)).double()
    return bool(((y * bare).sum() / bare.square().sum() - 1).abs() < w / 4)
