"""Mix-LN, HybridNorm, Peri-LN as whole stacks against a layer written out."""

import pytest
import torch

from snippets.zero_centred_and_mixed.mixed import hybrid_norm, mix_ln, uniform
from snippets.zero_centred_and_mixed.placements import (
    NoNorm,
    PeriNorm,
    PostNorm,
    PreNorm,
)
from tests.same_results import of_module
from tests.snippets.zero_centred_and_mixed.float64 import assert_close, run, tokens
from tests.wrong import suite

D, HEADS = 12, 3


def moved(stack, seed=0):
    """In float64 with random matrices and gains that are not one."""
    generator = torch.Generator().manual_seed(seed)
    stack.double()
    with torch.no_grad():
        for parameter in stack.parameters():
            noise = torch.randn(parameter.shape, generator=generator).double()
            parameter.copy_(1 + 0.4 * noise if noise.ndim == 1 else 0.4 * noise)
    return stack


def expect(stack, kinds):
    stack = moved(stack)
    x = tokens((2, 5, D), offset=0.5).requires_grad_()
    y = stack(x)
    matrices = [p for p in stack.parameters() if p.ndim == 2]
    grad = tokens((2, 5, D), seed=2)
    actual = torch.autograd.grad(y, (x, *matrices), grad)
    expected_y = run(x, stack, kinds)
    assert_close(y, expected_y, 1e-9, 1e-10)
    expected = torch.autograd.grad(expected_y, (x, *matrices), grad)
    for a, b in zip(actual, expected, strict=True):
        assert_close(a, b, 1e-7, 1e-8 * float(b.abs().max()), "gradient")


def norms(stack):
    """How many gains each layer has, and of which size."""
    sizes = []
    for each in stack:
        gains = (p for p in each.parameters() if p.ndim == 1)
        sizes.append(sorted(p.numel() for p in gains))
    return sizes


def check_mix_ln(build):
    for layers, alpha, first in ((4, 0.25, 1), (6, 0.25, 1), (6, 0.5, 3), (3, 0.25, 0)):
        post, pre = ("post", "post", False), ("pre", "pre", False)
        stack = build(D, HEADS, layers, alpha)
        assert norms(stack) == [[D, D]] * layers, "not two norms a layer"
        expect(stack, [post] * first + [pre] * (layers - first))


def check_mix_ln_default(build):
    stack = build(D, HEADS, 8)
    assert len(stack) == 8
    expect(stack, [("post", "post", False)] * 2 + [("pre", "pre", False)] * 6)


def check_hybrid(build):
    stack = build(D, HEADS, 3)
    assert norms(stack) == [[4, 4, 4, D]] * 3, "not the norms of HybridNorm"
    expect(stack, [("none", "stream", True)] * 3)


def check_hybrid_star(build):
    stack = build(D, HEADS, 3, True)
    assert norms(stack)[0] == [4, 4, 4, D, D], "not the norms of HybridNorm*"
    expect(stack, [("pre", "pre", True)] + [("none", "stream", True)] * 2)


MIX_LN_CHECKS = [
    check_mix_ln_default,
    check_mix_ln,
    *of_module(lambda build: moved(build(D, HEADS, 4)), tokens((2, 5, D))),
]
HYBRID_CHECKS = [
    check_hybrid,
    check_hybrid_star,
    *of_module(lambda build: moved(build(D, HEADS, 3)), tokens((2, 5, D))),
]


test_mix_ln, test_mix_ln_known_wrong = suite(mix_ln, MIX_LN_CHECKS)


test_hybrid_norm, test_hybrid_norm_known_wrong = suite(hybrid_norm, HYBRID_CHECKS)


@pytest.mark.parametrize(
    ("placement", "kind"),
    ((PreNorm, "pre"), (PostNorm, "post"), (PeriNorm, "peri"), (NoNorm, "none")),
    ids=str,
)
def test_uniform(placement, kind):
    expect(uniform(D, HEADS, 2, placement), [(kind, kind, False)] * 2)


def test_post_norm_forgets_the_length_of_the_stream_and_pre_norm_keeps_it():
    x = tokens((2, 5, D))
    silent = {kind: moved(uniform(D, HEADS, 2, kind)) for kind in (PreNorm, PostNorm)}
    with torch.no_grad():
        for stack in silent.values():
            for name, parameter in stack.named_parameters():
                if name.endswith(("out.weight", "body.2.weight")):
                    parameter.zero_()
                elif parameter.ndim == 1:
                    parameter.fill_(1)
    assert torch.equal(silent[PreNorm](x), x)
    assert_close(silent[PostNorm](1e3 * x), silent[PostNorm](x), 1e-4)


def test_qkv_norm_fixes_the_size_of_scores_and_values():
    body = moved(hybrid_norm(D, HEADS, 1))[0][0].body
    x = tokens((2, 5, D))
    assert_close(body(1e4 * x), body(x), 1e-3, 1e-3)


def test_stacks_are_causal():
    x = tokens((2, 5, D))
    other = x.clone()
    other[:, -1] += 1
    for stack in (mix_ln(D, HEADS, 4), hybrid_norm(D, HEADS, 2, star=True)):
        moved(stack)
        assert_close(stack(other)[:, :-1], stack(x)[:, :-1], 1e-11, 1e-12)
