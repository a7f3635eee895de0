"""Two measures of how alike the tokens are, against loops and known answers."""

import math

import pytest
import torch
from torch.nn import functional as F

from snippets.signal_propagation.similarity import (
    distance_to_rank_one,
    mean_cosine,
)

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
]
DISTANCE = [
    check_distance_is_that_of_loops,
    check_distance_of_equal_lengths_is_the_cosine,
]


def diagonal_counted(x):
    unit = F.normalize(x, dim=-1)
    return (unit @ unit.mT).mean(dim=(-2, -1))


def diagonal_left_in_the_count(x):
    unit, n = F.normalize(x, dim=-1), x.shape[-2]
    return ((unit @ unit.mT).sum(dim=(-2, -1)) - n) / n**2


def lengths_kept(x):
    n = x.shape[-2]
    pairs = x @ x.mT
    ones = pairs.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
    return (pairs.sum(dim=(-2, -1)) - ones) / (n - 1) / ones


def features_for_tokens(x):
    return mean_cosine(x.mT.contiguous()) if x.shape[-1] > 1 else 0 * x[..., 0, 0]


def sign_dropped(x):
    unit, n = F.normalize(x, dim=-1), x.shape[-2]
    return ((unit @ unit.mT).abs().sum(dim=(-2, -1)) - n) / (n * (n - 1))


def centred_first(x):
    return mean_cosine(x - x.mean(dim=-2, keepdim=True) * 0.999)


def neighbours_only(x):
    return F.cosine_similarity(x[..., 1:, :], x[..., :-1, :], dim=-1).mean(dim=-1)


def sequences_mixed(x):
    flat = mean_cosine(x.reshape(-1, x.shape[-1]))
    return flat.expand(x.shape[:-2]) if x.ndim > 2 else flat


def epsilon_too_large(x):
    unit, n = x / (x.norm(dim=-1, keepdim=True) + 1e-5), x.shape[-2]
    return ((unit @ unit.mT).sum(dim=(-2, -1)) - n) / (n * (n - 1))


def size_detached(x):
    unit, n = x / x.norm(dim=-1, keepdim=True).detach(), x.shape[-2]
    return ((unit @ unit.mT).sum(dim=(-2, -1)) - n) / (n * (n - 1))


def mean_of_features(x):
    apart = x - x.mean(dim=-1, keepdim=True)
    return apart.flatten(-2).norm(dim=-1) / x.flatten(-2).norm(dim=-1)


def not_relative(x):
    return (x - x.mean(dim=-2, keepdim=True)).flatten(-2).norm(dim=-1)


def squared(x):
    return distance_to_rank_one(x) ** 2


def relative_to_the_mean(x):
    mean = x.mean(dim=-2, keepdim=True).expand_as(x)
    return (x - mean).flatten(-2).norm(dim=-1) / mean.flatten(-2).norm(dim=-1)


def spectral_norm(x):
    apart = x - x.mean(dim=-2, keepdim=True)
    return torch.linalg.matrix_norm(apart, 2) / torch.linalg.matrix_norm(x, 2)


def any_rank_one(x):
    """Distance to the nearest matrix of rank one, its rows not all equal."""
    values = torch.linalg.svdvals(x).square()
    return (1 - values[..., 0] / values.sum(dim=-1)).clamp(min=0).sqrt()


def test_right():
    for check in COSINE:
        check(mean_cosine)
    for check in DISTANCE:
        check(distance_to_rank_one)


@pytest.mark.parametrize(
    "variant",
    [
        diagonal_counted,
        diagonal_left_in_the_count,
        lengths_kept,
        features_for_tokens,
        sign_dropped,
        centred_first,
        neighbours_only,
        sequences_mixed,
        epsilon_too_large,
        size_detached,
    ],
    ids=lambda v: v.__name__,
)
def test_wrong_cosine(variant, known_wrong):
    known_wrong.rejected_by(COSINE, variant)


@pytest.mark.parametrize(
    "variant",
    [
        mean_of_features,
        not_relative,
        squared,
        relative_to_the_mean,
        spectral_norm,
        any_rank_one,
    ],
    ids=lambda v: v.__name__,
)
def test_wrong_distance(variant, known_wrong):
    known_wrong.rejected_by(DISTANCE, variant)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dtype_is_kept(dtype):
    x = tokens((2, 5, 64)).to(dtype)
    for function in (mean_cosine, distance_to_rank_one):
        if dtype is torch.bfloat16 and function is distance_to_rank_one:
            continue
        found = function(x)
        assert found.dtype is dtype
        assert torch.allclose(found.double(), function(x.double()), atol=2e-2)
