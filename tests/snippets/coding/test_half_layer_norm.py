"""half_layer_norm: float16 everywhere, and right for every finite float16 row."""

import pytest
import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from snippets.coding.half_layer_norm import half_layer_norm
from tests.same_results import on_views
from tests.snippets.coding.cases import close, expect, has_dtype, numbers, unchanged
from tests.wrong import rejects

JUDGED = half_layer_norm
HALF = torch.float16
LARGEST = 65504.0


class _OnlyHalf(TorchFunctionMode):
    """Fails when an operation makes a floating tensor that is not float16."""

    def __torch_function__(self, call, types, args=(), kwargs=None):
        made = call(*args, **(kwargs or {}))
        ready = call.__name__ in ("layer_norm", "native_layer_norm")
        words = f"{call.__name__} computes in float32 inside"
        expect(not ready, "only float16 is allowed", words)
        for each in made if isinstance(made, tuple | list) else (made,):
            if isinstance(each, torch.Tensor) and each.is_floating_point():
                words = f"{call.__name__} makes a tensor of {each.dtype}"
                expect(each.dtype == HALF, "only float16 is allowed", words)
        return made


def _compare(norm, x, eps, case):
    x = x.to(HALF)
    with unchanged(case, x):
        y = norm(x, eps)
    has_dtype("y", y, HALF, case)
    close("y", y, F.layer_norm(x.double(), x.shape[-1:], eps=eps), 0.01, case=case)


def check_ordinary(norm):
    for shape in ((7,), (3, 5), (2, 3, 64), (2, 1000)):
        _compare(norm, numbers(shape), 1e-5, f"x {shape}, ordinary size")


def check_loud(norm):
    for size in (300.0, 5e3, 6e4):
        x = size * torch.randn((8, 65), generator=torch.Generator().manual_seed(1)) / 3
        _compare(norm, x.clamp(-LARGEST, LARGEST), 1e-5, f"x up to {size:g}")
    ends = torch.tensor([[LARGEST, -LARGEST, 0.0, 1.0], [LARGEST] * 3 + [-LARGEST]])
    _compare(norm, ends, 1e-5, "both largest float16 in a row")


def check_large_mean(norm):
    for mean in (300.0, 1500.0, -1500.0):
        x = mean + 4 * torch.randn((8, 256), generator=torch.Generator().manual_seed(2))
        _compare(norm, x, 1e-5, f"mean {mean:g}, deviation 4")


def check_faint(norm):
    for size in (1e-2, 3e-3, 1e-3):
        for eps in (1e-5, 1e-6):
            x = size * torch.randn((8, 33), generator=torch.Generator().manual_seed(3))
            _compare(norm, x, eps, f"x of size {size:g}, eps {eps}")


def check_constant_row(norm):
    y = norm(torch.full((2, 8), 3.5, dtype=HALF), 1e-5)
    close("y", y, torch.zeros(2, 8), case="a constant row")


def check_only_half(norm):
    x = numbers((2, 9), dtype=HALF)
    with _OnlyHalf():
        norm(x, 1e-5)


check_views = on_views(numbers((3, 4, 64), dtype=HALF), 1e-5)

CHECKS = [
    check_ordinary,
    check_loud,
    check_large_mean,
    check_faint,
    check_constant_row,
    check_only_half,
    check_views,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(half_layer_norm, CHECKS)
