"""Variants are Python, each an edit of one place, and the kinds that are promised."""

import ast

import pytest

from scripts.mutants.variants import variants

NORM = '''"""Doc."""
import torch


def rms_norm(x: torch.Tensor, gain=None, eps: float = 1e-6):
    """Says 1 + 1."""
    wide = x.float()
    r = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    y = wide * r
    if gain is not None and eps > 0:
        y = y * gain
    assert len(x) > 1, "a message"
    return y.to(x.dtype)
'''


def made(text):
    return {(v.kind, v.old, v.new) for v in variants(text)}


@pytest.mark.parametrize(
    "wanted",
    [
        ("operator", "wide * r", "(wide / r)"),
        ("term dropped", "wide * r", "(wide)"),
        ("name", "torch.rsqrt", "torch.sqrt"),
        ("call dropped", "x.float()", "(x)"),
        ("call dropped", "y.to(x.dtype)", "(y)"),
        ("constant", "True", "False"),
        ("sign", "-1", "(1)"),
        ("constant", "1e-6", "9.999999999999999e-06"),
        ("operator", "eps > 0", "(eps >= 0)"),
        ("condition dropped", "gain is not None and eps > 0", "(gain is not None)"),
    ],
)
def test_kinds(wanted):
    assert wanted in made(NORM)


def test_a_keyword_is_left_out_and_a_statistic_detached():
    kinds = {kind for kind, _, _ in made(NORM)}
    assert {"default", "detached"} <= kinds


def test_each_is_python_and_another_text():
    found = variants(NORM)
    assert len({v.text for v in found} | {NORM}) == len(found) + 1
    for variant in found:
        ast.parse(variant.text)
        changed = zip(NORM.splitlines(), variant.text.splitlines(), strict=True)
        lines = [at for at, (a, b) in enumerate(changed, 1) if a != b]
        assert lines == [variant.line]


def test_words_annotations_and_imports_stay():
    lines = {v.line for v in variants(NORM)}
    assert not lines & {1, 2, 6}
    assert not any("message" in v.old for v in variants(NORM))
    assert not any("Tensor" in v.old for v in variants(NORM))


def test_the_order_is_the_same_in_every_run_and_no_pattern():
    found = [v.lot for v in variants(NORM)]
    assert found == sorted(found) == [v.lot for v in variants(NORM)]
    assert [v.line for v in variants(NORM)] != sorted(v.line for v in variants(NORM))


def test_arguments_that_may_change_places_stay():
    assert not made("x = torch.promote_types(a, b)\n")
    assert ("order", "torch.sub(a, b)", "torch.sub(b, a)") in made("torch.sub(a, b)\n")
