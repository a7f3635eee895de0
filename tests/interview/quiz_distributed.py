"""The keys of the quiz on parallel training: ranks are chunks on one device."""

import torch
from torch import Tensor, nn

from snippets.batch_norm_vs_layer_norm.norms import BatchNorm, LayerNorm
from snippets.qk_norm.axis import sharded_rms_norm
from snippets.rms_norm.reference import RMSNorm, rms_norm


def _tokens(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def variance_of_the_global_batch() -> dict[str, bool]:
    shifts = torch.tensor([0.0, 1.0, 4.0])[:, None, None]
    ranks = _tokens(3, 20, 6) + shifts  # (rank, token, channel)
    exact = ranks.flatten(0, 1).var(0, correction=0)
    means, variances = ranks.mean(1), ranks.var(1, correction=0)
    spread = means.var(0, correction=0)
    rules = {
        "average-the-variances": variances.mean(0),
        "add-the-spread-of-the-means": variances.mean(0) + spread,
        "variance-of-the-means": spread,
        "add-the-variances": variances.sum(0),
    }
    return {name: torch.allclose(value, exact) for name, value in rules.items()}


def rms_of_a_split_row() -> dict[str, bool]:
    sizes = torch.tensor([0.1, 1.0, 1.0, 10.0])
    x = _tokens(50, 4, 8) * sizes[:, None]  # (token, rank, features of a rank)
    squares = x.square()
    exact = x.flatten(1).square().mean(-1).sqrt()
    rules = {
        "sum-of-squares": (squares.sum(-1).sum(-1) / 32).sqrt(),
        "average-of-the-roots": squares.mean(-1).sqrt().mean(-1),
        "largest-root": squares.mean(-1).sqrt().amax(-1),
        "nothing": squares.mean(-1).sqrt()[:, 0],  # what the first rank has
    }
    return {name: torch.allclose(value, exact) for name, value in rules.items()}


def gain_under_sequence_parallelism() -> dict[str, bool]:
    x, grad_y = _tokens(12, 8), _tokens(24, 8)[12:]
    gain = torch.ones(8, dtype=torch.float64, requires_grad=True)

    def gradient(rows: slice) -> Tensor:
        y = rms_norm(x[rows], gain)
        return torch.autograd.grad(y, gain, grad_y[rows])[0]

    exact = gradient(slice(0, 12))
    local = torch.stack([gradient(slice(i, i + 3)) for i in range(0, 12, 3)])
    rules = {"local": local[0], "sum": local.sum(0), "average": local.mean(0)}
    return {name: torch.allclose(value, exact) for name, value in rules.items()}


def qk_norm_that_must_communicate() -> dict[str, bool]:
    heads = _tokens(50, 4, 16) * torch.tensor([0.1, 1.0, 1.0, 10.0])[:, None]
    one_gain, all_gains = _tokens(16), _tokens(4, 16)

    def needs_others(norm) -> bool:
        """Does the rank with the first two heads get other numbers alone?"""
        alone = norm(heads[:, :2], all_gains[:2])
        return not torch.allclose(alone, norm(heads, all_gains)[:, :2])

    return {
        "shared-gain": needs_others(lambda x, _: rms_norm(x, one_gain)),
        "gain-for-each-head": needs_others(lambda x, gains: rms_norm(x) * gains),
        "whole-projection": needs_others(
            lambda x, gains: rms_norm(x.flatten(1)).view(x.shape) * gains
        ),
        "l2": needs_others(lambda x, _: nn.functional.normalize(x, dim=-1)),
    }


def norm_that_breaks_data_parallelism() -> dict[str, bool]:
    x, target = _tokens(16, 6), _tokens(32, 6)[16:]

    def breaks(norm: nn.Module) -> bool:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 6), norm).double()

        def gradient(rows: slice) -> Tensor:
            loss = (model(x[rows]) - target[rows]).square().mean()
            return torch.autograd.grad(loss, model[0].weight)[0]

        workers = (gradient(slice(0, 8)) + gradient(slice(8, 16))) / 2
        return not torch.allclose(workers, gradient(slice(0, 16)))

    return {
        "layer-norm": breaks(LayerNorm(6)),
        "rms-norm": breaks(RMSNorm(6)),
        "batch-norm-training": breaks(BatchNorm(6)),
        "batch-norm-frozen": breaks(BatchNorm(6).eval()),
    }


def gradient_norm_with_replicas() -> dict[str, bool]:
    matrix, gain = _tokens(4, 8, 8), 10 * _tokens(16)[8:]  # 4 shards; replicated
    exact = torch.cat([matrix.flatten(), gain]).norm()
    shards = matrix.flatten(1).square().sum(1)  # one number for each rank
    replicas = gain.square().sum().expand(4)
    rules = {
        "sum-over-ranks": (shards + replicas).sum().sqrt(),
        "replicas-once": (shards.sum() + replicas[0]).sqrt(),
        "mean-over-ranks": (shards + replicas).mean().sqrt(),
        "one-rank": (shards[0] + replicas[0]).sqrt(),
    }
    return {name: torch.allclose(value, exact) for name, value in rules.items()}


def another_order_of_additions() -> dict[str, bool]:
    x = _tokens(1000, 512).float()
    whole = sharded_rms_norm([x])[0]
    split = torch.cat(sharded_rms_norm(list(x.chunk(8, dim=1))), dim=1)
    return {
        "same-bits": torch.equal(split, whole),
        "last-bits": not torch.equal(split, whole)
        and torch.allclose(split, whole, rtol=1e-5),
        "another-function": not torch.allclose(split, whole, rtol=1e-3),
    }
