"""Two measures of how alike the tokens are, against loops and known answers."""

import math

import pytest
import torch
from torch.nn import functional as F

from snippets.signal_propagation.similarity import (
    distance_to_rank_one,
    mean_cosine,
)
from tests.same_results import on_views
from tests.wrong import suite

SHAPES = [(2, 3), (5, 8), (3, 4, 7), (2, 3, 6, 1), (1, 2, 33)]


def tokens(shape, scale=1.0, offset=0.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    sizes = 0.3 + torch.rand(shape[:-1], generator=generator, dtype=torch.float64)
    return (scale * x + offset) * sizes[..., None]


def by_loops(x):
    def one(sequence):
        n = len(sequence)
        pairs = [
            float(sequence[i] @ sequence[j] / sequence[i].norm() / sequence[j].norm())
            for i in range(n)
            for j in range(i)
        ]
        return sum(pairs) / len(pairs)

    flat = x.reshape(-1, *x.shape[-2:])
    values = torch.tensor([one(sequence) for sequence in flat], dtype=x.dtype)
    return values.reshape(x.shape[:-2])


def check_cosine_is_that_of_loops(function):
    for shape in SHAPES:
        for scale, offset in ((1.0, 0.0), (3.0, 0.5), (1e-6, 0.0), (1.0, 100.0)):
            x = tokens(shape, scale, offset)
            found, right = function(x), by_loops(x)
            assert found.shape == right.shape
            assert torch.allclose(found, right, rtol=0, atol=1e-12)


def check_cosine_of_known_tokens(function):
    assert torch.allclose(
        function(torch.ones(2, 4, 3).double()), torch.ones(2).double()
    )
    basis = torch.eye(5, dtype=torch.float64)
    assert abs(float(function(basis))) < 1e-12
    both = torch.tensor([[1.0, 0.0], [-2.0, 0.0]], dtype=torch.float64)
    assert abs(float(function(both)) + 1) < 1e-12


def check_cosine_has_a_gradient(function):
    x = tokens((2, 4, 5)).requires_grad_()
    for found, right in zip(
        torch.autograd.grad(function(x).sum(), x),
        torch.autograd.grad(
            F.cosine_similarity(x[:, :, None], x[:, None], dim=-1).sum() / 12, x
        ),
        strict=True,
    ):
        assert torch.allclose(found, right, atol=1e-12)


def distance_by_loops(x):
    flat = x.reshape(-1, *x.shape[-2:])
    values = []
    for sequence in flat:
        mean = sum(sequence) / len(sequence)
        apart = sum(float((token - mean) @ (token - mean)) for token in sequence)
        whole = sum(float(token @ token) for token in sequence)
        values.append(math.sqrt(apart / whole))
    return torch.tensor(values, dtype=x.dtype).reshape(x.shape[:-2])


def check_distance_is_that_of_loops(function):
    for shape in SHAPES:
        for scale, offset in ((1.0, 0.0), (3.0, 0.5), (1e-6, 0.0), (1.0, 100.0)):
            x = tokens(shape, scale, offset)
            found, right = function(x), distance_by_loops(x)
            assert found.shape == right.shape
            assert torch.allclose(found, right, rtol=1e-9, atol=1e-12)


def check_distance_of_equal_lengths_is_the_cosine(function):
    """For tokens of one length: distance² = (1 - 1/n) (1 - mean cosine)."""
    for n in (2, 3, 16):
        x = F.normalize(tokens((4, n, 8), offset=0.7), dim=-1)
        right = ((1 - 1 / n) * (1 - by_loops(x))).sqrt()
        assert torch.allclose(function(x), right, atol=1e-10)


COSINE = [
    check_cosine_is_that_of_loops,
    check_cosine_of_known_tokens,
    check_cosine_has_a_gradient,
    on_views(tokens((3, 4, 7))),
]
DISTANCE = [
    check_distance_is_that_of_loops,
    check_distance_of_equal_lengths_is_the_cosine,
    on_views(tokens((3, 4, 7))),
]


test_cosine, test_wrong_cosine = suite(mean_cosine, COSINE)
test_distance, test_wrong_distance = suite(distance_to_rank_one, DISTANCE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dtype_is_kept(dtype):
    x = tokens((2, 5, 64)).to(dtype)
    for function in (mean_cosine, distance_to_rank_one):
        if dtype is torch.bfloat16 and function is distance_to_rank_one:
            continue
        found = function(x)
        assert found.dtype is dtype
        assert torch.allclose(found.double(), function(x.double()), atol=2e-2)
