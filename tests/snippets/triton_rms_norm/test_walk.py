"""The simplest walk over the rows: gradients against float64, and wrong ones."""

import torch

from snippets.rms_norm import reference
from snippets.triton_rms_norm.walk import by_walking
from tests.kernel_checks import (
    DTYPES,
    INTERPRETED,
    MATRICES,
    assert_near,
    draw,
    gains,
    gradients,
    leaves,
    poisoned,
)
from tests.wrong import suite

pytestmark = INTERPRETED


def check(backward, x, eps=1e-6, programs=2):
    gain, dy = gains(x.shape[-1], x.dtype), draw(*x.shape, seed=3, dtype=x.dtype)
    wide = leaves(x, gain, dtype=torch.float64)
    wanted = gradients(reference.rms_norm(*wide, eps), wide, dy.double())
    with poisoned():
        found = backward(dy, x, gain, eps, programs)
    for got, right, what in zip(found, wanted, ("dx", "dgain"), strict=True):
        assert got.dtype == x.dtype
        assert_near(got, right, what, 1.5)


def check_shapes_and_dtypes(backward):
    for dtype in DTYPES:
        for shape in MATRICES:
            check(backward, draw(*shape, dtype=dtype, scale=2.0, offset=0.5))


def check_programs(backward):
    for programs in (1, 3, 9):  # more than there are rows, too
        check(backward, draw(7, 20), programs=programs)


CHECKS = [check_shapes_and_dtypes, check_programs]


test_right, test_rejects = suite(by_walking, CHECKS)
