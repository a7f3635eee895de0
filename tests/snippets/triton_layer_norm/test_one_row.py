"""LayerNorm's simplest kernel: values against float64, and wrong ones."""

from snippets.layer_norm import reference
from snippets.triton_layer_norm.one_row import by_rows
from tests.kernel_checks import (
    DTYPES,
    INTERPRETED,
    MATRICES,
    assert_near,
    draw,
    gains,
    poisoned,
)
from tests.wrong import suite

pytestmark = INTERPRETED


def check(norm, x, eps=1e-5):
    width = x.shape[-1]
    gain, bias = gains(width, x.dtype), draw(width, seed=8, dtype=x.dtype)
    wanted = reference.layer_norm(x.double(), gain.double(), bias.double(), eps)
    with poisoned():
        found = norm(x, gain, bias, eps)
    assert found.dtype == x.dtype
    assert_near(found, wanted, "y")


def check_shapes_and_dtypes(norm):
    for dtype in DTYPES:
        for shape in MATRICES:
            check(norm, draw(*shape, dtype=dtype, scale=2.0, offset=3.0))


def check_epsilon(norm):
    check(norm, draw(4, 9, scale=1e-3))


CHECKS = [check_shapes_and_dtypes, check_epsilon]


test_right, test_rejects = suite(by_rows, CHECKS)
