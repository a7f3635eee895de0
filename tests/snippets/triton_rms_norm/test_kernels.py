"""RMSNorm's kernels in Triton's interpreter: values, gradients, rows, errors."""

import pytest
import torch

from snippets.rms_norm import reference
from snippets.triton_rms_norm import launch
from snippets.triton_rms_norm.backward import AHEAD
from snippets.triton_rms_norm.formula import formula
from snippets.triton_rms_norm.forward import EARLY
from snippets.triton_rms_norm.one_row import one_row
from snippets.triton_rms_norm.operator import (
    rms_norm,
    rms_norm_backward_op,
    rms_norm_op,
)
from snippets.triton_rms_norm.rows import row_layout
from tests.kernel_checks import (
    DTYPES,
    FAR,
    INTERPRETED,
    SHAPES,
    assert_near,
    assert_same_bits,
    check_compiled,
    check_gradients,
    check_last_rows,
    check_no_gradient,
    check_one_row_on_a_cpu,
    draw,
    far_rows,
    gains,
    gradients,
    leaves,
    narrowed,
    outside_interpreter,
    poisoned,
)
from tests.wrong import suite

pytestmark = INTERPRETED


def check(norm, x, gain, eps=1e-6):
    check_gradients(
        lambda x, gain: norm(x, gain, eps),
        lambda x, gain: reference.rms_norm(x, gain, eps),
        (x, gain),
        slack=4 if x.shape[-1] < 3 else 1.5,  # dx nearly cancels in narrow rows
    )


def check_shapes_and_dtypes(norm):
    for dtype in DTYPES:
        for gain_dtype in {dtype, torch.float32}:
            for shape in SHAPES:
                x = draw(*shape, dtype=dtype, scale=2.0, offset=0.5)
                check(norm, x, gains(shape[-1], gain_dtype))


def check_many_rows(norm):
    """More than the programs walk over at once: partial sums meet."""
    x = draw(2600, 6, offset=3.0)
    check(norm, x, gains(6))
    x = draw(12, 1100, dtype=torch.bfloat16)
    check(norm, x, gains(1100))


def check_rows_with_a_late_gain(norm):
    width = EARLY.value + 1
    for dtype in (torch.float32, torch.bfloat16):
        check(norm, draw(5, width, dtype=dtype), gains(width))


@narrowed
def check_rows_held_as_pairs(norm):
    """Twice as wide as in float32; a float32 gain makes the last one wide again."""
    for width in (launch.WHOLE_FORWARD - 9, launch.WHOLE_FORWARD + 9):
        for dtype in (torch.bfloat16, torch.float16):
            x = draw(2, width, dtype=dtype, offset=0.5)
            check(norm, x, gains(width, dtype))
    check(norm, x, gains(width))


@narrowed
def check_wide_rows(norm):
    width = launch.WHOLE_FORWARD + 465
    check(norm, draw(3, width), gains(width))
    check(norm, draw(9, launch.WHOLE_BACKWARD + 1), gains(launch.WHOLE_BACKWARD + 1))


def check_epsilon(norm):
    for scale in (1e-3, 1e-5):
        for eps in (1e-5, 1e-6):
            check(norm, draw(4, 9, scale=scale), gains(9), eps)
    x, gain = torch.zeros(3, 8), gains(8)
    assert not norm(x, gain, 1e-6).any()


@narrowed
def check_epsilon_of_wide_rows(norm):
    width = launch.WHOLE_FORWARD + 1
    check(norm, draw(2, width, scale=1e-4), gains(width))


def check_extremes(norm):
    x = draw(3, 64)
    x[1, 5] = 1e4  # one loud feature
    check(norm, x, gains(64))
    check(norm, draw(3, 64, scale=1e15), gains(64))
    x[0, 0], x[2, 1] = torch.inf, torch.nan
    y = norm(x, gains(64), 1e-6)
    assert y[0].isnan().any()
    assert y[2].isnan().all()
    assert y[1].isfinite().all()


