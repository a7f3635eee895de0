"""Residual addition and RMSNorm in one kernel, in Triton's interpreter."""

import pytest
import torch

from scripts.measure.kernels.gate import distance
from snippets.fused_residual.operator import (
    add_rms_norm,
    add_rms_norm_backward_op,
    add_rms_norm_op,
)
from snippets.rms_norm import reference
from snippets.triton_rms_norm import launch
from snippets.triton_rms_norm.forward import EARLY
from snippets.triton_rms_norm.operator import rms_norm
from tests.kernel_checks import (
    DTYPES,
    FAR,
    INTERPRETED,
    SHAPES,
    assert_near,
    assert_nothing_filled,
    assert_same_bits,
    check_compiled,
    check_gradients,
    check_no_gradient,
    check_one_row_on_a_cpu,
    draw,
    far,
    far_programs,
    gains,
    gradients,
    leaves,
    narrowed,
)
from tests.wrong import suite

pytestmark = INTERPRETED


def wanted(x, branch, gain, eps):
    stream = x + branch
    return stream, reference.rms_norm(stream, gain, eps)


def check(norm, x, branch, gain_dtype=None, eps=1e-6):
    check_gradients(
        lambda *inputs: norm(*inputs, eps),
        lambda *inputs: wanted(*inputs, eps),
        (x, branch, gains(x.shape[-1], gain_dtype or x.dtype)),
        slack=4,
        values=2,  # the stream is rounded before the norm
        dtype=x.dtype,
    )


def pair(*shape, dtype=torch.float32, **options):
    return [draw(*shape, seed=seed, dtype=dtype, **options) for seed in (1, 2)]


def check_shapes_and_dtypes(norm):
    for dtype in DTYPES:
        for gain_dtype in {dtype, torch.float32}:
            for shape in SHAPES:
                check(norm, *pair(*shape, dtype=dtype, offset=0.3), gain_dtype)


def check_many_rows(norm):
    check(norm, *pair(2600, 6))


def check_rows_with_a_late_gain(norm):
    for dtype in (torch.float32, torch.bfloat16):
        check(norm, *pair(3, EARLY.value + 1, dtype=dtype))


@narrowed
def check_wide_rows(norm):
    for widest in (launch.WHOLE_FORWARD, launch.WHOLE_BACKWARD):
        check(norm, *pair(3, widest + 1))


@narrowed
def check_wide_rows_round_once(norm):
    """Where two gradients nearly cancel, a rounding in between is what is left."""
    shape, half = (16, launch.WHOLE_BACKWARD + 1), torch.float16
    own, gain = leaves(*pair(*shape, dtype=half)), gains(shape[-1], half)
    slopes = [draw(*shape, seed=seed, dtype=half) for seed in (5, 6)]
    stream = sum(own).detach().double().requires_grad_()
    right = stream, reference.rms_norm(stream, gain.double(), 1e-6)
    (exact,) = gradients(right, [stream], [each.double() for each in slopes])
    (dx,) = gradients(norm(*own, gain, 1e-6), own[:1], slopes)
    assert distance(dx, exact)[1] < 1e-3  # the share of elements beyond a unit


def check_epsilon(norm):
    check(norm, *pair(4, 9, scale=1e-4))


def check_rows_with_gaps(norm):
    x, branch = draw(6, 40, seed=1), draw(6, 50, seed=2)
    check(norm, x[:, :24], branch[:, 7:31])


def check_the_norm_is_of_the_rounded_stream(norm):
    """What a later layer reads is what was normed: two kernels give the same bits."""
    for dtype in DTYPES:
        x, branch = pair(16, 80, dtype=dtype)
        gain = gains(80, dtype)
        stream, y = norm(x, branch, gain, 1e-6)
        assert torch.equal(y, rms_norm(stream, gain, 1e-6))


