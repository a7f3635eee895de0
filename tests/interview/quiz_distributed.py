"""The keys of the quiz on parallel training: ranks are chunks on one device."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from snippets.batch_norm_vs_layer_norm.norms import BatchNorm, LayerNorm
from snippets.norms_beyond_the_decoder.gated import gated_rms_norm
from snippets.qk_norm.axis import sharded_rms_norm
from snippets.rms_norm.reference import RMSNorm, rms_norm
from snippets.without_normalization.reference import DynamicTanh


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


def norm_of_a_split_sequence() -> dict[str, bool]:
    x = _tokens(2, 12, 8) * torch.arange(1, 13)[:, None]  # (batch, time, d)

    def needs_others(norm) -> bool:
        """Does the rank with the first four tokens get other numbers alone?"""
        return not torch.allclose(norm(x[:, :4]), norm(x)[:, :4])

    return {
        "layer-norm": needs_others(lambda x: F.layer_norm(x, (8,))),
        "qk-norm": needs_others(rms_norm),
        "group-norm": needs_others(lambda x: F.group_norm(x.mT, 1).mT),
        "gated": needs_others(lambda x: gated_rms_norm(x, x.flip(-1))),
    }


def layer_that_needs_no_reduction() -> dict[str, bool]:
    x = _tokens(50, 16) * torch.tensor([0.1, 10]).repeat_interleave(8)

    def exact_alone(layer) -> bool:
        parts = [layer(part) for part in x.chunk(2, dim=1)]
        return torch.allclose(torch.cat(parts, dim=1), layer(x))

    def dyt(x: Tensor) -> Tensor:
        return DynamicTanh(x.shape[-1]).double()(x)

    return {
        "rms-norm": exact_alone(rms_norm),
        "layer-norm": exact_alone(lambda x: F.layer_norm(x, x.shape[-1:])),
        "l2": exact_alone(lambda x: F.normalize(x, dim=-1)),
        "dyt": exact_alone(dyt),
    }


def volume_of_sequence_parallelism() -> dict[str, bool]:
    ranks, sent = 4, 0
    branch = _tokens(ranks, 8, 6)  # each rank's summand, (rank, token, d)
    normed = []
    for place, chunk in enumerate(branch.chunk(ranks, dim=1)):  # reduce-scatter
        total = chunk[(place + 1) % ranks]
        for step in range(2, ranks + 1):  # on to the next rank of the ring
            sent += total.numel()
            total = total + chunk[(place + step) % ranks]
        normed.append(rms_norm(total))  # on the rank that has these tokens
    for part in normed:  # all-gather
        sent += (ranks - 1) * part.numel()
    assert torch.allclose(torch.cat(normed), rms_norm(branch.sum(0)))
    all_reduce = 2 * (ranks - 1) * branch[0].numel()  # of all ranks of a ring
    values = {"halves": 1 / 2, "same": 1, "doubles": 2, "ranks": 1 / ranks}
    return {name: sent / all_reduce == value for name, value in values.items()}


def gain_gradients_never_summed() -> dict[str, bool]:
    x, target, start = _tokens(8, 6), _tokens(16, 6)[8:], torch.ones(6).double()
    gains, losses = [start.clone().requires_grad_() for _ in range(2)], []
    raised = False
    for _ in range(5):
        for gain, rows in zip(gains, (slice(0, 4), slice(4, 8)), strict=True):
            loss = (rms_norm(x[rows], gain) - target[rows]).square().sum()
            losses.append(loss)
            try:
                (gradient,) = torch.autograd.grad(loss, gain)
            except RuntimeError:
                raised = True
            gain.data -= 0.02 * gradient
    equal, moved = torch.equal(*gains), not torch.equal(gains[0], start)
    return {
        "error": raised,
        "apart": not equal and bool(torch.stack(losses).isfinite().all()),
        "slow": equal and moved,
        "frozen": not moved,
    }


def statistics_a_rank_must_send() -> dict[str, bool]:
    mine, b = 1 + _tokens(20, 8), _tokens(40, 8)[20:] - 2
    mean = b.mean(-1, keepdim=True)
    alike = {  # other parts of the row with the same statistics
        "squares": -b,
        "variance": b + 5,
        "mean and variance": 2 * mean - b,
    }
    numbers = {"squares": 1, "variance": 1, "mean and variance": 2}

    def enough(statistics: str, norm) -> bool:
        """Is my part of the row the same, whatever else the other one is?"""
        one, other = (norm(torch.cat([mine, p], -1)) for p in (b, alike[statistics]))
        return torch.allclose(one[:, :8], other[:, :8])

    def layer_norm(x: Tensor) -> Tensor:
        return F.layer_norm(x, (16,))

    rules = {
        "squares": ("squares", "squares"),
        "moments": ("squares", "mean and variance"),
        "both-twice": ("mean and variance", "mean and variance"),
        "variances": ("squares", "variance"),
    }
    cost = {
        name: sum(numbers[statistics] for statistics in rule)
        for name, rule in rules.items()
        if enough(rule[0], rms_norm) and enough(rule[1], layer_norm)
    }
    return {name: cost.get(name) == min(cost.values()) for name in rules}
