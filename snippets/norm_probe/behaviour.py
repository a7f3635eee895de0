# --8<-- [start:probes]
import warnings
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

LOW = torch.bfloat16  # 8 significant bits: one rounding more shows


@dataclass(frozen=True)
class Behaviour:
    """What a norm does, as its outputs tell it."""

    kind: str  # "RMSNorm", "LayerNorm", "L2" or "LayerNorm, not scaled"
    size: int  # how many elements share one statistic
    gain: str  # "w", "1+w", "none" or "other"
    bias: bool
    eps: float | None  # None: not of the form mean square + eps
    cast: str  # where the result is rounded to the input's dtype
    output: str  # dtype out, for LOW in and float32 parameters
    fp16: bool  # right for elements of size 300, whose squares overflow


def close(a: Tensor, b: Tensor, tolerance: float = 1e-4) -> bool:
    """Equal up to a share of the larger tensor's greatest element."""
    a, b = a.double(), b.double()
    scale = torch.maximum(a.abs().max(), b.abs().max())
    return bool((a - b).abs().max() <= tolerance * scale)


def split_parameters(norm: nn.Module, x: Tensor) -> tuple[list, list]:
    """The names of a norm's gains and of its biases.

    A bias moves the output by the same amount for every input, a gain does
    not; what a parameter is called does not matter, and one without effect
    is neither.
    """
    gains, biases = [], []
    for name, parameter in norm.named_parameters():
        moved = {name: parameter.detach() + 1}
        first, second = (
            functional_call(norm, moved, (h,)) - norm(h)
            for h in (x, x.flip(-1))
        )
        if not first.any() and not second.any():
            continue
        if close(first, second):
            biases.append(name)
        else:
            gains.append(name)
    return gains, biases


# --8<-- [end:probes]


# --8<-- [start:kind]
def bare_norm(norm: nn.Module, x: Tensor):
    """(gain form, has a bias, the norm as a function with gain 1, bias 0)."""
    gains, biases = split_parameters(norm, x)
    named = dict(norm.named_parameters())

    def at(value: float):
        fixed = {n: torch.full_like(named[n], value) for n in gains}
        fixed |= {n: torch.zeros_like(named[n]) for n in biases}
        return lambda h: functional_call(norm, fixed, (h,))

    zero, one = at(0.0)(x), at(1.0)(x)
    if not gains:
        form, bare = "none", at(1.0)
    elif not zero.any():
        form, bare = "w", at(1.0)
    elif close(one, 2 * zero):
        form, bare = "1+w", at(0.0)
    else:
        form, bare = "other", at(1.0)
    return form, bool(biases), bare


def shared_size(bare, x: Tensor) -> int | None:
    """How many elements feel it when the first one changes.

    None if rows other than the first feel it too, as in BatchNorm.
    """
    moved = x.clone()
    moved.view(-1)[0] *= 3
    felt = ((bare(moved) - bare(x)).abs() > 1e-6).flatten(0, -2)
    return None if felt[1:].any() else int(felt[0].sum())


def expected(x: Tensor, kind: str, size: int, eps: float = 0.0) -> Tensor:
    """A bare norm of this kind over groups of `size`, in float64."""
    h = x.double().unflatten(-1, (-1, size))
    if kind.startswith("LayerNorm"):
        h = h - h.mean(-1, keepdim=True)
    total = h.square().sum(-1, keepdim=True)
    y = h / (total / (1 if kind == "L2" else size) + eps).sqrt()
    return y.flatten(-2)


def kind_of(bare, x: Tensor) -> tuple[str, int] | None:
    """(kind, size) of a bare norm by its invariances, None if it is none.

    x is (..., d) with at least two rows and elements far above sqrt(eps).
    """
    y = bare(x)
    if y.shape != x.shape or not close(bare(2 * x), y):
        return None
    size = shared_size(bare, x)
    if not size or x.shape[-1] % size or size == 1:
        return None
    kinds = ("LayerNorm",) if close(bare(x + 5), y) else ("RMSNorm", "L2")
    for kind in kinds:
        if close(y, expected(x, kind, size)):
            return kind, size
    return None


# --8<-- [end:kind]


# --8<-- [start:shortest]
def shortest(value: float, tolerance: float = 2e-5) -> float:
    """The decimal with the fewest digits within a relative tolerance."""
    for digits in range(1, 7):
        rounded = float(f"{value:.{digits}g}")
        if abs(rounded / value - 1) <= tolerance:
            return rounded
    return rounded


# --8<-- [end:shortest]


