"""The soft cap's kernels and the streams, in Triton's interpreter."""

from collections.abc import Sequence
from functools import partial
from itertools import product

import pytest
import torch
import triton
from torch import Tensor

from snippets.memory_bound import streams
from snippets.memory_bound.soft_cap import (
    BLOCK,
    soft_cap,
    soft_cap_backward,
    soft_cap_op,
)
from snippets.soft_capping import reference
from tests.kernel_checks import (
    DTYPES,
    FAR,
    INTERPRETED,
    SHAPES,
    assert_near,
    check_compiled,
    check_gradients,
    draw,
    far,
    far_programs,
    gradients,
    leaves,
    outside_interpreter,
    poisoned,
)
from tests.wrong import suite

pytestmark = INTERPRETED


def check(cap_of, x, cap=30.0, slack=1.5):
    check_gradients(
        lambda x: cap_of(x, cap), lambda x: reference.soft_cap(x, cap), (x,), slack
    )


def check_shapes_and_dtypes(cap_of):
    for dtype, shape, cap in product(DTYPES, SHAPES, (2.0, 30.0)):
        check(cap_of, draw(*shape, dtype=dtype, scale=20.0), cap)


def check_many_blocks(cap_of):
    for size in (BLOCK - 1, BLOCK, 2 * BLOCK + 1):
        check(cap_of, draw(size, scale=30.0))


def check_near_zero(cap_of):
    """Where 1 - exp(-2|z|) loses digits, and where the series takes over."""
    for scale in (1e-3, 1e-6, 1e-20):
        check(cap_of, draw(500, scale=scale))
    check(cap_of, torch.linspace(-1.2, 1.2, 999), cap=1.0)


def check_tails(cap_of):
    """Slopes far beyond the cap are small, but not zero."""
    for dtype, start in product(DTYPES, (2.0, 3.0, 5.0)):
        for sign in (-1.0, 1.0):
            x = sign * torch.linspace(start, start + 0.9, 64)
            check(cap_of, (4.0 * x).to(dtype), cap=4.0, slack=4)


def check_extremes(cap_of):
    x = torch.tensor([0.0, 1e4, -1e4, torch.inf, -torch.inf, torch.nan])
    x.requires_grad_()
    y = cap_of(x, 30.0)
    assert y.tolist()[:5] == [0.0, 30.0, -30.0, 30.0, -30.0]
    assert y[5].isnan()
    (dx,) = gradients(y, [x], torch.ones_like(y))
    assert dx.tolist()[:5] == [1.0, 0.0, 0.0, 0.0, 0.0]


def check_strides_of_the_upstream_gradient(cap_of):
    x = draw(6, 10, scale=20.0)
    dy = draw(10, 6, seed=2).T
    found, wanted = [], []
    for function, kept, dtype in (
        (cap_of, found, torch.float32),
        (reference.soft_cap, wanted, torch.float64),
    ):
        own = leaves(x, dtype=dtype)
        kept += gradients(function(*own, 30.0), own, dy.to(dtype))
    assert torch.allclose(found[0].double(), wanted[0], rtol=1e-5, atol=1e-6)


def check_far_blocks(cap_of):
    """More than 2 ** 31 elements, and values only in the last blocks."""
    x, dy = far(FAR + BLOCK + 5), far(FAR + BLOCK + 5)
    for i, each in enumerate((x, dy)):
        each[FAR:] = draw(BLOCK + 5, seed=i, scale=20.0)
    x.requires_grad_()
    with far_programs():
        y = cap_of(x, 30.0)
        (dx,) = gradients(y, [x], dy)
    (end,) = leaves(x[FAR:], dtype=torch.float64)
    wanted = reference.soft_cap(end, 30.0)
    assert_near(y[FAR:].detach(), wanted.detach(), "y", 1.5)
    (slope,) = gradients(wanted, [end], dy[FAR:].double())
    assert_near(dx[FAR:], slope, "dx", 1.5)


CHECKS = [
    check_shapes_and_dtypes,
    check_many_blocks,
    check_near_zero,
    check_tails,
    check_extremes,
    check_strides_of_the_upstream_gradient,
    check_far_blocks,
]


test_right, test_rejects = suite(soft_cap, CHECKS, slow=True)


MIXES = ((1, 1), (2, 1), (2, 2), (3, 1), (3, 2))


def add(kernel, sources: Sequence[Tensor], writes: int) -> list[Tensor]:
    """The sums that add_streams, or a wrong one, writes; behind them stand sevens.

    Only the first outputs of two are returned, as many as `writes`.
    """
    size = sources[0].numel()
    room = [torch.empty((size + 3,), dtype=sources[0].dtype) for _ in range(2)]
    start = FAR if size > FAR else 0  # what lies before is never touched
    for i, each in enumerate(room):
        each[start:] = 7.0
        if i < writes:
            each[start:size] = torch.nan
    grid = (triton.cdiv(size, 64),)
    padded = [*sources, *[sources[0]] * (3 - len(sources))]
    kernel[grid](*padded, *room, size, len(sources), writes, 64)
    for each in room:
        assert (each[size:] == 7).all(), "writes behind its output"
    assert writes == 2 or (room[1] == 7).all(), "writes an output too many"
    return [each[:size] for each in room[:writes]]


