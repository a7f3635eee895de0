"""What the page reads out of its blocks, at other sizes and seeds."""

import pytest
import torch
from torch import nn

from snippets.batch_norm_vs_layer_norm.norms import BatchNorm, LayerNorm
from tests.snippets.batch_norm_vs_layer_norm.float64 import affine, tokens

SHAPE = (3, 7, 5)


def _moved(norm, sequence, position):
    """How far token (0, 0) moves when another token changes."""
    x = tokens(SHAPE)
    changed = x.clone()
    changed[sequence, position] += 3
    return float((norm(changed) - norm(x))[0, 0].abs().max().detach())


def _norms(training):
    return (affine(build(5).double()).train(training) for build in NORMS)


NORMS = (BatchNorm, LayerNorm)


def test_batch_norm_leaks_in_training_only():
    batch_norm, layer_norm = _norms(training=True)
    assert _moved(batch_norm, 0, 6) > 0.1
    assert _moved(batch_norm, 1, 0) > 0.1
    assert _moved(layer_norm, 0, 6) == 0
    batch_norm, layer_norm = _norms(training=False)
    assert _moved(batch_norm, 0, 6) == 0
    assert _moved(layer_norm, 1, 3) == 0


def test_a_loss_on_the_past_reaches_the_future():
    for norm, leaks in zip(_norms(training=True), (True, False), strict=True):
        x = tokens(SHAPE).requires_grad_()
        (grad,) = torch.autograd.grad(norm(x)[0, 0].square().sum(), x)
        assert bool((grad[0, 6] != 0).any()) == leaks


def test_prefix_is_the_start_of_the_whole_for_layer_norm_only():
    for norm, same in zip(_norms(training=True), (False, True), strict=True):
        x = tokens(SHAPE)
        gap = (norm(x)[:, :4] - norm(x[:, :4])).abs().max()
        assert bool(gap < 1e-12) == same


@pytest.mark.parametrize("shared", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("sequences", "length"), [(1, 64), (16, 4), (8, 1)])
def test_noise_of_the_batch_mean(sequences, length, shared):
    """Var(mean) = (rho + (1 - rho) / L) / B, within sampling error."""
    options = {"generator": torch.Generator().manual_seed(0), "dtype": torch.float64}
    topic = torch.randn(4000, sequences, 1, **options)
    token = torch.randn(4000, sequences, length, **options)
    means = (shared**0.5 * topic + (1 - shared) ** 0.5 * token).mean((1, 2))
    wanted = (shared + (1 - shared) / length) / sequences
    assert float(means.var()) == pytest.approx(wanted, rel=0.1)


def test_accumulation_is_exact_for_layer_norm_only():
    x, wanted = tokens((8, 3, 5)), tokens((8, 3, 5), seed=1)
    for norm, exact in zip(_norms(training=True), (False, True), strict=True):
        gradients = []
        for parts in (1, 4):
            weight = torch.eye(5, dtype=torch.float64, requires_grad=True)
            for a, b in zip(x.chunk(parts), wanted.chunk(parts), strict=True):
                loss = (norm(a @ weight) - b).square().mean() / parts
                loss.backward()
            gradients.append(weight.grad)
        gap = (gradients[0] - gradients[1]).norm() / gradients[0].norm()
        assert bool(gap < 1e-12) == exact


def test_torch_refuses_one_value_per_feature_in_training():
    norm = nn.BatchNorm1d(5)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        norm(torch.zeros(1, 5))
    norm(torch.randn(1, 5, 2))
    norm.eval()(torch.zeros(1, 5))


def test_a_square_tensor_hides_the_wrong_layout():
    norm = nn.BatchNorm1d(5)
    with pytest.raises(RuntimeError):
        norm(torch.zeros(2, 6, 5))
    x = tokens((2, 5, 5), dtype=torch.float32)
    gap = (norm(x) - norm(x.transpose(1, 2)).transpose(1, 2)).abs().max()
    assert bool(gap > 0.1)


@pytest.mark.parametrize("shared", [0.0, 0.5])
def test_related_tokens_leave_the_stored_variance_too_small(shared):
    """By Var(mean), which N / (N - 1) covers for independent tokens only."""
    sequences, length, batches = 4, 32, 4000
    options = {"generator": torch.Generator().manual_seed(0), "dtype": torch.float64}
    topic = torch.randn(batches, sequences, 1, **options)
    token = torch.randn(batches, sequences, length, **options)
    x = shared**0.5 * topic + (1 - shared) ** 0.5 * token
    stored = x.var(dim=(1, 2), correction=1).mean()
    n = sequences * length
    lost = (shared + (1 - shared) / length) / sequences
    assert float(stored) == pytest.approx((1 - lost) * n / (n - 1), abs=0.01)


def test_exact_statistics_do_not_close_the_gap_of_related_tokens():
    options = {"generator": torch.Generator().manual_seed(0), "dtype": torch.float64}
    gaps = []
    for shared in (0.0, 0.5):
        norm = BatchNorm(8, momentum=0.0).double()  # mean 0, variance 1: exact
        topic = torch.randn(50, 4, 1, 8, **options)
        token = torch.randn(50, 4, 128, 8, **options)
        fresh = shared**0.5 * topic + (1 - shared) ** 0.5 * token
        pairs = [norm.train()(x) - norm.eval()(x) for x in fresh]
        gaps.append(float(torch.stack(pairs).detach().square().mean().sqrt()))
    assert gaps[0] < 0.1 < 0.3 < gaps[1]


def test_running_statistics_used_in_training_do_not_leak_forward():
    """PowerNorm's forward pass: divide first, track afterwards."""
    x = tokens(SHAPE)
    changed = x.clone()
    changed[0, 6] += 3
    outputs = []
    for batch in (x, changed):
        norm = BatchNorm(5).double()
        y = norm.eval()(batch)
        norm.train()(batch)
        outputs.append(y)
    assert torch.equal(outputs[0][0, :6], outputs[1][0, :6])
