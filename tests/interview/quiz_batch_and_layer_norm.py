"""The keys of the quiz on BatchNorm and LayerNorm."""

import torch
from torch import Tensor, nn


def stored_variance_of_two_examples() -> dict[str, bool]:
    norm = nn.BatchNorm1d(1, momentum=1.0)
    norm(torch.tensor([[0.0], [2.0]]))
    stored = norm.running_var.item()
    values = {"one": 1, "two": 2, "root-of-two": 2**0.5, "mixed": 1.5}
    return {name: abs(stored - value) < 1e-6 for name, value in values.items()}


def momentum_of_nine_tenths() -> dict[str, bool]:
    norm = nn.BatchNorm1d(1, momentum=0.9)
    norm.running_mean.fill_(10)
    norm(torch.tensor([[-1.0], [1.0]]))
    mean = norm.running_mean.item()
    values = {"nine": 9, "one": 1, "ten": 10, "five": 5}
    return {name: abs(mean - value) < 1e-5 for name, value in values.items()}


def batchnorm_under_no_grad() -> dict[str, bool]:
    norm, x = nn.BatchNorm1d(1), torch.tensor([[4.0], [6.0]])
    try:
        with torch.no_grad():
            y = norm(x)
    except (RuntimeError, ValueError):
        y = None
    refused = y is None
    by_batch = not refused and abs(y.mean().item()) < 1e-5
    by_buffers = not refused and torch.allclose(y, x, atol=0.01)  # mean 0, var 1
    moved = norm.running_mean.item() != 0
    return {
        "reads-the-buffers": by_buffers,
        "batch-without-update": by_batch and not moved,
        "batch-with-update": by_batch and moved,
        "refuses": refused,
    }


def norm_that_leaks_even_in_eval_mode() -> dict[str, bool]:
    batch, time, d = 2, 5, 4
    torch.manual_seed(0)
    x = torch.randn(batch, time, d)
    changed = x.clone()
    changed[:, -1] *= 10  # the last token

    def first_moves(norm: nn.Module, features_second: bool) -> bool:
        def run(x: Tensor) -> Tensor:
            return norm(x.mT).mT if features_second else norm(x)

        return not torch.allclose(run(x)[:, 0], run(changed)[:, 0])

    return {
        "batchnorm": first_moves(nn.BatchNorm1d(d).eval(), True),
        "groupnorm": first_moves(nn.GroupNorm(1, d).eval(), True),
        "layernorm": first_moves(nn.LayerNorm(d).eval(), False),
        "rmsnorm": first_moves(nn.RMSNorm(d).eval(), False),
    }


def layernorm_of_two_features() -> dict[str, bool]:
    y = nn.LayerNorm(2)(torch.tensor([3.0, 1000.0]))
    outputs = {
        "signs": [-1.0, 1.0],
        "unbiased": [-(0.5**0.5), 0.5**0.5],
        "rms": [0.0042, 2**0.5],
        "unit-interval": [0.0, 1.0],
    }
    return {
        name: torch.allclose(y, torch.tensor(output), atol=1e-3)
        for name, output in outputs.items()
    }


def one_vector_added_to_every_token() -> dict[str, bool]:
    torch.manual_seed(0)
    tokens, vector = torch.randn(16, 8), torch.randn(8)
    norms = {
        "batch": nn.BatchNorm1d(8),
        "layer": nn.LayerNorm(8),
        "rms": nn.RMSNorm(8),
    }
    same = {
        name
        for name, norm in norms.items()
        if torch.allclose(norm(tokens), norm(tokens + vector), atol=1e-5)
    }
    return {
        "batchnorm-alone": same == {"batch"},
        "layernorm-alone": same == {"layer"},
        "both-that-subtract": same == {"batch", "layer"},
        "all-three": same == {"batch", "layer", "rms"},
    }


def gradient_of_a_doubled_weight() -> dict[str, bool]:
    torch.manual_seed(0)
    weight, x = torch.randn(8, 4).double(), torch.randn(5, 4).double()
    target = torch.randn(5, 8).double()
    norm = nn.LayerNorm(8, eps=0).double()

    def size_of_gradient(scale: float) -> float:
        leaf = (scale * weight).requires_grad_()
        (norm(x @ leaf.mT) - target).square().sum().backward()
        return leaf.grad.norm().item()

    ratio = size_of_gradient(2) / size_of_gradient(1)
    values = {"doubles": 2, "stays": 1, "halves": 1 / 2, "quarters": 1 / 4}
    return {name: abs(ratio - value) < 1e-6 for name, value in values.items()}


def gradient_from_a_batch_of_two() -> dict[str, bool]:
    def gradient(examples: int) -> Tensor:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4, eps=1e-12)).double()
        x, target = torch.randn(2, examples, 6, dtype=torch.float64)
        (model(x)[:, :4] - target[:, :4]).square().mean().backward()
        return model[0].weight.grad

    two, usual = gradient(2).norm().item(), gradient(64).norm().item()
    return {
        "noisy": 0.1 * usual < two < 1.5 * usual,
        "zero": two < 1e-6 * usual,
        "double": 1.5 * usual < two < 2.5 * usual,
        "nan": two != two,
    }


def silent_units_behind_relu_then_batchnorm() -> dict[str, bool]:
    torch.manual_seed(0)
    x = torch.randn(1000, 4).relu()
    y = nn.BatchNorm1d(4)(x)
    silent = [column[rows] for column, rows in zip(y.T, (x == 0).T, strict=True)]
    alive = torch.where(x > 0, x, torch.nan)
    among = (0 - alive.nanmean(0)) / (alive - alive.nanmean(0)).square().nanmean(
        0
    ) ** 0.5
    alike = all((part == part[0]).all() for part in silent)
    negative = all((part < -0.1).all() for part in silent)
    return {
        "stay": all((part == 0).all() for part in silent),
        "one-number": alike and negative,
        "spread": negative and not alike,
        "removed": all(
            torch.allclose(part, value)
            for part, value in zip(silent, among, strict=True)
        ),
    }


def dropout_in_front_of_batchnorm() -> dict[str, bool]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(8, momentum=None))
    for _ in range(200):
        model(torch.randn(500, 8))
    variance = model.eval()(torch.randn(20_000, 8)).var().item()
    values = {"quarter": 1 / 4, "half": 1 / 2, "one": 1, "two": 2}
    return {name: abs(variance / value - 1) < 0.05 for name, value in values.items()}


def groupnorm_with_one_value_a_group() -> dict[str, bool]:
    torch.manual_seed(0)
    x = torch.randn(4, 8)
    try:
        y = nn.GroupNorm(8, 8)(x)
    except ValueError:
        y = None
    expected = {
        "zeros": torch.zeros_like(x),
        "batch": nn.BatchNorm1d(8)(x),
        "row": nn.LayerNorm(8)(x),
    }
    return {"error": y is None} | {
        name: y is not None and torch.allclose(y, other, atol=1e-4)
        for name, other in expected.items()
    }
