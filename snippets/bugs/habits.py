# --8<-- [start:agrees]
from collections.abc import Callable

import torch
from torch import Tensor

Norm = Callable[[Tensor, Tensor, float], Tensor]  # (x, gain, eps) -> y
ONE_ROUNDING = 1.01 * 2**-8  # of a bfloat16 number, relative
HEADS = 4


def tokens(seed: int = 0) -> Tensor:
    """(2, 64, 32) standard normal numbers, float32."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, 64, 32, generator=generator)


def agrees(
    norm: Norm,
    right: Norm,
    x: Tensor,
    gain: Tensor,
    rtol: float = 1e-2,
    atol: float = 1e-2,
) -> bool:
    """Whether norm is elementwise close to right, run in float64."""
    y = norm(x.clone(), gain.clone(), 1e-5)  # (1)!
    exact = right(x.double(), gain.double(), 1e-5)
    return torch.allclose(y.double(), exact, rtol=rtol, atol=atol)


def gradients(
    norm: Norm, x: Tensor, gain: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of the weighted sum of norm's output, for x and gain."""
    x, gain = x.clone().requires_grad_(), gain.clone().requires_grad_()
    loss = (norm(x.clone(), gain, 1e-5) * weights).sum()
    loss = loss + 0 * (x.sum() + gain.sum())  # connected in any case
    return torch.autograd.grad(loss, (x, gain))


# --8<-- [end:agrees]


# --8<-- [start:HABITS]
UNIT, UNEVEN = torch.ones(32), torch.linspace(0.5, 1.5, 32)


def smoke(norm: Norm, right: Norm) -> bool:
    y = norm(tokens(), UNIT, 1e-5)
    return y.shape == tokens().shape and bool(y.isfinite().all())


def randn(norm: Norm, right: Norm) -> bool:
    return agrees(norm, right, tokens(), UNIT)


def uneven_gain(norm: Norm, right: Norm) -> bool:
    return agrees(norm, right, tokens(), UNEVEN)


def faint_rows(norm: Norm, right: Norm) -> bool:
    return agrees(norm, right, 1e-4 * tokens(), UNIT)


def large_mean(norm: Norm, right: Norm) -> bool:
    return agrees(norm, right, tokens() + 1000, UNIT)


def large_float16(norm: Norm, right: Norm) -> bool:
    return agrees(norm, right, (300 * tokens()).half(), UNIT.half())


def one_rounding(norm: Norm, right: Norm) -> bool:
    x, gain = tokens().bfloat16(), UNEVEN.bfloat16()
    return agrees(norm, right, x, gain, rtol=ONE_ROUNDING, atol=1e-5)


def output_dtype(norm: Norm, right: Norm) -> bool:
    return norm(tokens().bfloat16(), UNIT, 1e-5).dtype == torch.bfloat16


def input_unchanged(norm: Norm, right: Norm) -> bool:
    x = tokens()
    norm(x, UNIT, 1e-5)
    return torch.equal(x, tokens())


def float64_gradients(norm: Norm, right: Norm) -> bool:
    inputs = [each.double() for each in (tokens(), UNEVEN, tokens(1))]
    try:
        ours = gradients(norm, *inputs)
    except RuntimeError:  # autograd refuses
        return False
    exact = gradients(right, *inputs)
    return all(map(torch.allclose, ours, exact))


def bfloat16_gain_gradient(norm: Norm, right: Norm) -> bool:
    low = [each.bfloat16() for each in (tokens(), UNEVEN, tokens(1))]
    try:
        ours = gradients(norm, *low)[1].double()
    except RuntimeError:
        return False
    exact = gradients(right, *(each.double() for each in low))[1]
    return torch.allclose(ours, exact, rtol=ONE_ROUNDING, atol=1e-4)


def causality(norm: Norm, right: Norm) -> bool:
    x, changed = tokens(), tokens()
    changed[:, -1] *= 10
    past, same = (norm(each, UNIT, 1e-5)[:, :-1] for each in (x, changed))
    return torch.equal(past, same)


def unequal_heads(norm: Norm, right: Norm) -> bool:
    heads = tokens().unflatten(-1, (HEADS, -1))
    sizes = torch.tensor([0.1, 0.5, 2.0, 10.0])[:, None]
    return agrees(norm, right, (heads * sizes).flatten(-2), UNIT)


def views(norm: Norm, right: Norm) -> bool:
    same = tokens()[:1].repeat(2, 1, 1)

    def passes(view: Callable[[Tensor], Tensor]) -> bool:
        def on_view(x: Tensor, gain: Tensor, eps: float) -> Tensor:
            return norm(view(x), gain, eps)

        return agrees(on_view, right, same, UNIT)

    try:
        return (
            passes(lambda x: x.mT.contiguous().mT)  # transposed
            and passes(lambda x: x.repeat(1, 1, 2)[..., 32:])  # sliced
            and passes(lambda x: x[:1].expand_as(x))  # broadcast
        )
    except RuntimeError:  # torch refuses to write into a broadcast
        return False


HABITS = (
    smoke,
    randn,
    uneven_gain,
    faint_rows,
    large_mean,
    large_float16,
    one_rounding,
    output_dtype,
    input_unchanged,
    float64_gradients,
    bfloat16_gain_gradient,
    causality,
    unequal_heads,
    views,
)
# --8<-- [end:HABITS]


# --8<-- [start:show]
Habit = Callable[[Norm, Norm], bool]
Room = dict[Norm, tuple[Norm, Habit]]  # wrong: (right, the habit that tells)


def show(room: Room) -> None:
    """Print what the habit says of each wrong version, then of the right."""
    for wrong, (right, habit) in room.items():
        verdicts = (
            "passes" if habit(norm, right) else "caught"
            for norm in (wrong, right)
        )
        print(f"{wrong.__name__} -> {right.__name__}")
        print(f"  {habit.__name__}: {' -> '.join(verdicts)}")


# --8<-- [end:show]
