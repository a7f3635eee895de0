"""LayerNorm's kernels in Triton's interpreter: values, gradients, rows, errors."""

import pytest
import torch

from snippets.layer_norm import reference
from snippets.triton_layer_norm.operator import (
    layer_norm,
    layer_norm_backward_op,
    layer_norm_op,
)
from snippets.triton_rms_norm import launch
from snippets.triton_rms_norm.forward import EARLY
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
)
from tests.wrong import suite

pytestmark = INTERPRETED


def biases(width, dtype=torch.float32):
    return draw(width, seed=8, dtype=dtype)


def check(norm, x, dtype=torch.float32, eps=1e-5):
    width = x.shape[-1]
    check_gradients(
        lambda x, gain, bias: norm(x, gain, bias, eps),
        lambda x, gain, bias: reference.layer_norm(x, gain, bias, eps),
        (x, gains(width, dtype), biases(width, dtype)),
        slack=2,
    )


def check_shapes_and_dtypes(norm):
    for dtype in DTYPES:
        for affine_dtype in {dtype, torch.float32}:
            for shape in SHAPES[:-1]:  # of two features dx is nothing but rounding
                x = draw(*shape, dtype=dtype, scale=2.0, offset=0.5)
                check(norm, x, affine_dtype)


def check_far_means(norm):
    """Values a thousand standard deviations from zero: nothing may cancel."""
    x = draw(3, 96, offset=1000.0)
    wanted = reference.layer_norm(x.double(), gains(96).double(), biases(96).double())
    found = norm(x, gains(96), biases(96), 1e-5)
    assert_near(found, wanted, "y", slack=100)  # float32 holds x to 6e-5 only


def check_many_rows(norm):
    check(norm, draw(2600, 6, offset=3.0))
    check(norm, draw(12, 1100, dtype=torch.bfloat16))


def check_rows_with_a_late_gain(norm):
    for dtype in (torch.float32, torch.bfloat16):
        check(norm, draw(5, EARLY.value + 1, dtype=dtype, offset=0.5))


@narrowed
def check_rows_held_as_pairs(norm):
    for width in (launch.WHOLE_FORWARD - 9, launch.WHOLE_FORWARD + 9):
        for dtype in (torch.bfloat16, torch.float16):
            check(norm, draw(2, width, dtype=dtype, offset=0.5), dtype)


@narrowed
def check_wide_rows(norm):
    check(norm, draw(3, launch.WHOLE_FORWARD + 465, offset=1.0))
    check(norm, draw(9, launch.WHOLE_BACKWARD + 1))


def check_epsilon(norm):
    for scale in (1e-3, 1e-5):
        check(norm, draw(4, 9, scale=scale), eps=1e-6)
    assert torch.equal(norm(torch.ones(3, 8), gains(8), biases(8), 1e-5)[1], biases(8))


@narrowed
def check_epsilon_of_wide_rows(norm):
    check(norm, draw(2, launch.WHOLE_FORWARD + 1, scale=1e-4), eps=1e-6)


def check_rows_with_gaps(norm):
    check(norm, draw(2, 5, 3, 4, 24)[:, :, 1])
    check(norm, draw(6, 40)[:, :24])


def check_far_rows(norm):
    x, half = far_rows(), torch.bfloat16
    wanted = reference.layer_norm(
        x.double(), gains(64, half).double(), biases(64, half).double()
    )
    assert_near(norm(x, gains(64, half), biases(64, half), 1e-5), wanted, "y")


@narrowed
def check_far_outputs(norm):
    """So many wide rows that far_programs cuts the walk of affine_gradients as well."""
    half = torch.bfloat16
    wide = 2 * launch.WHOLE_FORWARD + 1
    for first, rows, width in (FAR // 64, 69, 64), (2**21, 2, wide):
        check_last_rows(
            lambda *inputs: norm(*inputs, 1e-5),
            lambda *inputs: reference.layer_norm(*inputs, 1e-5),
            [gains(width, half), biases(width, half)],
            first,
            rows,
            2,
        )


CHECKS = [  # the cheap ones first: most variants go no further
    check_epsilon,
    check_far_means,
    check_rows_with_gaps,
    check_far_rows,
    check_epsilon_of_wide_rows,
    check_many_rows,
    check_wide_rows,
    check_far_outputs,
    check_rows_with_a_late_gain,
    check_rows_held_as_pairs,
    check_shapes_and_dtypes,
]


def test_right_at_the_true_widths():
    check_epsilon_of_wide_rows.__wrapped__(layer_norm)


test_right, test_rejects = suite(layer_norm, CHECKS, slow=True)


def test_an_operation_behind_it_may_give_no_gradient():
    check_no_gradient(layer_norm, [draw(4, 8), gains(8), draw(8)])


def test_one_row_on_a_cpu():
    check_one_row_on_a_cpu("triton_layer_norm", "layer_norm", 3)


def test_the_same_bits_again():
    inputs = draw(70, 130), gains(130), biases(130)
    assert_same_bits(layer_norm, layer_norm, inputs)


def test_no_rows():
    own = leaves(draw(0, 8), gains(8), biases(8))
    dx, *affine = gradients(layer_norm(*own), own, torch.ones(0, 8))
    assert dx.shape == (0, 8)
    assert not any(gradient.any() for gradient in affine)


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_are_registered_as_they_should_be(dtype):
    x = draw(2, 5, 3, 4, 8, dtype=dtype)[:, :, 1]
    gain, bias = gains(8, dtype), biases(8, dtype)
    torch.library.opcheck(layer_norm_op, (x, gain, bias, 1e-5))
    y, mean, rstd = layer_norm_op(x, gain, bias, 1e-5)
    torch.library.opcheck(layer_norm_backward_op, (y, x, gain, mean, rstd))


def test_compiled_without_a_break():
    def model(x, gain, bias):
        return layer_norm(2 * x, gain, bias).sin()

    check_compiled(model, [draw(6, 12), gains(12), biases(12)])


@pytest.mark.parametrize(
    ("x", "gain", "bias", "error", "says"),
    [
        (draw(3, 8).double(), gains(8), biases(8), TypeError, "x is torch.float64"),
        (draw(3, 8), gains(8), biases(7), ValueError, r"bias is \(7,\)"),
        (
            draw(3, 8).half(),
            gains(8).half(),
            biases(8),
            ValueError,
            "bias is .*float32",
        ),
        (draw(3, 8), gains(8), biases(16)[::2], ValueError, "not contiguous"),
        (draw(8, 3).T, gains(8), biases(8), ValueError, "not evenly spaced"),
    ],
)
def test_clear_errors(x, gain, bias, error, says):
    with pytest.raises(error, match=says) as caught:
        layer_norm_op.__wrapped__(x, gain, bias, 1e-5)
    assert "\n" not in str(caught.value)
