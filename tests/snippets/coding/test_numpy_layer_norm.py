"""layer_norm in NumPy: the checks of its form with tensors, given arrays."""

import numpy as np
import pytest

from snippets.coding.numpy_layer_norm import numpy_layer_norm
from tests.snippets.coding.cases import in_numpy
from tests.snippets.coding.test_layer_norm import CHECKS as OF_TENSORS

JUDGED = numpy_layer_norm
CHECKS = [in_numpy(c) for c in OF_TENSORS if c.__name__ != "check_gradients"]


def _wide(x):
    return x.astype(np.result_type(x, np.float32))


def _layer_norm(x, gain, bias, eps, ddof=0, axis=-1):
    h = _wide(x)
    y = h - h.mean(axis, keepdims=True)
    return y / np.sqrt(h.var(axis, keepdims=True, ddof=ddof) + eps) * gain + bias


def unbiased_variance(x, gain, bias, eps=1e-5):
    return _layer_norm(x, gain, bias, eps, ddof=min(1, x.shape[-1] - 1)).astype(x.dtype)


def statistics_over_everything(x, gain, bias, eps=1e-5):
    return _layer_norm(x, gain, bias, eps, axis=None).astype(x.dtype)


def eps_outside_the_root(x, gain, bias, eps=1e-5):
    h = _wide(x)
    std = h.std(-1, keepdims=True)
    y = (h - h.mean(-1, keepdims=True)) / (std + eps)
    return (y * gain + bias).astype(x.dtype)


def two_moments(x, gain, bias, eps=1e-5):
    h = _wide(x)
    mean = h.mean(-1, keepdims=True)
    var = np.square(h).mean(-1, keepdims=True) - mean**2
    return ((h - mean) / np.sqrt(var + eps) * gain + bias).astype(x.dtype)


def stays_in_half(x, gain, bias, eps=1e-5):
    c = x - x.mean(-1, keepdims=True)
    r = np.sqrt(np.square(c).mean(-1, keepdims=True) + x.dtype.type(eps))
    return c / r * gain + bias


def centres_in_place(x, gain, bias, eps=1e-5):
    y = numpy_layer_norm(x, gain, bias, eps)
    x -= x.mean(-1, keepdims=True)
    return y


def returns_what_it_computed_in(x, gain, bias, eps=1e-5):
    return _layer_norm(x, gain, bias, eps)


def always_float32(x, gain, bias, eps=1e-5):
    return numpy_layer_norm(x.astype(np.float32), gain, bias, eps).astype(x.dtype)


def eps_hard_coded(x, gain, bias, eps=1e-5):
    return numpy_layer_norm(x, gain, bias)


def gain_ignored(x, gain, bias, eps=1e-5):
    return numpy_layer_norm(x, np.ones_like(gain), bias, eps)


def bias_before_the_gain(x, gain, bias, eps=1e-5):
    return numpy_layer_norm(x, gain, gain * bias, eps)


VARIANTS = [
    unbiased_variance,
    statistics_over_everything,
    eps_outside_the_root,
    two_moments,
    stays_in_half,
    centres_in_place,
    returns_what_it_computed_in,
    always_float32,
    eps_hard_coded,
    gain_ignored,
    bias_before_the_gain,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)
