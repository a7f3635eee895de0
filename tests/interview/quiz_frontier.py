"""Answer keys of docs/data/quiz/frontier.yml, found out by running."""

from functools import reduce
from math import log

import torch
from torch import nn

from snippets.normalized_transformer.sphere import unit
from snippets.rms_norm.reference import RMSNorm, rms_norm
from snippets.without_normalization.reference import DynamicTanh
from snippets.without_normalization.stack import stack
from snippets.zero_centred_and_mixed.placements import NormedStream
from snippets.zero_centred_and_mixed.zero_centred import ZeroCentredRMSNorm


def faint_token_in_dynamic_tanh() -> dict[str, bool]:
    torch.manual_seed(0)
    token = 0.01 * rms_norm(torch.randn(512))
    size = DynamicTanh(512, alpha=0.5)(token).square().mean().sqrt().item()
    return {
        "lifted-to-one": 0.9 < size < 1.1,
        "as-it-came": 0.009 < size < 0.011,
        "half-of-that": 0.0045 < size < 0.0055,
        "saturated-at-one-half": 0.4 < size < 0.6,
    }


def rezero_gradients_before_the_first_step() -> dict[str, bool]:
    torch.manual_seed(0)
    model, x = stack("ReZero", depth=8), torch.randn(4, 64).double()
    (model(x) - torch.randn(4, 64)).square().mean().backward()
    alphas = all(block.alpha.grad != 0 for block in model)
    matrices = any(block.body[0].weight.grad.any() for block in model)
    return {
        "nothing": not alphas and not matrices,
        "only-the-factors": alphas and not matrices,
        "only-the-matrices": matrices and not alphas,
        "both": alphas and matrices,
    }


@torch.no_grad()
def decay_without_a_pull() -> dict[str, bool]:
    gains = {}
    for norm, offset in ((RMSNorm(4), 0), (ZeroCentredRMSNorm(4), 1)):
        stored = next(norm.parameters())
        stored.fill_(3 - offset)  # both start with a gain of 3
        for _ in range(1000):
            stored.mul_(1 - 0.1 * 0.1)  # learning rate times weight decay
        gains[type(norm)] = stored[0].item() + offset
    plain, centred = gains[RMSNorm], gains[ZeroCentredRMSNorm]
    return {
        "both-to-zero": abs(plain) < 0.01 and abs(centred) < 0.01,
        "both-to-one": abs(plain - 1) < 0.01 and abs(centred - 1) < 0.01,
        "zero-and-one": abs(plain) < 0.01 and abs(centred - 1) < 0.01,
        "both-stay": plain > 2.9 and centred > 2.9,
    }


def factor_for_unit_queries_and_keys() -> dict[str, bool]:
    torch.manual_seed(0)
    d = 128
    q, k = unit(torch.randn(2, 4000, d))
    spread = (q * k).sum(dim=-1).std().item()
    factors = {"divide-by-root-d": d**-0.5, "times-one": 1, "times-root-d": d**0.5}
    factors["times-d"] = d
    return {name: 0.8 < factor * spread < 1.2 for name, factor in factors.items()}


def lowest_loss_of_bare_cosines() -> dict[str, bool]:
    tokens = 50304
    best = torch.full((tokens,), -1.0, dtype=torch.float64)
    best[0] = 1.0  # the right token, all others as low as a cosine can be
    floor = -torch.log_softmax(best, dim=0)[0].item()
    guess = log(tokens)
    return {
        "near-zero": floor < 0.1,
        "between-one-and-two": 1 < floor < 2,
        "two-nats-below-a-guess": abs(floor - (guess - 2)) < 0.1,
        "no-better-than-a-guess": abs(floor - guess) < 0.1,
    }


def hybrid_feed_forward_half_with_a_silent_branch() -> dict[str, bool]:
    torch.manual_seed(0)
    silent = nn.Linear(16, 16, bias=False)
    nn.init.zeros_(silent.weight)
    x = 5 * torch.randn(2, 7, 16)
    y = NormedStream(16, silent)(x)
    expected = {"the-stream": x, "its-norm": rms_norm(x), "zeros": torch.zeros_like(x)}
    return {name: torch.allclose(y, z, atol=1e-5) for name, z in expected.items()}


def product_of_many_mixing_matrices() -> dict[str, bool]:
    torch.manual_seed(0)
    free = torch.randn(64, 4, 4, dtype=torch.float64)
    mixing = free.exp()
    for _ in range(50):  # Sinkhorn: rows, then columns
        mixing = mixing / mixing.sum(dim=-1, keepdim=True)
        mixing = mixing / mixing.sum(dim=-2, keepdim=True)
    size = {
        name: reduce(torch.matmul, m).abs().max().item()
        for name, m in (("free", free), ("mixing", mixing))
    }
    return {
        "both-grow": size["free"] > 10 and size["mixing"] > 10,
        "only-the-free-one-grows": size["free"] > 10 and size["mixing"] <= 1.001,
        "both-stay-below-one": size["free"] <= 1 and size["mixing"] <= 1.001,
        "the-averaging-one-vanishes": size["mixing"] < 0.01,
    }
