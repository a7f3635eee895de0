"""rms_norm in NumPy: the checks of its form with tensors, given arrays."""

import numpy as np
import pytest

from snippets.coding.numpy_rms_norm import numpy_rms_norm
from tests.snippets.coding.cases import in_numpy
from tests.snippets.coding.test_rms_norm import CHECKS as OF_TENSORS

JUDGED = numpy_rms_norm
CHECKS = [in_numpy(c) for c in OF_TENSORS if c.__name__ != "check_gradients"]


def _wide(x):
    return x.astype(np.result_type(x, np.float32))


def _root(h, eps):
    return np.sqrt(np.square(h).mean(-1, keepdims=True) + eps)


def squares_in_half(x, gain, eps=1e-6):
    h = _wide(x)
    mean_square = _wide(np.square(x)).mean(-1, keepdims=True)
    return (h / np.sqrt(mean_square + eps) * gain).astype(x.dtype)


def rounds_before_the_gain(x, gain, eps=1e-6):
    h = _wide(x)
    return ((h / _root(h, eps)).astype(x.dtype) * gain).astype(x.dtype)


def dtype_follows_the_gain(x, gain, eps=1e-6):
    h = _wide(x)
    return (h / _root(h, eps)).astype(x.dtype) * gain


def always_float32(x, gain, eps=1e-6):
    h = x.astype(np.float32)
    return (h / _root(h, eps) * gain).astype(x.dtype)


def returns_what_it_computed_in(x, gain, eps=1e-6):
    h = _wide(x)
    return h / _root(h, eps) * gain


def mean_subtracted(x, gain, eps=1e-6):
    h = _wide(x)
    return numpy_rms_norm(h - h.mean(-1, keepdims=True), gain, eps).astype(x.dtype)


def eps_outside_the_root(x, gain, eps=1e-6):
    h = _wide(x)
    return (h / (_root(h, 0.0) + eps) * gain).astype(x.dtype)


def length_for_root_mean_square(x, gain, eps=1e-6):
    h = _wide(x)
    length = np.linalg.norm(h, axis=-1, keepdims=True)
    return (h / np.sqrt(length**2 + eps) * gain).astype(x.dtype)


def length_of_everything(x, gain, eps=1e-6):
    h = _wide(x)
    return (h / np.sqrt(np.square(h).mean() + eps) * gain).astype(x.dtype)


def scales_in_place(x, gain, eps=1e-6):
    y = numpy_rms_norm(x, gain, eps)
    x /= 2
    return y


VARIANTS = [
    squares_in_half,
    rounds_before_the_gain,
    dtype_follows_the_gain,
    always_float32,
    returns_what_it_computed_in,
    mean_subtracted,
    eps_outside_the_root,
    length_for_root_mean_square,
    length_of_everything,
    scales_in_place,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)
