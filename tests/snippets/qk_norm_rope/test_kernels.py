"""QK-Norm with RoPE in one kernel, in Triton's interpreter."""

import pytest
import torch

from snippets.qk_norm.rope import rotate
from snippets.qk_norm_rope import launch
from snippets.qk_norm_rope.operator import (
    angles,
    qk_norm_rope,
    qk_norm_rope_backward_op,
    qk_norm_rope_op,
)
from snippets.rms_norm import reference
from tests.kernel_checks import (
    DTYPES,
    FAR,
    INTERPRETED,
    assert_near,
    assert_same_bits,
    check_compiled,
    check_gradients,
    check_no_gradient,
    draw,
    far,
    far_programs,
    gains,
    gradients,
    leaves,
)
from tests.wrong import suite

pytestmark = INTERPRETED
SHAPES = ((2, 5, 3, 8), (1, 7, 2, 64), (2, 3, 4, 6), (3, 1, 2, 10), (1, 1, 1, 128))


def wanted(x, gain, eps):
    """The norm of the page on RMSNorm, then the rotation of the page on QK-Norm."""
    normed = reference.rms_norm(x, gain, eps)
    return rotate(normed.transpose(1, 2)).transpose(1, 2)


def check(norm, x, gain_dtype=None, eps=1e-6):
    width = x.shape[-1]
    cos, sin = angles(x.shape[1], width)
    check_gradients(
        lambda x, gain: norm(x, gain, cos, sin, eps),
        lambda x, gain: wanted(x, gain, eps),
        (x, gains(width, gain_dtype or x.dtype)),
        slack=3,
        values=3,  # float32 angles
    )


def check_shapes_and_dtypes(norm):
    for dtype in DTYPES:
        for gain_dtype in {dtype, torch.float32}:
            for shape in SHAPES:
                check(norm, draw(*shape, dtype=dtype, offset=0.3), gain_dtype)


def check_packed_projections(norm):
    packed = draw(2, 5, 3, 4, 24)
    for part in range(3):
        check(norm, packed[:, :, part])
    uneven = draw(2, 5, 6 * 16).unflatten(-1, (6, 16))  # four queries, one k, one v
    check(norm, uneven[:, :, :4])
    check(norm, uneven[:, :, 4:5])


def check_many_rows(norm):
    check(norm, draw(3, 170, 5, 12))


def check_epsilon(norm):
    check(norm, draw(2, 3, 2, 8, scale=1e-4))


def check_far_heads(norm):
    """More than 2 ** 31 elements, and values only in the last 128 heads."""
    heads, width = 4096, 64
    time = FAR // (heads * width) + 1
    x, dy = (far(1, time, heads, width) for _ in range(2))
    for i, each in enumerate((x, dy)):
        each[:, -1, -128:] = draw(128, width, seed=i)
    gain, tables = gains(width, torch.bfloat16), angles(time, width)
    x.requires_grad_()
    with far_programs():
        y = norm(x, gain, *tables, 1e-6)
        (dx,) = gradients(y, [x], dy)
    (end,) = leaves(x[:, -1:, -128:], dtype=torch.float64)
    a, b = reference.rms_norm(end, gain.double(), 1e-6).chunk(2, dim=-1)
    cos, sin = (table[-1].double() for table in tables)
    right = torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
    assert_near(y[:, -1:, -128:].detach(), right.detach(), "y", 2)
    (slope,) = gradients(right, [end], dy[:, -1:, -128:].double())
    assert_near(dx[:, -1:, -128:], slope, "dx", 2)


CHECKS = [
    check_shapes_and_dtypes,
    check_packed_projections,
    check_epsilon,
    check_many_rows,
    check_far_heads,
]


test_right, test_rejects = suite(qk_norm_rope, CHECKS, slow=True)


@pytest.mark.parametrize("size", [2, 4])
def test_tiles_loaded_ahead_fit_into_shared_memory(size):
    for width in (2, 64, 128, 192, 4096, 8192, 16_384, 65_536):
        shape = launch.walk(width // 2, size)
        held = shape["ROWS"] * shape["COLUMNS"]
        loaded = held * (2 * 4 + 4 * size) + 4 * shape["ROWS"]
        assert (shape["STAGES"] - 1) * loaded < 232_448 - 8000  # of a Hopper GPU


def test_later_positions_take_later_angles():
    """A decoding step: one token, the angles of its own position."""
    x, gain = draw(1, 9, 2, 8), gains(8)
    cos, sin = angles(9, 8)
    whole = qk_norm_rope(x, gain, cos, sin)
    last = qk_norm_rope(x[:, 8:], gain, cos[8:], sin[8:])
    assert torch.equal(whole[:, 8:], last)


def test_an_operation_behind_it_may_give_no_gradient():
    inputs = draw(1, 2, 2, 8), gains(8)
    check_no_gradient(lambda *own: qk_norm_rope(*own, *angles(2, 8)), inputs)


def test_the_same_bits_again():
    cos, sin = angles(40, 32)

    def function(x, gain):
        return qk_norm_rope(x, gain, cos, sin)

    assert_same_bits(function, function, [draw(2, 40, 3, 32), gains(32)])


def test_no_rows():
    own = leaves(draw(0, 3, 2, 8), gains(8))
    y = qk_norm_rope(*own, *angles(3, 8))
    dx, dgain = gradients(y, own, torch.ones(0, 3, 2, 8))
    assert dx.shape == (0, 3, 2, 8)
    assert not dgain.any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_are_registered_as_they_should_be(dtype):
    x, gain = draw(2, 5, 3, 4, 8, dtype=dtype)[:, :, 1], gains(8, dtype)
    cos, sin = angles(5, 8)
    torch.library.opcheck(qk_norm_rope_op, (x, gain, cos, sin, 1e-6))
    y, rstd = qk_norm_rope_op(x, gain, cos, sin, 1e-6)
    torch.library.opcheck(qk_norm_rope_backward_op, (y, x, gain, cos, sin, rstd))


def test_compiled_without_a_break():
    cos, sin = angles(4, 12)

    def model(x, gain):
        return qk_norm_rope(2 * x, gain, cos, sin).sin()

    check_compiled(model, [draw(2, 4, 3, 12), gains(12)])


COS, SIN = angles(3, 8)
X = draw(2, 3, 4, 8)


@pytest.mark.parametrize(
    ("x", "gain", "cos", "sin", "error", "says"),
    [
        (X[0], gains(8), COS, SIN, ValueError, r"not \(batch, time, heads"),
        (X[..., :7], gains(7), COS, SIN, ValueError, "an even width"),
        (X.double(), gains(8), COS, SIN, TypeError, "x is torch.float64"),
        (X, gains(8), COS[:2], SIN, ValueError, r"cos is \(2, 4\)"),
        (X, gains(8), COS, SIN.half(), ValueError, "sin is .*float16"),
        (X, gains(8), COS, SIN.T.contiguous().T, ValueError, "sin must be contiguous"),
        (draw(2, 6, 4, 8)[:, :3], gains(8), COS, SIN, ValueError, "not evenly spaced"),
        (draw(2, 3, 4, 16)[..., ::2], gains(8), COS, SIN, ValueError, "contiguous"),
    ],
)
def test_clear_errors(x, gain, cos, sin, error, says):
    with pytest.raises(error, match=says) as caught:
        qk_norm_rope_op.__wrapped__(x, gain, cos, sin, 1e-6)
    assert "\n" not in str(caught.value)