def check_far_rows(norm):
    """More than 2 ** 31 elements, and values only in the last 69 rows."""
    first = FAR // 64
    x, branch, dy, dstream = (far(first + 69, 64) for _ in range(4))
    for i, each in enumerate((x, branch, dy, dstream)):
        each[first:] = draw(69, 64, seed=i)
    x.requires_grad_()
    with far_programs():
        outputs = norm(x, branch, gains(64, torch.bfloat16), 1e-6)
        (dx,) = gradients(outputs, [x], (dstream, dy))
    (end,) = leaves(x[first:], dtype=torch.float64)
    right = wanted(end, branch[first:].double(), gains(64, torch.bfloat16), 1e-6)
    for found, each in zip(outputs, right, strict=True):
        assert_near(found[first:].detach(), each.detach(), "output", 2)
    slopes = [each[first:].double() for each in (dstream, dy)]
    assert_near(dx[first:], gradients(right, [end], slopes)[0], "dx", 4)


def check_nothing_is_filled(norm):
    assert_nothing_filled(lambda *own: norm(*own)[1], [*pair(4, 8), gains(8)])


CHECKS = [  # the cheap ones first: most variants go no further
    check_nothing_is_filled,
    check_epsilon,
    check_the_norm_is_of_the_rounded_stream,
    check_rows_with_gaps,
    check_many_rows,
    check_far_rows,
    check_wide_rows,
    check_rows_with_a_late_gain,
    check_wide_rows_round_once,
    check_shapes_and_dtypes,
]


def test_right_at_the_true_widths():
    check_wide_rows.__wrapped__(add_rms_norm)


test_right, test_rejects = suite(add_rms_norm, CHECKS, slow=True)


def test_one_output_may_go_unused():
    for used in (0, 1):
        own = leaves(*pair(5, 8), gains(8))
        wide = leaves(*own, dtype=torch.float64)
        dy = draw(5, 8, seed=4)
        ours = gradients(add_rms_norm(*own)[used], own, dy)
        theirs = gradients(wanted(*wide, 1e-6)[used], wide, dy.double())
        for one, other in zip(ours, theirs, strict=True):
            assert torch.allclose(one.double(), other, rtol=1e-5, atol=1e-6)


def test_an_operation_behind_it_may_give_no_gradient():
    check_no_gradient(add_rms_norm, [*pair(4, 8), gains(8)])


def test_one_row_on_a_cpu():
    check_one_row_on_a_cpu("fused_residual", "add_rms_norm", 3)


def test_the_same_bits_again():
    inputs = *pair(70, 130), gains(130)
    assert_same_bits(add_rms_norm, add_rms_norm, inputs)


def test_no_rows():
    own = leaves(*pair(0, 8), gains(8))
    dx, _, dgain = gradients(add_rms_norm(*own), own, pair(0, 8))
    assert dx.shape == (0, 8)
    assert not dgain.any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_are_registered_as_they_should_be(dtype):
    x, branch, gain = *pair(2, 5, 8, dtype=dtype), gains(8, dtype)
    torch.library.opcheck(add_rms_norm_op, (x, branch, gain, 1e-6))
    stream, y, rstd = add_rms_norm_op(x, branch, gain, 1e-6)
    torch.library.opcheck(add_rms_norm_backward_op, (y, x, stream, gain, rstd))


def test_compiled_without_a_break():
    def model(x, branch, gain):
        stream, y = add_rms_norm(x, 2 * branch, gain)
        return stream.sin(), y.cos()

    check_compiled(model, [*pair(6, 12), gains(12)])


@pytest.mark.parametrize(
    ("x", "branch", "gain", "error", "says"),
    [
        (draw(3, 8), draw(4, 8), gains(8), ValueError, r"branch \(4, 8\)"),
        (draw(3, 8), draw(3, 8).half(), gains(8), ValueError, "branch .*float16"),
        (draw(3, 8).double(), draw(3, 8), gains(8), TypeError, "x is torch.float64"),
        (draw(2, 3, 16)[..., ::2], draw(2, 3, 8), gains(8), ValueError, "contiguous"),
        (
            draw(2, 6, 8)[:, ::2],
            draw(2, 6, 8)[:, :3],
            gains(8),
            ValueError,
            "one stride",
        ),
    ],
)
def test_clear_errors(x, branch, gain, error, says):
    with pytest.raises(error, match=says) as caught:
        add_rms_norm_op.__wrapped__(x, branch, gain, 1e-6)
    assert "\n" not in str(caught.value)