def check_rows_with_gaps(norm):
    packed = draw(2, 5, 3, 4, 24)
    for part in range(3):
        check(norm, packed[:, :, part], gains(24))
    check(norm, draw(6, 40)[:, :24], gains(24))
    check(norm, draw(4, 6, 10)[::2, :, :], gains(10))


def check_far_rows(norm):
    """A row 2 ** 31 elements behind the first one."""
    x = far_rows()
    gain = gains(64, torch.bfloat16)
    wanted = reference.rms_norm(x.double(), gain.double())
    assert_near(norm(x, gain, 1e-6), wanted, "y")


@narrowed
def check_far_outputs(norm):
    """So many wide rows that far_programs cuts the walk of gain_gradient as well."""
    half = torch.bfloat16
    wide = 2 * launch.WHOLE_FORWARD + 1
    for first, rows, width in (FAR // 64, 69, 64), (2**21, 2, wide):
        check_last_rows(
            lambda *inputs: norm(*inputs, 1e-6),
            lambda *inputs: reference.rms_norm(*inputs, 1e-6),
            [gains(width, half)],
            first,
            rows,
            1.5,
        )


CHECKS = [  # the cheap ones first: most variants go no further
    check_epsilon,
    check_rows_with_gaps,
    check_extremes,
    check_far_rows,
    check_rows_with_a_late_gain,
    check_rows_held_as_pairs,
    check_epsilon_of_wide_rows,
    check_many_rows,
    check_wide_rows,
    check_far_outputs,
    check_shapes_and_dtypes,
]


def test_right_at_the_true_widths():
    check_epsilon_of_wide_rows.__wrapped__(rms_norm)
    width, half = launch.WHOLE_FORWARD + 1, torch.bfloat16
    x, gain = draw(2, width, dtype=half), gains(width, half)
    wanted = reference.rms_norm(x.double(), gain.double(), 1e-6)
    assert_near(rms_norm(x, gain), wanted, "y")


test_right, test_rejects = suite(rms_norm, CHECKS, slow=True)


def test_an_operation_behind_it_may_give_no_gradient():
    check_no_gradient(rms_norm, [draw(4, 8), gains(8)])


def test_one_row_on_a_cpu():
    check_one_row_on_a_cpu("triton_rms_norm", "rms_norm", 2)


def test_the_same_bits_again():
    assert_same_bits(rms_norm, rms_norm, [draw(70, 130), gains(130)])


@pytest.mark.parametrize("programs", [1, 16, 17, 700])  # both tiles, and several
@pytest.mark.parametrize("sums", [1, 2])
def test_partial_sums_are_added(programs, sums):
    partial, gain = draw(sums, programs, 270), gains(270)
    with poisoned():
        found = launch.summed(partial, gain)
    assert_near(torch.stack(found), partial.double().sum(dim=1), "the sums")


HOPPER = 232_448  # bytes of shared memory that a program can have at most


@pytest.mark.parametrize("tensors", [2, 3])
@pytest.mark.parametrize("size", [2, 4])
def test_two_tiles_loaded_ahead_fit_into_shared_memory(tensors, size):
    for width in (*range(1, 40), 1000, 4096, 4097, 8192, 8193, launch.WHOLE_BACKWARD):
        shape = launch.walk(width, size, tensors)
        rows, columns = shape["ROWS"], shape["COLUMNS"]
        ahead = tensors if columns * size <= AHEAD.value else 1
        loaded = rows * (columns * ahead * size + 2 * 4)  # and two statistics
        assert 2 * loaded < HOPPER - 8000  # for reductions
        assert shape["STAGES"] == 3  # two tiles on their way


@pytest.mark.parametrize("shape", [(0, 8), (3, 0, 8)])
def test_no_rows(shape):
    own = leaves(draw(*shape), gains(8))
    y = rms_norm(*own)
    assert y.shape == shape
    dx, dgain = gradients(y, own, torch.ones(shape))
    assert dx.shape == shape
    assert not dgain.any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_are_registered_as_they_should_be(dtype):
    x, gain = draw(2, 5, 3, 4, 8, dtype=dtype)[:, :, 1], gains(8, dtype)
    torch.library.opcheck(rms_norm_op, (x, gain, 1e-6))
    y, rstd = rms_norm_op(x, gain, 1e-6)
    torch.library.opcheck(rms_norm_backward_op, (y, x, gain, rstd))


def test_compiled_without_a_break():
    def model(x, gain):
        return rms_norm(2 * x, gain).sin()

    check_compiled(model, [draw(6, 12), gains(12)])


def test_one_graph_for_all_row_counts():
    graphs = []

    def count(graph, inputs):
        graphs.append(graph)
        return graph

    torch._dynamo.reset()
    compiled = torch.compile(rms_norm, fullgraph=True, backend=count)
    for rows in range(4, 20):
        compiled(draw(rows, 12), gains(12))
    assert len(graphs) == 2  # the first as it is, all others with a symbol


def test_the_formula():
    x, gain = draw(7, 12, dtype=torch.bfloat16), gains(12)
    assert torch.equal(formula(x, gain), reference.rms_norm(x, gain))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [5, 64, 1009])
