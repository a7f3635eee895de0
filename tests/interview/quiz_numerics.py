"""The keys of the quiz on number formats."""

import torch
from torch import nn
from torch.nn import functional as F

from snippets.layer_norm.moments import sum_of_squares
from snippets.low_precision.cast_order import llama_style
from snippets.low_precision.naive import rms_norm_naive
from snippets.rms_norm.reference import rms_norm


def float16_row_with_a_300() -> dict[str, bool]:
    torch.manual_seed(0)
    x = torch.randn(64).half()
    x[7] = 300
    y = rms_norm_naive(x, torch.ones(64).half(), 1e-6)
    infinite = y.isinf()
    return {
        "nan": bool(y.isnan().all()),
        "infinite": bool(infinite[7]) and infinite.sum().item() == 1,
        "zeros": bool((y == 0).all()),
        "right": torch.allclose(y, rms_norm(x), atol=1e-2),
    }


def ten_to_the_fifth_squared_in_bfloat16() -> dict[str, bool]:
    x = torch.tensor(1e5, dtype=torch.bfloat16)
    square = (x * x).item()
    return {
        "infinite": square == float("inf"),
        "close": square != 1e10 and abs(square / 1e10 - 1) < 0.01,
        "exact": square == 1e10,
        "capped": square == 65504,
    }


def four_thousand_ones_in_bfloat16() -> dict[str, bool]:
    total = one = torch.tensor(1.0, dtype=torch.bfloat16)
    for _ in range(4095):
        total = total + one
    values = {"right": 4096, "rounded": 4080, "stalled": 256, "infinite": float("inf")}
    return {name: total.item() == value for name, value in values.items()}


def dtype_behind_a_cast_first_norm() -> dict[str, bool]:
    x = torch.tensor([1.0, -2.0, 3.0], dtype=torch.bfloat16)
    gain = torch.tensor([0.5, 1.0, 1.5], dtype=torch.float32)
    try:
        found = llama_style(x, gain, eps=1e-6).dtype
    except RuntimeError:
        found = None
    return {
        "bfloat16": found == torch.bfloat16,
        "float32": found == torch.float32,
        "float16": found == torch.float16,
        "error": found is None,
    }


def default_epsilon_for_a_bfloat16_input() -> dict[str, bool]:
    row = torch.full((8,), 2.0**-20, dtype=torch.bfloat16)
    x, y = row[0].item(), F.rms_norm(row, (8,))[0].item()
    eps = (x / y) ** 2 - x**2  # from y = x / sqrt(x² + eps)
    values = {
        "bfloat16-epsilon": 2.0**-7,
        "float32-epsilon": 2.0**-23,
        "one-in-a-hundred-thousand": 1e-5,
        "nothing": 0.0,
    }
    return {name: abs(eps - value) < 1e-8 for name, value in values.items()}


def zero_row_with_a_tiny_epsilon() -> dict[str, bool]:
    row = torch.zeros(8, dtype=torch.float16)
    y = rms_norm_naive(row, torch.ones_like(row), eps=1e-8)
    return {
        "zeros": bool((y == 0).all()),
        "nan": bool(y.isnan().all()),
        "infinite": bool(y.isinf().all()),
    }


def one_plus_a_small_offset() -> dict[str, bool]:
    found = (1 + torch.tensor(2.0**-8, dtype=torch.bfloat16)).item()
    values = {"vanishes": 1, "exact": 1.00390625, "one-step": 1.0078125}
    return {name: found == value for name, value in values.items()}


def one_pass_variance_at_a_mean_of_3000() -> dict[str, bool]:
    torch.manual_seed(0)
    x = 3000 + torch.randn(64, 256)
    true = x.double().var(-1, correction=0)
    in_pairs = x.square().mean(-1) - x.mean(-1).square()
    answers = []
    for found in (sum_of_squares(x), in_pairs):  # one by one, and as PyTorch sums
        error = (found - true).abs().max().item()
        answers.append(
            {
                "last-digits": error < 1e-3,
                "too-small": bool((found < true).all() and (found >= 0).all()),
                "zero": bool((found == 0).all()),
                "negative": error > 1 and bool((found < 0).any()),
            }
        )
    assert answers[0] == answers[1]
    return answers[0]


def hundred_steps_on_a_bfloat16_gain() -> dict[str, bool]:
    gain = torch.tensor(1.0, dtype=torch.bfloat16)
    for _ in range(100):
        gain += 0.001
    values = {"right": 1.1, "stuck": 1.0, "drifts": 1.05, "too-far": 1.78}
    return {name: abs(gain.item() - value) < 0.01 for name, value in values.items()}


def layernorm_under_autocast_on_the_cpu() -> dict[str, bool]:
    linear, norm = nn.Linear(8, 8), nn.LayerNorm(8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h = linear(torch.ones(2, 8))
        found = (h.dtype, norm(h).dtype)
    narrow, wide = torch.bfloat16, torch.float32
    return {
        "wide-norm": found == (narrow, wide),
        "both-narrow": found == (narrow, narrow),
        "both-wide": found == (wide, wide),
        "wide-then-narrow": found == (wide, narrow),
    }


def small_update_of_a_large_feature() -> dict[str, bool]:
    stream, update = torch.tensor([300.0, 0.9], dtype=torch.bfloat16)
    found = (stream + update).item()
    values = {"exact": 300.9, "whole": 301, "up": 302, "lost": 300}
    return {name: found == value for name, value in values.items()}


def statistics_stored_in_bfloat16() -> dict[str, bool]:
    torch.manual_seed(0)
    x, dy = 10 + torch.randn(64, 256), torch.randn(64, 256)
    gain = torch.randn(256)
    _, *kept = torch.native_layer_norm(x, (256,), gain, gain, 1e-5)
    rounded = [statistic.bfloat16().float() for statistic in kept]

    def gradients(statistics) -> dict[str, torch.Tensor]:
        found = torch.ops.aten.native_layer_norm_backward(
            dy, x, (256,), *statistics, gain, gain, [True, True, True]
        )
        return dict(zip(("input", "gain", "bias"), found, strict=True))

    exact, found = gradients(kept), gradients(rounded)
    errors = {n: ((found[n] - exact[n]).norm() / exact[n].norm()).item() for n in exact}
    worst = {n: error > 3 * sorted(errors.values())[-2] for n, error in errors.items()}
    return worst | {"alike": max(errors.values()) < 3 * min(errors.values())}
