"""fold_norm: the folded layer gives the same outputs as norm and layer apart."""

import pytest
import torch

from snippets.coding.fold_norm import fold_norm
from tests.snippets.coding.cases import (
    close,
    expect,
    gains,
    has_dtype,
    numbers,
    results,
    unchanged,
)

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


CHECKS = [check_kinds, check_bfloat16]


def scales_the_rows(gain, bias, weight, offset):
    rows = gain.repeat(len(weight))[: len(weight)]
    _, moved = fold_norm(gain, bias, weight, offset)
    return weight * rows[:, None], moved


def gain_not_folded(gain, bias, weight, offset):
    return weight.clone(), fold_norm(gain, bias, weight, offset)[1]


def divides_by_the_gain(gain, bias, weight, offset):
    return weight / gain, fold_norm(gain, bias, weight, offset)[1]


def bias_dropped(gain, bias, weight, offset):
    folded, moved = fold_norm(gain, bias, weight, offset)
    if moved is None:
        return folded, None
    return folded, torch.zeros_like(moved) if offset is None else offset


def bias_through_the_folded_weight(gain, bias, weight, offset):
    folded, moved = fold_norm(gain, bias, weight, offset)
    if bias is None:
        return folded, moved
    moved = folded @ bias
    return folded, moved if offset is None else moved + offset


def bias_for_the_offset(gain, bias, weight, offset):
    folded, moved = fold_norm(gain, bias, weight, offset)
    if bias is None or offset is None:
        return folded, moved
    return folded, weight @ bias


def offset_scaled_too(gain, bias, weight, offset):
    folded, moved = fold_norm(gain, bias, weight, offset)
    return folded, None if moved is None else moved * gain.mean()


def bias_in_low_precision(gain, bias, weight, offset):
    folded, moved = fold_norm(gain, bias, weight, offset)
    if bias is None:
        return folded, moved
    total = torch.zeros_like(weight[:, 0])
    for column, each in zip(weight.T, bias, strict=True):
        total = total + column * each
    return folded, total if offset is None else total + offset


def bias_rounded_before_the_offset(gain, bias, weight, offset):
    folded, moved = fold_norm(gain, bias, weight, None)
    if moved is None or offset is None:
        return folded, offset if moved is None else moved
    return folded, moved + offset


def changes_the_layer_in_place(gain, bias, weight, offset):
    moved = fold_norm(gain, bias, weight, offset)[1]
    return weight.mul_(gain), moved


VARIANTS = [
    scales_the_rows,
    gain_not_folded,
    divides_by_the_gain,
    bias_dropped,
    bias_through_the_folded_weight,
    bias_for_the_offset,
    offset_scaled_too,
    bias_in_low_precision,
    bias_rounded_before_the_offset,
    changes_the_layer_in_place,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)