def test_the_simplest_kernel(width, dtype):
    x, gain = draw(7, width, dtype=dtype, offset=0.5), gains(width, dtype)
    y = torch.full_like(x, torch.nan)
    one_row[(7,)](x, gain, y, 1e-6, width, 1 << (width - 1).bit_length())
    assert_near(y, reference.rms_norm(x.double(), gain.double(), 1e-6), "y")


@pytest.mark.parametrize(
    ("x", "gain", "error", "says"),
    [
        (draw(3, 8).double(), gains(8), TypeError, "x is torch.float64"),
        (draw(3, 8), gains(8).bfloat16(), TypeError, "gain is torch.bfloat16"),
        (draw(3, 8), gains(7), ValueError, r"gain is \(7,\), not contiguous \(8,\)"),
        (draw(3, 8), gains(16)[::2], ValueError, "not contiguous"),
        (draw(8, 3).T, gains(8), ValueError, "not evenly spaced"),
        (draw(2, 3, 4, 8).transpose(0, 1)[:, :, ::2], gains(8), ValueError, "evenly"),
        (draw(3, 0), gains(0), ValueError, "no features"),
        (torch.tensor(1.0), gains(1), ValueError, "no features"),
        (draw(3, 8), gains(8).to("meta"), ValueError, "x is on cpu, gain on meta"),
    ],
)  # fmt: skip
def test_clear_errors(x, gain, error, says):
    with pytest.raises(error, match=says) as caught:
        rms_norm_op.__wrapped__(x, gain, 1e-6)
    assert "\n" not in str(caught.value)


def test_layouts():
    packed = torch.empty(2, 5, 3, 4, 8)
    assert row_layout(packed) == (120, 1, 8, 0, 8)
    assert row_layout(packed[:, :, 1]) == (40, 4, 96, 8, 8)
    assert row_layout(packed[:, :, 1, :, :4]) == (40, 4, 96, 8, 8)
    assert row_layout(packed[0, 0, 0, 0]) == (1, 1, 0, 0, 16)
    assert row_layout(torch.empty(7, 20)[:, :6]) == (7, 1, 20, 0, 4)


OUTSIDE = """
import torch
from snippets.rms_norm import reference
from snippets.triton_rms_norm.operator import rms_norm, runs_kernels
for dtype in (torch.float32, torch.bfloat16):
    x = torch.randn(3, 4, 8, dtype=dtype, requires_grad=True)
    gain = torch.rand(8, requires_grad=True)
    wide = [t.detach().double().requires_grad_() for t in (x, gain)]
    y, wanted = rms_norm(x, gain), reference.rms_norm(*wide)
    assert not runs_kernels(x)
    dy = torch.randn(3, 4, 8).to(x.dtype)
    y.backward(dy)
    wanted.backward(dy.double())
    pairs = (y, wanted), (x.grad, wide[0].grad), (gain.grad, wide[1].grad)
    print(max(float(((a.double() - b).norm() / b.norm()).detach()) for a, b in pairs))
"""


def test_outside_the_interpreter_a_cpu_takes_the_formulas():
    single, half = map(float, outside_interpreter(OUTSIDE).split())
    assert single < 5e-7 and half < 3e-3
