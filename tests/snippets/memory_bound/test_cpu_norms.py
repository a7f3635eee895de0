"""The C++ norms against float64: values, gradients, views, threads, both stores."""

import shutil
from itertools import product

import pytest
import torch
from torch.nn import functional

from scripts.measure import timing
from snippets.memory_bound import cpu_norms
from snippets.memory_bound.cpu_norms import fused_norm
from tests.wrong import suite

pytestmark = pytest.mark.skipif(
    not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler"
)
EPS = 1e-5


@pytest.fixture(autouse=True)
def two_threads():
    with timing.fixed_threads(2):
        yield


def draw(*shape, scale=3.0, offset=0.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator) * scale + offset


def check(norm, x, eps=EPS, past=False):
    width = x.shape[-1]
    gain, bias = draw(width, seed=1, offset=1), draw(width, seed=2)
    dy = draw(*x.shape, seed=3)
    for centred in (False, True):
        given = [x, gain, bias] if centred else [x, gain]
        exact = functional.layer_norm if centred else functional.rms_norm
        leaves = [t.detach().requires_grad_() for t in given]
        wide = [t.detach().double().requires_grad_() for t in given]
        y = norm(*leaves, eps=eps, past=past)
        want = exact(wide[0], (width,), *wide[1:], eps=eps)
        found = y, *torch.autograd.grad(y, leaves, dy)
        wanted = want, *torch.autograd.grad(want, wide, dy.double())
        for each, right in zip(found, wanted, strict=True):
            assert each.dtype == torch.float32 and each.shape == right.shape
            torch.testing.assert_close(each.double(), right, rtol=1e-4, atol=2e-5)


def check_shapes_and_stores(norm):
    for shape, past in product(
        [(1, 16), (5, 48), (3, 7, 112), (4, 256)], (False, True)
    ):
        check(norm, draw(*shape), past=past)


def check_one_thread(norm):
    with timing.fixed_threads(1):
        check(norm, draw(5, 48))


def check_no_rows(norm):
    check(norm, draw(0, 32))


def check_an_epsilon_that_counts(norm):
    check(norm, draw(4, 64, scale=0.01), eps=1e-3)


def check_far_from_the_centre(norm):
    check(norm, draw(4, 64, scale=1.0, offset=50.0))


def check_views(norm):
    check(norm, draw(64, 6).T)
    check(norm, draw(6, 80)[:, 7:71])
    check(norm, draw(5, 64)[::2])
    check(norm, draw(64).expand(4, 64))


def check_upstream_gradients_that_are_views(norm):
    x = draw(6, 64)
    gain, bias = draw(64, seed=1), draw(64, seed=2)
    for upstream in (draw(64, 6).T, draw(1, 1).expand(6, 64), draw(6, 80)[:, 8:72]):
        given = [t.clone().requires_grad_() for t in (x, gain, bias)]
        wide = [t.double().requires_grad_() for t in (x, gain, bias)]
        found = torch.autograd.grad(norm(*given), given, upstream)
        exact = functional.layer_norm(wide[0], (64,), *wide[1:], EPS)
        wanted = torch.autograd.grad(exact, wide, upstream.double())
        for each, right in zip(found, wanted, strict=True):
            torch.testing.assert_close(each.double(), right, rtol=1e-4, atol=2e-5)


CHECKS = [
    check_shapes_and_stores,
    check_one_thread,
    check_no_rows,
    check_an_epsilon_that_counts,
    check_far_from_the_centre,
    check_views,
    check_upstream_gradients_that_are_views,
]
test_right, test_known_wrong = suite(fused_norm, CHECKS, slow=True)


def test_the_streams():
    a, b = draw(5, 48), draw(5, 48, seed=1)
    for past in (False, True):
        y = torch.full_like(a, torch.nan)
        cpu_norms.copy_or_add(y, a, None, past)
        assert torch.equal(y, a)
        cpu_norms.copy_or_add(y, a, b, past)
        assert torch.equal(y, a + b)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((draw(2, 24), draw(24)), "multiple of 16, not 24"),
        ((draw(2, 32).double(), draw(32)), "float32 tensors on a CPU"),
        ((draw(2, 32), draw(16)), r"shape \(32,\)"),
        ((draw(2, 0), draw(0)), "multiple of 16, not 0"),
    ],
)
def test_what_it_does_not_take_is_said(given, says):
    with pytest.raises(ValueError, match=says) as caught:
        fused_norm(*given)
    assert "\n" not in str(caught.value)


def test_a_missing_compiler_is_said(monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(RuntimeError, match=r"no C\+\+ compiler found"):
        cpu_norms.library.__wrapped__()
