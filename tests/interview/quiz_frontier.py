"""Answer keys of docs/data/quiz/frontier.yml, found out by running."""

from functools import reduce
from math import log

import torch
from torch import nn

from snippets.normalized_transformer.sphere import unit
from snippets.norms_beyond_the_decoder.ada_ln import AdaLNZero
from snippets.norms_beyond_the_decoder.attention import sink_attention
from snippets.norms_beyond_the_decoder.delta_rule import delta_rule
from snippets.norms_beyond_the_decoder.gated import gated_rms_norm
from snippets.rms_norm.reference import RMSNorm, rms_norm
from snippets.without_normalization.reference import DynamicTanh
from snippets.without_normalization.stack import stack
from snippets.zero_centred_and_mixed.mixed import mix_ln
from snippets.zero_centred_and_mixed.placements import NormedStream, PostNorm
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


def gate_that_closes_everything() -> dict[str, bool]:
    x = torch.randn(8, 64, generator=torch.Generator().manual_seed(0)).double()
    closed = torch.full_like(x, -4.0)
    size = gated_rms_norm(x, closed).square().mean().sqrt().item()
    return {
        "nearly-zero": size < 0.1,
        "nearly-one": 0.99 < size < 1.01,
        "one-half": 0.4 < size < 0.6,
        "the-size-of-x": abs(size - 3 * x.square().mean().sqrt().item()) < 0.1,
    }


def key_of_length_two() -> dict[str, bool]:
    key = torch.zeros(20, 3, dtype=torch.float64)
    key[:, 1] = 2.0
    ones = torch.ones(20, 1, dtype=torch.float64)
    y, _ = delta_rule(key / 2, key, ones, 0.75 * ones[:, 0], ones)
    errors = (2 * y - 1).abs().squeeze()  # what the state returns for the key
    ratio = (errors[1:] / errors[:-1]).mean().item()
    return {
        "gone-after-one": errors[0].item() < 1e-9,
        "a-quarter-of-it": abs(ratio - 0.25) < 1e-6,
        "the-same-size": abs(ratio - 1) < 1e-6,
        "twice-as-large": abs(ratio - 2) < 1e-6,
    }


def first_gradients_of_ada_ln_zero() -> dict[str, bool]:
    torch.manual_seed(0)
    block = AdaLNZero(8, nn.Linear(8, 8))
    x, target = torch.randn(2, 3, 5, 8)
    (block(x, torch.randn(3, 8)) - target).square().mean().backward()
    shift, scale, alpha = block.modulation[1].weight.grad.split(8)
    moves = [bool(g.any()) for g in (shift, scale, alpha, block.body.weight.grad)]
    return {
        "none-of-them": moves == [False, False, False, False],
        "only-alpha": moves == [False, False, True, False],
        "shift-scale-and-alpha": moves == [True, True, True, False],
        "all-of-them": moves == [True, True, True, True],
    }


def sink_as_large_as_the_logits() -> dict[str, bool]:
    alike = torch.zeros(1, 1, 3, 4, dtype=torch.float64)  # all logits are zero
    found = sink_attention(alike, alike, torch.ones_like(alike), torch.zeros(1))
    weight = found[0, 0, 2, 0].item()  # the third query sees three keys
    values = {"one": 1, "three-quarters": 3 / 4, "half": 1 / 2, "quarter": 1 / 4}
    return {name: abs(weight - value) < 1e-9 for name, value in values.items()}


def post_norm_layers_of_mix_ln() -> dict[str, bool]:
    layers = mix_ln(16, 2, 16)
    post = {n for n, layer in enumerate(layers, 1) if type(layer[0]) is PostNorm}
    return {
        "first": post == {1, 2, 3, 4},
        "last": post == {13, 14, 15, 16},
        "every-fourth": post == {4, 8, 12, 16},
        "ends": post == {1, 2, 15, 16},
    }


def one_plus_forgotten_in_ada_ln_zero() -> dict[str, bool]:
    def changed(one: float) -> set[str]:
        """Which parameters have moved after three steps."""

        class Block(AdaLNZero):
            def forward(self, x: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
                parts = self.modulation(c).unsqueeze(1).chunk(3, dim=-1)
                shift, scale, alpha = parts
                return x + alpha * self.body((one + scale) * self.norm(x) + shift)

        torch.manual_seed(0)
        block = Block(8, nn.Linear(8, 8, bias=False))
        before = {n: p.detach().clone() for n, p in block.named_parameters()}
        x, target = torch.randn(2, 3, 5, 8)
        condition = torch.randn(3, 8)
        optimizer = torch.optim.SGD(block.parameters(), 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (block(x, condition) - target).square().mean().backward()
            optimizer.step()
        return {n for n, p in block.named_parameters() if not torch.equal(p, before[n])}

    right, wrong = changed(1.0), changed(0.0)
    assert right == {"body.weight", "modulation.1.weight", "modulation.1.bias"}
    return {
        "as-usual": wrong == right,
        "shift-only": wrong == {"modulation.1.weight", "modulation.1.bias"},
        "nothing": not wrong,
        "slowly": bool(wrong) and wrong < right,
    }
