"""BatchNorm against pairs in float64 and torch: both modes, buffers, gradients."""

import pytest
import torch
from torch import nn

from snippets.batch_norm_vs_layer_norm.norms import BatchNorm
from tests.same_results import on_views
from tests.snippets.batch_norm_vs_layer_norm.float64 import (
    SHAPES,
    affine,
    assert_close,
    batch_norm,
    batch_norm_gradients,
    statistics,
    tokens,
)
from tests.wrong import suite


def _rows(x):
    return x.reshape(-1, x.shape[-1])


def _norm(build, d, **options):
    return affine(build(d, **options).double())


def check_train(build):
    for shape in SHAPES:
        for offset, scale, eps in ((0, 1, 1e-5), (1e4, 1, 1e-3), (0, 1e-3, 1e-5)):
            norm = _norm(build, shape[-1], eps=eps)
            x = tokens(shape, offset=offset, scale=scale)
            wanted = batch_norm(x, norm.gain, norm.bias, eps)
            assert_close(norm(x), wanted, 1e-9, 1e-9)


def check_running_statistics(build):
    for momentum in (0.1, 0.3, 1.0):
        norm = _norm(build, 5, momentum=momentum)
        mean, var = torch.zeros(5).double(), torch.ones(5).double()
        for seed in range(4):
            x = tokens((3, 2, 5), seed=seed)
            norm(x)
            batch_mean, batch_var = statistics(_rows(x))
            mean = (1 - momentum) * mean + momentum * batch_mean
            var = (1 - momentum) * var + momentum * batch_var * 6 / 5
        assert_close(norm.running_mean, mean, 1e-10, 1e-12, "running_mean")
        assert_close(norm.running_var, var, 1e-10, 1e-12, "running_var")


def check_eval(build):
    norm = _norm(build, 5, eps=1e-2)
    for seed in range(3):
        norm(tokens((3, 2, 5), seed=seed))
    norm.eval()
    kept = norm.running_mean.clone(), norm.running_var.clone()
    for shape in ((7, 5), (2, 3, 5), (1, 5), (1, 1, 5)):
        x = tokens(shape, offset=1.0, seed=9)
        y = norm(x)
        wanted = (x - kept[0]) / (kept[1] + 1e-2).sqrt() * norm.gain + norm.bias
        assert_close(y, wanted, 1e-10, 1e-10)
        alone = torch.cat([norm(row[None]) for row in _rows(x)])
        assert_close(alone, _rows(y), 1e-10, 1e-12, "one by one")
    assert torch.equal(norm.running_mean, kept[0]), "eval moved the mean"
    assert torch.equal(norm.running_var, kept[1]), "eval moved the variance"


def check_gradients(build):
    for shape in ((7, 1), (2, 3), (2, 7, 5)):
        norm = _norm(build, shape[-1], eps=1e-2)
        x = tokens(shape).requires_grad_()
        grad_y = tokens(shape, seed=1)
        inputs = (x, norm.gain, norm.bias)
        actual = torch.autograd.grad(norm(x), inputs, grad_y)
        wanted = batch_norm_gradients(grad_y, x, norm.gain, 1e-2)
        for name, ours, theirs in zip("xgb", actual, wanted, strict=True):
            assert_close(ours, theirs, 1e-9, 1e-9, f"gradient of {name}")


def check_state(build):
    norm = build(5)
    parameters = {name for name, _ in norm.named_parameters()}
    assert parameters == {"gain", "bias"}, parameters
    saved = set(norm.state_dict())
    assert saved == {"gain", "bias", "running_mean", "running_var"}, saved
    norm(tokens((4, 5), dtype=torch.float32).requires_grad_())
    assert not norm.running_mean.requires_grad, "the mean keeps a graph"
    assert not norm.running_var.requires_grad, "the variance keeps a graph"


def check_one_token_raises(build):
    for shape in ((1, 5), (1, 1, 5)):
        try:
            build(5)(tokens(shape, dtype=torch.float32))
        except ValueError:
            continue
        raise AssertionError("a single token was normalized in train mode")


def check_large_offset(build):
    norm = affine(build(7))
    x = tokens((50, 7), offset=3000.0, dtype=torch.float32)
    wanted = batch_norm(x, norm.gain, norm.bias, 1e-5)
    assert_close(norm(x), wanted, 1e-2, 1e-2)