# --8<-- [start:eps]
def recover_eps(bare, x: Tensor, kind: str, size: int) -> float | None:
    """eps from outputs: rows of mean square m come out with m / (m + eps).

    Precise where m is about eps, so the estimate becomes the next m. None
    if rows of another size contradict it: eps stands elsewhere.
    """
    unit = expected(x, kind, size)  # mean square 1 (L2: sum 1)

    def estimate(m: float) -> float:
        y = bare((unit * m**0.5).to(x.dtype)).double()
        share = (y.square().mean() / unit.square().mean()).item()
        return m * (1 / share - 1) if share else 0.0

    m = 1e-5
    for _ in range(12):
        found = estimate(m)
        m = found if found > 0.01 * m else 0.01 * m
        if m < 1e-26:
            return 0.0
    near = (estimate(m), estimate(4 * m), estimate(m / 4))
    if max(near) > 1.001 * min(near):
        return None
    return shortest(near[0])


# --8<-- [end:eps]


# --8<-- [start:cast]
def cast_order(norm: nn.Module, x: Tensor, found: Behaviour) -> tuple[str, str]:
    """(where the norm rounds to LOW, output dtype for float32 parameters).

    Gains are multiples of 1/64, so that they and 1 + them are exact in LOW:
    each rounding seen is one that the norm itself makes.
    """
    gains, _ = split_parameters(norm, x)
    random = torch.Generator().manual_seed(0)
    parameters = {}
    for name, old in norm.named_parameters():
        steps = torch.randint(32, 96, old.shape, generator=random)
        parameters[name] = (
            steps / 64 if name in gains else torch.zeros(old.shape)
        )
    low = {name: value.to(LOW) for name, value in parameters.items()}
    small = x.to(LOW)
    wide = expected(small, found.kind, found.size, found.eps or 0.0)
    ones = {
        n: torch.ones_like(v) if n in gains else v
        for n, v in parameters.items()
    }
    # What the gain does, read off the norm itself in float32.
    gain = functional_call(norm, parameters, (x,)).double()
    gain = gain / functional_call(norm, ones, (x,)).double()
    gain = gain * (2 if found.gain == "1+w" else 1)
    gain = (gain * 64).round() / 64

    y = functional_call(norm, low, (small,))
    root = (wide / small.double()).to(LOW).double()  # for RMSNorm and L2
    orders = {
        "gain in fp32, then cast": wide * gain,
        "cast, then gain": wide.to(LOW).double() * gain,
        "root cast, then product": (small.double() * root).to(LOW) * gain,
    }
    agree = {
        name: (y == value.to(y.dtype)).double().mean().item()
        for name, value in orders.items()
    }
    cast = max(agree, key=agree.get)  # the first of equals
    if y.dtype != LOW and close(y, wide * gain, 1e-5):
        cast = "in fp32, not cast back"
    elif agree[cast] < 0.97:
        cast = "in the input's dtype"
    elif found.gain == "none" and cast != "root cast, then product":
        cast = "in fp32, then cast"
    try:
        with warnings.catch_warnings(action="ignore"):  # slow, says torch
            output = functional_call(norm, parameters, (small,)).dtype
    except RuntimeError:  # this norm refuses to mix dtypes
        return cast, "error"
    return cast, str(output).removeprefix("torch.")


def right_in_fp16(norm: nn.Module, x: Tensor, found: Behaviour) -> bool:
    """Whether elements of ±300 come out right in float16.

    Their squares overflow. Finite outputs prove nothing: a root mean square
    of infinity gives zeros.
    """
    large = torch.where(x > 0, 300.0, -300.0)
    y = functional_call(
        norm, {n: p.half() for n, p in norm.named_parameters()}, (large.half(),)
    )
    return close(y, norm(large), 1e-2)


# --8<-- [end:cast]


# --8<-- [start:recognise]
@torch.no_grad()
def recognise(norm: nn.Module, x: Tensor) -> Behaviour | None:
    """What kind of norm a module is, told by its behaviour alone.

    norm maps (..., d) to (..., d) in float32; x gives the shape to probe
    with: (..., d), at least two rows. Neither is modified. None: no norm.
    """
    random = torch.Generator().manual_seed(0)
    x = 8 * torch.randn(x.shape, generator=random)
    form, bias, bare = bare_norm(norm, x)
    found = kind_of(bare, x)
    if found is None:
        return None
    kind, size = found
    eps = recover_eps(bare, x, kind, size)
    known = Behaviour(kind, size, form, bias, eps, "", "", False)
    cast, output = cast_order(norm, x, known)
    fp16 = right_in_fp16(norm, x, known)
    return Behaviour(kind, size, form, bias, eps, cast, output, fp16)


# --8<-- [end:recognise]
