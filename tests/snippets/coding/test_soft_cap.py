"""soft_cap and its slope against float64, where tanh has long been one."""

import math

import pytest
import torch

from snippets.coding.soft_cap import soft_cap
from tests.same_results import on_views
from tests.snippets.coding.cases import (
    ONE_ROUNDING,
    close,
    expect,
    has_dtype,
    in_every_dtype,
    numbers,
    results,
    unchanged,
)
from tests.wrong import rejects

JUDGED = soft_cap
POINTS = (0.0, 0.01, -0.5, 3.0, 29.0, -30.0, 77.0, 250.0, -300.0)


def _value(z, cap):
    return cap * math.tanh(z / cap)


def _slope(z, cap):
    falls = math.exp(-2 * abs(z) / cap)
    return 4 * falls / (1 + falls) ** 2


def check_values(soft_cap):
    for cap in (1.0, 30.0, 50.0):
        z = torch.tensor(POINTS, dtype=torch.float64)
        y, slope = results(soft_cap(z, cap), "y slope", f"cap {cap}")
        for name, found, exact in (("y", y, _value), ("slope", slope, _slope)):
            for point, each in zip(POINTS, found.tolist(), strict=True):
                wanted, case = exact(point, cap), f"z = {point}, cap {cap}, float64"
                tight = 1e-6 * abs(wanted) + 1e-30
                words = f"{name} is {each:.6g}, expected {wanted:.6g}"
                expect(abs(each - wanted) <= tight, case, words)


@in_every_dtype
def check_dtypes(soft_cap, dtype):
    z = torch.tensor(POINTS).to(dtype).reshape(3, 3)
    case = f"z up to 300 in {dtype}, cap 50"
    with unchanged(case, z):
        y, slope = results(soft_cap(z, 50.0), "y slope", case)
    for name, found, exact in (("y", y, _value), ("slope", slope, _slope)):
        has_dtype(name, found, dtype, case)
        exactly = [exact(float(each), 50.0) for each in z.flatten()]
        wanted = torch.tensor(exactly, dtype=torch.float64).reshape(3, 3)
        rtol = 2 * ONE_ROUNDING[dtype]
        tiny = 1e-7 if dtype == torch.float16 else 0.0  # subnormals
        close(name, found, wanted, rtol, atol=tiny, case=case, rowwise=False)


def check_far_out(soft_cap):
    case = "z = 1e30 and -1e30, cap 30, float32"
    found = soft_cap(torch.tensor([1e30, -1e30]), 30.0)
    y, slope = results(found, "y slope", case)
    expect(y.tolist() == [30.0, -30.0], case, f"y is {y.tolist()}")
    expect(slope.tolist() == [0.0, 0.0], case, f"slope is {slope.tolist()}")


check_views = on_views(numbers((3, 4), scale=30.0), 20.0)

CHECKS = [check_dtypes, check_values, check_far_out, check_views]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(soft_cap, CHECKS)
