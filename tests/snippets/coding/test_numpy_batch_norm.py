"""batch_norm in NumPy: the checks of its form with tensors, given arrays."""

import numpy as np
import pytest

from snippets.coding.numpy_batch_norm import numpy_batch_norm
from tests.snippets.coding.cases import in_numpy
from tests.snippets.coding.test_batch_norm import CHECKS as OF_TENSORS

JUDGED = numpy_batch_norm
CHECKS = [in_numpy(c) for c in OF_TENSORS if c.__name__ != "check_gradients"]


def _norm(x, gain, bias, mean, var, eps, root=True):
    scale = np.sqrt(var + eps) if root else np.sqrt(var) + eps
    return ((x.astype(gain.dtype) - mean) / scale * gain + bias).astype(x.dtype)


def running_arrays_rebound(x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5):
    rm, rv = rm.copy(), rv.copy()
    return numpy_batch_norm(x, gain, bias, rm, rv, training, momentum, eps)


def running_variance_biased(x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5):
    old = rv.copy()
    y = numpy_batch_norm(x, gain, bias, rm, rv, training, momentum, eps)
    if training:
        rv[:] = (1 - momentum) * old + momentum * x.astype(rv.dtype).var(0)
    return y


def normalizes_by_the_unbiased(x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5):
    y = numpy_batch_norm(x, gain, bias, rm, rv, training, momentum, eps)
    if training:
        h = x.astype(rv.dtype)
        y = _norm(x, gain, bias, h.mean(0), h.var(0, ddof=1), eps)
    return y


def momentum_of_the_old(x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5):
    return numpy_batch_norm(x, gain, bias, rm, rv, training, 1 - momentum, eps)


def running_statistics_in_training(
    x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5
):
    numpy_batch_norm(x, gain, bias, rm, rv, training, momentum, eps)
    return _norm(x, gain, bias, rm, rv, eps)


def batch_statistics_in_evaluation(
    x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5
):
    if training:
        return numpy_batch_norm(x, gain, bias, rm, rv, training, momentum, eps)
    h = x.astype(rv.dtype)
    return _norm(x, gain, bias, h.mean(0), h.var(0), eps)


def tracks_in_evaluation(x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5):
    y = numpy_batch_norm(x, gain, bias, rm, rv, training, momentum, eps)
    if not training:
        rm += momentum * (x.mean(0) - rm)
    return y


def statistics_over_the_features(
    x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5
):
    y = numpy_batch_norm(x, gain, bias, rm, rv, training, momentum, eps)
    if training:
        h = x.astype(rv.dtype)
        y = _norm(x, gain, bias, h.mean(1)[:, None], h.var(1)[:, None], eps)
    return y


def eps_outside_the_root(x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5):
    y = numpy_batch_norm(x, gain, bias, rm, rv, training, momentum, eps)
    return y if training else _norm(x, gain, bias, rm, rv, eps, root=False)


def two_moments(x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5):
    y = numpy_batch_norm(x, gain, bias, rm, rv, training, momentum, eps)
    if training:
        h = x.astype(rv.dtype)
        mean = h.mean(0)
        y = _norm(x, gain, bias, mean, np.square(h).mean(0) - mean**2, eps)
    return y


def single_sample_gives_zeros(x, gain, bias, rm, rv, training, momentum=0.1, eps=1e-5):
    if training and len(x) < 2:
        return x * 0
    return numpy_batch_norm(x, gain, bias, rm, rv, training, momentum, eps)


VARIANTS = [
    running_arrays_rebound,
    running_variance_biased,
    normalizes_by_the_unbiased,
    momentum_of_the_old,
    running_statistics_in_training,
    batch_statistics_in_evaluation,
    tracks_in_evaluation,
    statistics_over_the_features,
    eps_outside_the_root,
    two_moments,
    single_sample_gives_zeros,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)
