"""fold_norm: the folded layer gives the same outputs as norm and layer apart."""

import pytest
import torch

from snippets.coding.fold_norm import fold_norm
from tests.same_results import on_views
from tests.snippets.coding.cases import (
    close,
    expect,
    gains,
    has_dtype,
    numbers,
    results,
    unchanged,
)
from tests.wrong import rejects

JUDGED = fold_norm
SHAPES = ((5, 5), (3, 7), (8, 2))  # (out, d)


def _inputs(shape, bias, offset, dtype=torch.float64):
    out, d = shape
    found = gains(d), numbers((d,)), numbers(shape), numbers((out,), seed=1)
    gain, b, weight, c = (each.to(dtype) for each in found)
    return gain, b if bias else None, weight, c if offset else None


def _compare(fold, given, rtol, case):
    gain, bias, weight, offset = given
    with unchanged(case, *[each for each in given if each is not None]):
        found = fold(*given)
    results(found, "weight offset", case)
    n = numbers((6, len(gain)), seed=5)
    wide = [None if each is None else each.double() for each in given]
    y = n * wide[0] + (0 if bias is None else wide[1])
    wanted = y @ wide[2].T + (0 if offset is None else wide[3])
    has_dtype("the weight", found[0], weight.dtype, case)
    expect(found[0].shape == weight.shape, case, f"weight is {tuple(found[0].shape)}")
    nothing = bias is None and offset is None
    expect((found[1] is None) == nothing, case, f"the offset is {found[1]}")
    ours = n @ found[0].double().T
    if found[1] is not None:
        has_dtype("the offset", found[1], weight.dtype, case)
        ours = ours + found[1].double()
    close("the layer's output", ours, wanted, rtol, case=case)


def check_kinds(fold):
    for shape in SHAPES:
        for bias in (False, True):
            for offset in (False, True):
                words = f"bias {bias}, offset {offset}"
                case = f"weight {shape} in float64, {words}"
                _compare(fold, _inputs(shape, bias, offset), 1e-9, case)


def check_bfloat16(fold):
    given = _inputs((64, 512), True, True, torch.bfloat16)
    _narrow(fold, given, "weight (64, 512) in bfloat16, norm too")
    gain, bias, _, _ = _inputs((64, 512), True, True, torch.float32)
    given = gain, bias, *given[2:]
    _narrow(fold, given, "weight (64, 512) in bfloat16, norm in float32")


def _narrow(fold, given, case):
    gain, bias, weight, offset = given
    found, moved = results(fold(*given), "weight offset", case)
    exact = weight.double() * gain.double()
    close("the weight", found, exact, 2**-8, case=case, rowwise=False)
    total = weight.double() @ bias.double() + offset.double()
    close("the offset", moved, total, 2**-8, atol=1e-4, case=case, rowwise=False)
    has_dtype("the weight", found, torch.bfloat16, case)
    has_dtype("the offset", moved, torch.bfloat16, case)


check_views = on_views(*_inputs((3, 7), True, True))

CHECKS = [check_kinds, check_bfloat16, check_views]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(fold_norm, CHECKS)
