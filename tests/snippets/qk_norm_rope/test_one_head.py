"""The simplest kernel that norms and rotates heads: against float64, and wrong ones."""

from snippets.qk_norm.rope import rotate
from snippets.qk_norm_rope.one_head import by_heads
from snippets.qk_norm_rope.operator import angles
from snippets.rms_norm import reference
from tests.kernel_checks import (
    DTYPES,
    INTERPRETED,
    assert_near,
    draw,
    gains,
    poisoned,
)
from tests.wrong import suite

pytestmark = INTERPRETED


def check(norm, x, eps=1e-6):
    gain, tables = gains(x.shape[-1], x.dtype), angles(x.shape[1], x.shape[-1])
    normed = reference.rms_norm(x.double(), gain.double(), eps)
    wanted = rotate(normed.transpose(1, 2)).transpose(1, 2)
    with poisoned():
        found = norm(x, gain, *tables, eps)
    assert found.dtype == x.dtype
    assert_near(found, wanted, "y", 3)  # float32 angles


def check_shapes_and_dtypes(norm):
    for dtype in DTYPES:
        for shape in ((2, 5, 3, 8), (1, 7, 2, 64), (3, 1, 2, 16), (1, 1, 1, 128)):
            check(norm, draw(*shape, dtype=dtype, offset=0.3))


def check_packed_projections(norm):
    uneven = draw(2, 5, 6 * 16).unflatten(-1, (6, 16))  # four queries, one k, one v
    check(norm, uneven[:, :, :4])
    check(norm, uneven[:, :, 4:5])


def check_epsilon(norm):
    check(norm, draw(2, 3, 2, 8, scale=1e-4))


CHECKS = [check_shapes_and_dtypes, check_packed_projections, check_epsilon]


test_right, test_rejects = suite(by_heads, CHECKS)
