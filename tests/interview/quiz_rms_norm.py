"""The keys of the quiz on RMSNorm."""

import copy
import math

import torch
from torch import Tensor, nn

from snippets.layer_norm.reference import layer_norm
from snippets.rms_norm.folding import centre_stream, swap_norms
from snippets.rms_norm.partial import partial_rms_norm
from snippets.rms_norm.reference import RMSNorm, rms_norm
from snippets.rms_norm.small_decoder import SmallDecoder


def length_of_an_rmsnorm_output() -> dict[str, bool]:
    torch.manual_seed(0)
    x = 3 * torch.randn(64)
    length = rms_norm(x, torch.ones(64)).norm().item()
    values = {"one": 1, "eight": 8, "sixty-four": 64, "as-before": x.norm().item()}
    return {name: abs(length - value) < 1e-3 for name, value in values.items()}


def change_that_rmsnorm_ignores() -> dict[str, bool]:
    torch.manual_seed(0)
    x = 1 + torch.randn(64)
    changed = {
        "times-eight": 8 * x,
        "plus-five": x + 5,
        "negated": -x,
        "centred": x - x.mean(),
    }
    return {
        name: torch.allclose(rms_norm(x), rms_norm(other), atol=1e-4)
        for name, other in changed.items()
    }


def rmsnorm_applied_twice() -> dict[str, bool]:
    torch.manual_seed(0)
    x, gain = torch.randn(4, 64), 0.5 + torch.rand(64)
    n = rms_norm(x)
    twice = rms_norm(rms_norm(x, gain), gain)

    def one_factor(y: Tensor) -> bool:
        """Is twice / y the same number for all features of a token?"""
        ratio = twice / y
        return torch.allclose(ratio, ratio[:, :1].expand_as(ratio), atol=1e-4)

    exactly_squared = torch.allclose(twice, gain.square() * n, atol=1e-4)
    return {
        "same": torch.allclose(twice, gain * n, atol=1e-4),
        "squared": exactly_squared,
        "squared-and-rescaled": one_factor(gain.square() * n) and not exactly_squared,
        "rescaled": one_factor(gain * n),
    }


def rms_equal_to_the_root_of_epsilon() -> dict[str, bool]:
    y = rms_norm(torch.full((64,), 1e-3), torch.ones(64), eps=1e-6)
    size = y.square().mean().sqrt().item()
    values = {"one": 1, "almost-one": 0.999, "root-of-half": 0.707, "half": 0.5}
    return {name: abs(size - value) < 5e-4 for name, value in values.items()}


def direction_of_an_rmsnorm_gradient() -> dict[str, bool]:
    torch.manual_seed(0)
    x, gain, g = torch.randn(3, 64).double()

    def gradient(x: Tensor) -> Tensor:
        leaf = x.clone().requires_grad_()
        (rms_norm(leaf, gain, eps=0) * g).sum().backward()
        return leaf.grad

    dx = gradient(x)
    cosine = torch.cosine_similarity(dx, x, dim=0).item()
    return {
        "orthogonal": abs(cosine) < 1e-9,
        "sums-to-zero": abs(dx.sum().item()) < 1e-9,
        "parallel": abs(cosine) > 1 - 1e-9,
        "scale-free": torch.allclose(dx.norm(), gradient(2 * x).norm()),
    }


def swap_in_a_trained_model() -> dict[str, bool]:
    torch.manual_seed(0)
    model = SmallDecoder(d=16, layers=2, heads=2, context=8).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    text = torch.randint(256, (2, 8))

    def copy_gains(model: SmallDecoder) -> None:
        """RMSNorms with the gains of the LayerNorms, whose biases are lost."""
        for parent in (*model.branches, model):
            gain, replacement = parent.norm.weight, RMSNorm(16, parent.norm.eps)
            replacement.gain = nn.Parameter(gain.detach().clone())
            parent.norm = replacement

    def keeps_logits(*steps) -> bool:
        changed = copy.deepcopy(model)
        for step in steps:
            step(changed)
        return torch.allclose(changed(text), model(text), atol=1e-9)

    return {
        "copy-gains": keeps_logits(copy_gains),
        "move-biases": keeps_logits(swap_norms),
        "centre-writers": keeps_logits(centre_stream, copy_gains),
        "both": keeps_logits(centre_stream, swap_norms),
    }


def cosine_behind_a_relu() -> dict[str, bool]:
    torch.manual_seed(0)
    x = torch.randn(100_000).relu()
    cosine = torch.cosine_similarity(rms_norm(x), layer_norm(x), dim=0).item()
    values = {"one": 1, "high": 0.83, "half": 0.5, "low": 1 / math.pi}
    return {name: abs(cosine - value) < 0.01 for name, value in values.items()}


def large_feature_outside_the_part() -> dict[str, bool]:
    token = torch.ones(256, dtype=torch.float64)
    token[1::2], token[-1] = -1, 100
    size = partial_rms_norm(token, 64).square().mean().sqrt().item()
    values = {"one": 1, "half": 0.5, "six": 6.3, "hundred": 100}
    return {name: abs(size / value - 1) < 0.05 for name, value in values.items()}
