"""merge: statistics of parts are those of the whole; what SyncBatchNorm sends."""

import inspect

import torch
from torch.nn.modules._functions import SyncBatchNorm

from snippets.batch_norm_implementation.synchronized import merge
from tests.same_results import on_views
from tests.snippets.batch_norm_vs_layer_norm.float64 import (
    assert_close,
    statistics,
    tokens,
)
from tests.wrong import suite


def _parts(sizes, d=5, offset=0.0, spread=3.0):
    """Tokens of each worker, whose means differ by about spread."""
    return [tokens((n, d), seed=i) + offset + spread * i for i, n in enumerate(sizes)]


def _merged(combine, parts):
    counts = torch.tensor([float(len(part)) for part in parts]).double()
    pairs = [
        torch.var_mean(part, 0, correction=0)
        if len(part)
        else (torch.zeros(part.shape[-1]).double(),) * 2
        for part in parts
    ]
    variances, means = map(torch.stack, zip(*pairs, strict=True))
    return combine(counts, means, variances)


def _check(combine, sizes, **options):
    parts = _parts(sizes, **options)
    mean, var = _merged(combine, parts)
    wanted_mean, wanted_var = statistics(torch.cat(parts))
    assert_close(mean, wanted_mean, 1e-12, 1e-12, "mean")
    assert_close(var, wanted_var, 1e-7, 1e-9, "variance")


def check_equal_parts(combine):
    _check(combine, (4, 4, 4))


def check_unequal_parts(combine):
    _check(combine, (1, 7, 31))


def check_an_empty_part(combine):
    _check(combine, (5, 0, 3))


def check_one_worker(combine):
    _check(combine, (7,))


def check_single_tokens(combine):
    _check(combine, (1, 1, 1, 1))


def check_large_offset(combine):
    _check(combine, (4, 9), offset=1e6, spread=0.01)


CHECKS = [
    check_equal_parts,
    check_unequal_parts,
    check_an_empty_part,
    check_one_worker,
    check_single_tokens,
    check_large_offset,
    on_views(torch.tensor([4.0, 2.0]), torch.rand(2, 5), torch.rand(2, 5)),
]


test_right, test_known_wrong = suite(merge, CHECKS)


def test_torch_sends_what_the_page_says():
    """2C + 1 numbers forward and 2C backward, in the torch that is installed."""
    forward = inspect.getsource(SyncBatchNorm.forward)
    assert "torch.cat([mean, invstd, count], dim=0)" in forward
    assert "dist.all_gather" in forward
    backward = inspect.getsource(SyncBatchNorm.backward)
    assert "torch.cat([sum_dy, sum_dy_xmu], dim=0)" in backward
    assert "all_reduce" in backward
