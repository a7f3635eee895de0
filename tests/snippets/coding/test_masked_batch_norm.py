"""masked_batch_norm against torch's BatchNorm of the real tokens alone."""

import pytest
import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from snippets.coding.masked_batch_norm import masked_batch_norm
from tests.same_results import on_views
from tests.snippets.coding.cases import (
    by_hand,
    close,
    expect,
    gains,
    gradients,
    has_dtype,
    numbers,
    unchanged,
)
from tests.wrong import rejects

JUDGED = masked_batch_norm
LENGTHS = ((5, 2, 3), (1, 4, 1), (7, 7), (4, 0))


def _mask(lengths):
    return torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


def _inputs(lengths, padding, dtype=torch.float64):
    mask = _mask(lengths)
    x = numbers((*mask.shape, 3), offset=2.0, dtype=dtype)
    x[~mask] = padding
    return x, mask, gains(3, dtype=dtype), gains(3, seed=1, dtype=dtype)


def _wanted(x, mask, gain, bias, eps):
    tokens, gain, bias = x[mask].double(), gain.double(), bias.double()
    y = F.batch_norm(tokens, None, None, gain, bias, True, 0.1, eps)
    filled = torch.zeros(x.shape, dtype=torch.float64)
    return filled.masked_scatter(mask[..., None].expand(x.shape), y)


def check_paddings(norm):
    for lengths in LENGTHS:
        for padding in (0.0, 1e4, float("nan"), float("inf")):
            inputs = _inputs(lengths, padding)
            case = f"lengths {lengths}, padding {padding}, float64"
            y = norm(*inputs, 1e-3)
            close("y", y, _wanted(*inputs, 1e-3), case=case)


def check_bfloat16(norm):
    inputs = _inputs((5, 2, 3), 0.0, torch.bfloat16)
    with unchanged("x in bfloat16", *inputs):
        y = norm(*inputs)
    has_dtype("y", y, torch.bfloat16, "x in bfloat16")
    wanted = _wanted(*inputs, 1e-5)
    close("y", y, wanted, 2**-8, case="x in bfloat16, lengths (5, 2, 3)")


@by_hand
def check_one_token(norm):
    given = _inputs((0, 1, 0), float("nan"))
    wanted = torch.zeros(3, 1, 3, dtype=torch.float64)
    wanted[1, 0] = given[3]
    close("y", norm(*given, 1e-3), wanted, case="a single real token: the bias is left")


def check_large_mean(norm):
    x, mask, gain, bias = _inputs((5, 2, 3), 0.0)
    x = torch.where(mask[..., None], x + 3000, x).float()
    case = "float32 with mean 3000, padding 0"
    close(
        "y",
        norm(x, mask, gain, bias),
        _wanted(x, mask, gain, bias, 1e-5),
        1e-2,
        case=case,
    )


def check_gradients(norm):
    for padding in (0.0, float("nan")):
        x, mask, gain, bias = _inputs((5, 2, 3), padding)
        inputs = [each.requires_grad_() for each in (x, gain, bias)]
        grad_y, case = numbers(x.shape, seed=1), f"gradients, padding {padding}"
        ours = gradients(norm(x, mask, gain, bias), inputs, grad_y, case)
        exact = _wanted(x, mask, gain, bias, 1e-5)
        exact = torch.autograd.grad(exact, inputs, grad_y)
        for name, a, b in zip(("x", "gain", "bias"), ours, exact, strict=True):
            close(f"gradient of {name}", a, b, atol=1e-12, case=case)


def _boolean(index):
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(p, torch.Tensor) and p.dtype == torch.bool for p in parts)


class _FixedShapes(TorchFunctionMode):
    """Fails on an operation whose output's shape depends on the mask."""

    def __torch_function__(self, call, types, args=(), kwargs=None):
        name = call.__name__
        depends = (
            name in ("nonzero", "argwhere", "masked_select")
            or (name == "where" and len(args) == 1 and not kwargs)
            or (name == "__getitem__" and _boolean(args[1]))
        )
        words = f"the shape of {name}'s result depends on the mask"
        expect(not depends, "a compiled program", words)
        return call(*args, **(kwargs or {}))


def check_fixed_shapes(norm):
    inputs = _inputs((5, 2, 3), 0.0)
    with _FixedShapes():
        norm(*inputs)


check_views = on_views(*_inputs((5, 2, 3), 0.0), 1e-3)

CHECKS = [
    check_paddings,
    check_one_token,
    check_bfloat16,
    check_large_mean,
    check_gradients,
    check_fixed_shapes,
    check_views,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(masked_batch_norm, CHECKS)
