"""pre_norm_stack against the recursion written out, with tell-tale layers."""

import pytest
import torch
from torch.nn import functional as F

from snippets.coding.pre_norm_stack import pre_norm_stack
from tests.same_results import on_views
from tests.snippets.coding.cases import (
    close,
    expect,
    gains,
    gradients,
    numbers,
    unchanged,
)
from tests.wrong import rejects

JUDGED = pre_norm_stack
D = 6


def _norm(seed):
    return lambda x: F.layer_norm(x, (D,)) * gains(D, seed=seed)


def _branch(seed):
    weight = numbers((D, D), seed=seed)
    return lambda x: torch.tanh(x @ weight) + 0.3


def _layers(depth):
    return [_branch(i) for i in range(depth)], [_norm(i) for i in range(depth + 1)]


def _wanted(x, depth):
    branches, norms = _layers(depth)
    stream = [x]
    for i in range(depth):
        stream.append(branches[i](norms[i](stream[i])) + stream[i])
    return norms[depth](stream[depth])


def check_depths(pre_norm_stack):
    for depth in (0, 1, 2, 5):
        x, case = numbers((2, 3, D), offset=1.0), f"{depth} branches"
        with unchanged(case, x):
            y = pre_norm_stack(x, *_layers(depth))
        close("y", y, _wanted(x, depth), case=case)


def check_silent_branches(pre_norm_stack):
    x, norm = numbers((2, 3, D), offset=5.0), _norm(0)
    y = pre_norm_stack(x, [torch.zeros_like] * 3, [_norm(i) for i in (1, 2, 3, 0)])
    close("y", y, norm(x), case="three branches that return zeros")


def check_calls(pre_norm_stack):
    calls = {"branch": 0, "norm": 0}

    def counted(kind):
        def layer(x):
            calls[kind] += 1
            return x

        return layer

    pre_norm_stack(numbers((1, 2, D)), [counted("branch")] * 4, [counted("norm")] * 5)
    case = "4 branches, 5 norms"
    for kind, wanted in {"branch": 4, "norm": 5}.items():
        words = f"{calls[kind]} calls of a {kind}, expected {wanted}"
        expect(calls[kind] == wanted, case, words)


def check_gradients(pre_norm_stack):
    x, grad_y = numbers((2, 3, D)).requires_grad_(), numbers((2, 3, D), seed=1)
    case = "3 branches, gradient of x by autograd"
    (ours,) = gradients(pre_norm_stack(x, *_layers(3)), [x], grad_y, case)
    (exact,) = torch.autograd.grad(_wanted(x, 3), x, grad_y)
    close("gradient of x", ours, exact, case=case)


check_views = on_views(numbers((2, 3, D)), call=lambda stack, x: stack(x, *_layers(2)))

CHECKS = [
    check_depths,
    check_silent_branches,
    check_calls,
    check_gradients,
    check_views,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(pre_norm_stack, CHECKS)