def check_every_dtype(build):
    for dtype in (torch.bfloat16, torch.float16, torch.float32, torch.float64):
        norm = affine(build(9, eps=1e-4))
        x = tokens((40, 2, 9), offset=2.0, dtype=dtype)
        if dtype == torch.float64:
            norm = norm.double()
        y = norm(x)
        assert y.dtype == dtype, f"{y.dtype} from {dtype}"
        wanted = batch_norm(x, norm.gain, norm.bias, 1e-4)
        unit = torch.finfo(torch.promote_types(dtype, torch.float32)).eps
        half = 0.51 * torch.finfo(dtype).eps
        assert_close(y, wanted, half + 20 * unit, 100 * unit)


def check_eval_of_a_low_precision_module(build):
    for dtype in (torch.bfloat16, torch.float16):
        norm = affine(build(9, eps=1e-4)).to(dtype)
        mean, var = torch.linspace(-3, 2, 9), torch.linspace(0.3, 5, 9)
        norm.running_mean.copy_(mean)
        norm.running_var.copy_(var)
        norm.eval()
        x = tokens((40, 9), dtype=dtype)
        mean, var = norm.running_mean.double(), norm.running_var.double()
        wanted = (x.double() - mean) / (var + 1e-4).sqrt()
        wanted = wanted * norm.gain.double() + norm.bias.double()
        assert_close(norm(x), wanted.detach(), 0.51 * torch.finfo(dtype).eps, 1e-5)


def check_modes_keep_the_statistics(build):
    norm = _norm(build, 5)
    norm(tokens((3, 2, 5)))
    kept = norm.running_mean.clone(), norm.running_var.clone()
    norm.eval().train()
    assert torch.equal(norm.running_mean, kept[0]), "a change of mode moved the mean"
    assert torch.equal(norm.running_var, kept[1]), "a change of mode moved the variance"


def check_input_unchanged(build):
    x = tokens((3, 2, 5))
    before = x.clone()
    norm = _norm(build, 5)
    norm(x)
    norm.eval()(x)
    assert torch.equal(x, before), "the input was modified"


CHECKS = [
    check_train,
    check_running_statistics,
    check_eval,
    check_gradients,
    check_state,
    check_one_token_raises,
    check_large_offset,
    check_every_dtype,
    check_eval_of_a_low_precision_module,
    check_modes_keep_the_statistics,
    check_input_unchanged,
    on_views(tokens((2, 3, 5)), call=lambda build, x: _norm(build, 5)(x)),
]


test_right, test_known_wrong = suite(BatchNorm, CHECKS)


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_equals_torch(shape, dtype, training):
    """BatchNorm1d with copied weights: outputs, gradients and buffers."""
    d = shape[-1]
    ours = affine(BatchNorm(d, eps=1e-3, momentum=0.3)).to(dtype)
    theirs = nn.BatchNorm1d(d, eps=1e-3, momentum=0.3).to(dtype)
    with torch.no_grad():
        theirs.weight.copy_(ours.gain)
        theirs.bias.copy_(ours.bias)
    for norm in (ours, theirs):
        norm.running_mean.fill_(0.5)
        norm.running_var.fill_(2.5)
        norm.train(training)
    x = tokens(shape, dtype=dtype).requires_grad_()
    grad_y = tokens(shape, seed=1, dtype=dtype)

    def library(x):  # (N, C) for two dimensions, else (N, C, L)
        if x.ndim == 2:
            return theirs(x)
        flat = x.flatten(start_dim=1, end_dim=-2)
        return theirs(flat.transpose(1, 2)).transpose(1, 2).reshape(x.shape)

    mine, yours = ours(x), library(x)
    tolerance = 1e-10 if dtype == torch.float64 else 2e-4
    assert_close(mine, yours, tolerance, tolerance)
    a = torch.autograd.grad(mine, (x, ours.gain, ours.bias), grad_y)
    b = torch.autograd.grad(yours, (x, theirs.weight, theirs.bias), grad_y)
    for left, right in zip(a, b, strict=True):
        size = float(right.abs().max())
        assert_close(left, right, tolerance, tolerance * (1 + size), "gradient")
    for name in ("running_mean", "running_var"):
        left, right = getattr(ours, name), getattr(theirs, name)
        assert_close(left, right, tolerance, tolerance, name)


def test_two_tokens_store_two():
    """The batch {0, 2}: biased variance 1 normalizes, unbiased 2 is stored."""
    norm = BatchNorm(1, eps=1e-12, momentum=1.0).double()
    y = norm(torch.tensor([[0.0], [2.0]]).double())
    assert_close(y, torch.tensor([[-1.0], [1.0]]).double(), 1e-9)
    assert float(norm.running_var) == 2.0
