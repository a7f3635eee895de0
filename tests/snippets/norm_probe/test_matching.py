"""A tensor is written as other tensors only if it is exactly that."""

import pytest
import torch

from snippets.norm_probe.matching import decompose, written
from tests.snippets.norm_probe.wrong_matching import (
    alike_taken_for_part,
    all_candidates_at_once,
    greedy,
)
from tests.wrong import suite


def tensors(*names, shape=(2, 5, 16), seed=0, dtype=torch.float32):
    random = torch.Generator().manual_seed(seed)
    return {n: torch.randn(shape, generator=random).to(dtype) for n in names}


def means(found):
    assert found is not None, "nothing found"
    return {n: round(v.mean().item(), 5) for n, v in found.items()}


def check_sum(decompose):
    c = tensors("x", "a", "b", "c")
    assert means(decompose(c["x"] + c["a"], c)) == {"x": 1, "a": 1}


def check_three_and_four_terms(decompose):
    c = tensors("x", "a", "b", "c", "d", seed=1)
    assert means(decompose(c["x"] + c["a"] + c["d"], c)) == {"x": 1, "a": 1, "d": 1}
    total = c["x"] + c["a"] + c["b"] + c["c"]
    assert means(decompose(total, c)) == dict.fromkeys(("x", "a", "b", "c"), 1)
    assert decompose(total + c["d"], c) is None


def check_coefficients(decompose):
    c = tensors("x", "a", "b", seed=2)
    found = decompose(0.22 * c["a"] + c["x"], c)
    assert means(found) == {"x": 1, "a": 0.22}
    assert means(decompose(c["x"] - c["b"], c)) == {"x": 1, "b": -1}


def check_nothing_is_made_up(decompose):
    c = tensors("x", "a", "b", seed=3)
    y = c["x"] + c["a"]
    assert decompose(y + 0.01 * y.roll(1, -1), c) is None
    assert decompose(tensors("y", seed=4)["y"], c) is None
    assert decompose(torch.relu(y), c) is None


def check_alike_is_not_part(decompose):
    """y looks most like b, and is not made of it."""
    c = tensors("x", "a", seed=5)
    c["b"] = c["x"] + c["a"] + 0.1 * tensors("n", seed=6)["n"]
    assert means(decompose(c["x"] + c["a"], c)) == {"x": 1, "a": 1}


def check_the_nearest_of_two(decompose):
    """A norm of a normed tensor is nearly that tensor."""
    c = tensors("x", "a", seed=7)
    c = {"near": c["x"] + 3e-6 * tensors("n", seed=12)["n"], **c}
    assert means(decompose(c["x"] + c["a"], c)) == {"x": 1, "a": 1}


def check_groups(decompose):
    c = tensors("x", "a", "b", seed=8)
    gate = tensors("g", shape=(16,), seed=9)["g"]
    found = decompose(c["x"] + gate * c["a"], c, shared="channel")
    assert found is not None and set(found) == {"x", "a"}
    assert torch.allclose(found["a"], gate.double(), atol=1e-4)
    weight = tensors("g", shape=(2, 5, 1), seed=10)["g"]
    found = decompose(c["x"] + weight * c["a"], c, shared="token")
    assert found is not None
    assert torch.allclose(found["a"], weight.flatten().double(), atol=1e-4)
    assert decompose(c["x"] + gate * c["a"], c) is None


CHECKS = [
    check_sum,
    check_three_and_four_terms,
    check_coefficients,
    check_nothing_is_made_up,
    check_alike_is_not_part,
    check_the_nearest_of_two,
    check_groups,
]


test_right, test_known_wrong = suite(
    decompose, CHECKS, functions=[all_candidates_at_once, greedy, alike_taken_for_part]
)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_against_least_squares_in_float64(dtype, scale):
    c = tensors("x", "a", "b", "c", shape=(3, 31), dtype=dtype, seed=11)
    y = scale * (0.3 * c["x"] - 2.5 * c["c"])
    found = decompose(y, c)
    columns = torch.stack([c[n].double().flatten() for n in found], -1)
    wanted = torch.linalg.lstsq(columns, y.double().flatten()[:, None])[0][:, 0]
    assert list(found) == ["x", "c"]
    got = torch.cat(list(found.values()))
    assert torch.allclose(got, wanted, rtol=1e-5)


def test_shapes():
    c = tensors("x", "a", shape=(2, 5, 16))
    flat = (c["x"] + c["a"]).reshape(10, 16)
    assert set(decompose(flat, c)) == {"x", "a"}
    assert decompose(flat[:3], c) is None
    assert decompose(torch.zeros(2, 5, 16), c) is None
    assert decompose(flat, {}) is None
    assert set(decompose(c["x"], {**c, "small": torch.ones(3)})) == {"x"}


def test_written():
    one = torch.ones(1)
    assert written({"x": one, "a": 0.5 * one}) == "x + 0.5·a"
    assert written({"x": -one, "a": -0.22 * one}) == "−x − 0.22·a"
    assert written({"x": one, "a": torch.tensor([0.1, 0.9])}) == "x + c⊙a"