def check_sums(add_of):
    for (reads, writes), dtype in product(MIXES, DTYPES):
        for size in (1, 63, 64, 200):
            sources = [draw(size, seed=i, dtype=dtype) for i in range(reads)]
            exact = sum(source.double() for source in sources)
            most = sum(source.double().abs() for source in sources)
            for found in add_of(sources, writes):
                gap = (found.double() - exact).abs()
                assert (gap <= torch.finfo(dtype).eps * most).all()


def check_one_rounding(add_of):
    """1 + e + e, where each e alone is rounded away, and both together are not."""
    one = torch.ones(8, dtype=torch.float16)
    half = one * 2**-11
    (found,) = add_of([one, half, half], 1)
    assert torch.equal(found, one + 2**-10)


def check_far_sums(add_of):
    """Of the last 69 elements, behind 2 ** 31 of zero."""
    sources = [far(FAR + 69) for _ in range(3)]
    for i, each in enumerate(sources):
        each[FAR:] = draw(69, seed=i).bfloat16()
    exact = sum(source[FAR:].double() for source in sources)
    with far_programs():
        for found in add_of(sources, 2):
            assert_near(found[FAR:], exact, "sum", 1.5)


STREAM_CHECKS = [check_sums, check_one_rounding, check_far_sums]


test_right_streams, test_rejects_streams = suite(
    streams.add_streams, STREAM_CHECKS, lambda kernel: partial(add, kernel)
)


def test_no_elements():
    x = torch.zeros(3, 0, requires_grad=True)
    y = soft_cap(x, 30.0)
    assert y.shape == (3, 0)
    assert gradients(y, [x], torch.zeros(3, 0))[0].shape == (3, 0)


def test_expanded_upstream_gradient():
    x = draw(5, 7).requires_grad_()
    soft_cap(x, 30.0).sum().backward()
    slope = 1 - torch.tanh(x.detach() / 30) ** 2
    assert torch.allclose(x.grad, slope)


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_are_registered_as_they_should_be(dtype):
    x = draw(2, 5, 8, dtype=dtype)
    torch.library.opcheck(soft_cap_op, (x, 30.0))
    torch.library.opcheck(soft_cap_backward, (x, x, 30.0))


def test_compiled_without_a_break():
    check_compiled(lambda x: soft_cap(2 * x, 3.0).sin(), [draw(6, 12)])


@pytest.mark.parametrize(
    ("x", "cap", "error", "says"),
    [
        (draw(3, 8).double(), 30.0, TypeError, "x is torch.float64; known: .*float16"),
        (draw(8, 3).T, 30.0, ValueError, r"strides \(1, 3\): call x.contiguous"),
        (draw(3, 8), 0.0, ValueError, "cap is 0.0, not a positive number"),
        (draw(3, 8), float("nan"), ValueError, "cap is nan"),
    ],
)
def test_clear_errors(x, cap, error, says):
    with pytest.raises(error, match=says) as caught:
        soft_cap(x, cap)
    assert "\n" not in str(caught.value)


def test_the_interpreter_cuts_bfloat16():
    """What the page says: towards zero, up to a unit, where torch rounds."""
    x = torch.linspace(1, 2, 1000)
    (found,) = add(streams.add_streams, [x.bfloat16()], 1)
    assert torch.equal(found, x.bfloat16())  # nothing to round
    wide, y = draw(1000), torch.empty(1000, dtype=torch.bfloat16)
    with poisoned():
        streams.add_streams[(1,)](wide, wide, wide, y, y, 1000, 1, 1, 1024)
    cut = (wide.view(torch.int32) & -(2**16)).view(torch.float32)
    assert torch.equal(y.float(), cut)
    assert not torch.equal(y, wide.bfloat16())


OUTSIDE = """
import torch
from snippets.memory_bound.soft_cap import runs_kernels, soft_cap
for dtype in (torch.float32, torch.bfloat16):
    x = (40 * torch.randn(3, 80)).to(dtype).requires_grad_()
    assert not runs_kernels(x)
    wide = x.detach().double().requires_grad_()
    y, wanted = soft_cap(x, 30.0), 30 * torch.tanh(wide / 30)
    dy = torch.randn(3, 80).to(x.dtype)
    y.backward(dy)
    wanted.backward(dy.double())
    pairs = (y, wanted), (x.grad, wide.grad)
    print(max(float(((a.double() - b).norm() / b.norm()).detach()) for a, b in pairs))
"""


def test_outside_the_interpreter_a_cpu_takes_the_formulas():
    single, half = map(float, outside_interpreter(OUTSIDE).split())
    assert single < 5e-7 and half < 3e-3
