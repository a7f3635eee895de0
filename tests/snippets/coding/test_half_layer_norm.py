"""half_layer_norm: float16 everywhere, and right for every finite float16 row."""

import pytest
import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from snippets.coding.half_layer_norm import half_layer_norm
from tests.snippets.coding.cases import close, expect, has_dtype, numbers, unchanged

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


CHECKS = [
    check_ordinary,
    check_loud,
    check_large_mean,
    check_faint,
    check_constant_row,
    check_only_half,
]


def upcasts(x, eps=1e-5):
    return F.layer_norm(x.float(), x.shape[-1:], eps=eps).to(x.dtype)


def calls_torch(x, eps=1e-5):
    return F.layer_norm(x, x.shape[-1:], eps=eps)


def eps_of_the_unhalved_row(x, eps=1e-5):
    c = x / 2 - (x / 2).mean(-1, keepdim=True)
    c = c - c.mean(-1, keepdim=True)
    size = c.abs().amax(-1, keepdim=True).clamp_min(eps**0.5)
    z = c / size
    return z / (z.square().mean(-1, keepdim=True) + (eps**0.5 / size).square()).sqrt()


def no_scaling(x, eps=1e-5):
    c = x / 2 - (x / 2).mean(-1, keepdim=True)
    c = c - c.mean(-1, keepdim=True)
    return c / (c.square().mean(-1, keepdim=True) + eps / 4).sqrt()


def centred_once(x, eps=1e-5):
    c = x / 2 - (x / 2).mean(-1, keepdim=True)
    floor = eps**0.5 / 2
    size = c.abs().amax(-1, keepdim=True).clamp_min(floor)
    z = c / size
    return z / (z.square().mean(-1, keepdim=True) + (floor / size).square()).sqrt()


def eps_not_scaled(x, eps=1e-5):
    c = x / 2 - (x / 2).mean(-1, keepdim=True)
    c = c - c.mean(-1, keepdim=True)
    z = c / c.abs().amax(-1, keepdim=True).clamp_min(eps**0.5 / 2)
    return z / (z.square().mean(-1, keepdim=True) + eps).sqrt()


def range_overflows_when_centred(x, eps=1e-5):
    c = x - x.mean(-1, keepdim=True)
    c = c - c.mean(-1, keepdim=True)
    floor = eps**0.5
    size = c.abs().amax(-1, keepdim=True).clamp_min(floor)
    z = c / size
    return z / (z.square().mean(-1, keepdim=True) + (floor / size).square()).sqrt()


def divides_by_zero(x, eps=1e-5):
    c = x / 2 - (x / 2).mean(-1, keepdim=True)
    c = c - c.mean(-1, keepdim=True)
    size = c.abs().amax(-1, keepdim=True)
    z = c / size
    return (
        z / (z.square().mean(-1, keepdim=True) + (eps**0.5 / 2 / size).square()).sqrt()
    )


def scaled_before_the_mean(x, eps=1e-5):
    size = x.abs().amax(-1, keepdim=True).clamp_min(eps**0.5)
    z = x / size
    z = z - z.mean(-1, keepdim=True)
    return z / (z.square().mean(-1, keepdim=True) + (eps**0.5 / size).square()).sqrt()


VARIANTS = [
    upcasts,
    calls_torch,
    eps_of_the_unhalved_row,
    no_scaling,
    centred_once,
    eps_not_scaled,
    range_overflows_when_centred,
    divides_by_zero,
    scaled_before_the_mean,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)
