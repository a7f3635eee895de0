"""OffsetNorm has no fault: values in both dtypes, and what a wrong repair breaks."""

import pytest
import torch
from torch import nn

from snippets.spot_the_bug.offset_norm import OffsetNorm
from tests.snippets.coding.cases import close, gains, gradients, has_dtype, numbers

LISTING = JUDGED = OffsetNorm


def _norm(kind, d, dtype):
    norm = kind(d).to(dtype)
    with torch.no_grad():
        norm.weight.copy_(gains(d) + 2**-8)
    return norm


def _wanted(x, weight, eps=1e-6):
    x = x.double()
    y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    return y * (1 + weight.double())


def check_values(kind):
    for dtype, rtol in ((torch.float32, 1e-5), (torch.bfloat16, 2**-8)):
        for shape in ((7,), (2, 3, 33)):
            norm, x = _norm(kind, shape[-1], dtype), numbers(shape, dtype=dtype)
            case = f"x {shape} in {dtype}"
            y = norm(x)
            has_dtype("y", y, dtype, case)
            close("y", y, _wanted(x, norm.weight), rtol, case=case, rowwise=False)


def check_small_offsets(kind):
    norm, x = kind(4).to(torch.bfloat16), numbers((64, 4), dtype=torch.bfloat16)
    with torch.no_grad():
        norm.weight.fill_(2**-8)  # 1 + 2 ** -8 is no bfloat16
    wanted, case = _wanted(x, norm.weight), "offsets of 0.0039 in bfloat16"
    close("y", norm(x), wanted, 2**-8 * 1.05, case=case, rowwise=False)


def check_faint_rows(kind):
    norm, x = _norm(kind, 9, torch.float32), numbers((4, 9), scale=1e-3)
    wanted = _wanted(x, norm.weight)
    close("y", norm(x.float()), wanted, 1e-4, case="rows of size 1e-3")


def check_fresh(kind):
    x = numbers((3, 8), dtype=torch.float32)
    close("y", kind(8)(x), nn.RMSNorm(8, eps=1e-6)(x), 1e-5, case="a fresh module")


def check_gradients(kind):
    norm, x = _norm(kind, 7, torch.float32), numbers((2, 7), dtype=torch.float32)
    inputs, grad_y = (x.requires_grad_(), norm.weight), numbers((2, 7), seed=1)
    ours = gradients(norm(x), inputs, grad_y.float(), "gradients")
    exact = torch.autograd.grad(_wanted(x, norm.weight), inputs, grad_y)
    for name, a, b in zip(("x", "weight"), ours, exact, strict=True):
        close(f"the gradient of {name}", a, b, 1e-4, case="float32")


CHECKS = [
    check_values,
    check_small_offsets,
    check_faint_rows,
    check_fresh,
    check_gradients,
]


class PlainWeight(OffsetNorm):
    def forward(self, x):
        wide = x.float()
        r = torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return (wide * r * self.weight.float()).type_as(x)


class BornAsOnes(OffsetNorm):
    def __init__(self, d, eps=1e-6):
        super().__init__(d, eps)
        nn.init.ones_(self.weight)


class OneAddedInHalf(OffsetNorm):
    def forward(self, x):
        wide = x.float()
        r = torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return (wide * r * (1.0 + self.weight)).type_as(x)


class RoundsBeforeTheGain(OffsetNorm):
    def forward(self, x):
        wide = x.float()
        r = torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return (wide * r).type_as(x) * (1.0 + self.weight)


class SquaresInHalf(OffsetNorm):
    def forward(self, x):
        r = torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)
        return (x * r * (1.0 + self.weight)).type_as(x)


class EpsilonOutside(OffsetNorm):
    def forward(self, x):
        wide = x.float()
        root = wide.square().mean(-1, keepdim=True).sqrt() + self.eps
        return (wide / root * (1.0 + self.weight.float())).type_as(x)


VARIANTS = [
    PlainWeight,
    BornAsOnes,
    OneAddedInHalf,
    RoundsBeforeTheGain,
    SquaresInHalf,
    EpsilonOutside,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)
