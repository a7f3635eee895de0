"""What the page says about the stream's growth, writers and logits."""

import pytest
import torch
from torch import nn

from snippets.deepnorm.block import FeedForward, initialize
from snippets.rms_norm.reference import RMSNorm, rms_norm
from snippets.sandwich_norm.attention import CausalAttention
from snippets.sandwich_norm.blocks import ReorderedNorm, SandwichNorm
from snippets.sandwich_norm.growth import WRITERS, multiply, stream
from snippets.sandwich_norm.smaller_stream import run, shrink
from snippets.sandwich_norm.stacks import PreNorm, stack
from tests.wrong import suite


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("placement", [SandwichNorm, ReorderedNorm])
def test_stream_grows_like_the_root(placement, seed):
    sizes = stream(stack(placement, 32, seed=seed))
    for size, count in zip(sizes, (1, 4, 16, 64), strict=True):
        assert 0.8 < size / (1 + count) ** 0.5 < 1.25
        assert size <= 1 + count  # the bound


@pytest.mark.parametrize("factor", [0.1, 100.0])
def test_the_writer_is_divided_out(factor):
    plain, scaled = stack(SandwichNorm, 4), stack(SandwichNorm, 4)
    multiply(scaled, WRITERS, factor)
    x = torch.randn(2, 5, 64, dtype=torch.float64)
    y, z = x, x
    for one, other in zip(plain, scaled, strict=True):
        y, z = one(y), other(z)
    assert float((y - z).abs().detach().max()) < 1e-2  # ε is not divided out
    pre = stack(PreNorm, 4)
    before = pre[0](x)
    multiply(pre, WRITERS, factor)
    assert float((pre[0](x) - before).abs().detach().max()) > 0.5


@pytest.mark.parametrize("factor", [0.1, 100.0])
def test_a_smaller_writer_has_a_larger_gradient(factor):
    """The function stays, but a step turns a small matrix further."""
    x = torch.randn(2, 5, 64, dtype=torch.float64)
    upstream = torch.randn(2, 5, 64, dtype=torch.float64)
    slopes = []
    for scale in (1.0, factor):
        (_, block) = stack(SandwichNorm, 1)
        multiply(nn.ModuleList([block]), WRITERS, scale)
        (slope,) = torch.autograd.grad(block(x), block.branch.down.weight, upstream)
        slopes.append(slope)
    assert torch.allclose(slopes[1] * factor, slopes[0], rtol=1e-2, atol=1e-3)


def test_no_output_is_larger_than_its_gain():
    norm = RMSNorm(31).double()
    with torch.no_grad():
        norm.gain.uniform_(-3, 2)
        for scale in (1e-6, 1.0, 1e6):
            y = norm(scale * torch.randn(50, 31, dtype=torch.float64))
            assert bool((y.square().mean(-1).sqrt() <= norm.gain.abs().max()).all())


@pytest.mark.parametrize("seed", range(3))
def test_reordered_leans_on_qk_norm(seed):
    ratio = {}
    for name, placement, qk_norm in (
        ("sandwich", SandwichNorm, False),
        ("reordered", ReorderedNorm, False),
        ("with", ReorderedNorm, True),
    ):
        blocks = stack(placement, 24, qk_norm=qk_norm, seed=seed)
        x, target = torch.randn(2, 2, 16, 64, dtype=torch.float64)
        for block in blocks:
            x = block(x)
        (rms_norm(x) * target).sum(-1).mean().backward()
        sizes = [block.branch.down.weight.grad.norm() for block in blocks[1::2]]
        ratio[name] = float(sizes[0] / sizes[-1])
    assert ratio["reordered"] > 5 * ratio["with"]
    assert 0.5 < ratio["with"] / ratio["sandwich"] < 2


def test_what_an_exit_norm_divides_out():
    torch.manual_seed(0)
    x = torch.randn(2, 9, 16, dtype=torch.float64)
    branches = (
        FeedForward(16),
        CausalAttention(16, 2, True),
        CausalAttention(16, 2, False),
    )
    gaps = []
    for branch in branches:
        initialize(branch.double(), 1.0)
        gap = rms_norm(branch(8 * x), eps=0) - rms_norm(branch(x), eps=0)
        gaps.append(float(gap.abs().detach().max()))
    assert gaps[0] < 1e-9 and gaps[1] < 1e-3 and gaps[2] > 0.3

    bent = FeedForward(16).double()
    bent.forward = lambda x: bent.down(nn.functional.silu(bent.up(x)))
    gap = rms_norm(bent(8 * x)) - rms_norm(bent(x))
    assert float(gap.abs().detach().max()) > 0.1


def test_logits_grow_with_the_square():
    torch.manual_seed(0)
    x = torch.randn(1, 5, 16)
    for qk_norm, power in ((False, 2), (True, 0)):
        attention = CausalAttention(16, 2, qk_norm)
        q, k = attention.queries_and_keys(x)
        wide_q, wide_k = attention.queries_and_keys(8 * x)
        gap = wide_q @ wide_k.mT - 8**power * (q @ k.mT)
        assert float(gap.abs().detach().max()) < 1e-3


def test_qk_norm_takes_all_heads_together():
    torch.manual_seed(0)
    attention, x = CausalAttention(16, 4, True), torch.randn(2, 3, 16)
    q, _ = attention.queries_and_keys(x)
    assert q.shape == (2, 4, 3, 4)
    rms = q.square().mean(dim=(1, 3)).sqrt()
    assert torch.allclose(rms, torch.ones_like(rms), atol=1e-4)


def test_attention_is_causal():
    torch.manual_seed(0)
    attention, x = CausalAttention(16, 4, True), torch.randn(2, 6, 16)
    later = x.clone()
    later[:, 4:] += 1
    assert torch.allclose(attention(later)[:, :4], attention(x)[:, :4], atol=1e-6)


def test_a_branch_of_zeros_gets_a_large_gradient():
    block = SandwichNorm(nn.Linear(8, 8, bias=False).double(), 8).double()
    nn.init.zeros_(block.branch.weight)
    x = torch.randn(4, 8, dtype=torch.float64)
    upstream = torch.ones(4, 8, dtype=torch.float64)
    (steep,) = torch.autograd.grad(block(x), block.branch.weight, upstream)
    plain = x + block.branch(block.pre(x))
    (slope,) = torch.autograd.grad(plain, block.branch.weight, upstream)
    assert torch.allclose(steep, 1000 * slope)  # 1 / √1e-6


def check_shrinks_exactly(shrink):
    x = torch.randn(2, 5, 64, dtype=torch.float64) / 50  # where ε is felt
    results = []
    for by in (1.0, 8.0, 64.0):
        blocks, final = stack(SandwichNorm, 3), RMSNorm(64, 1e-3).double()
        for module in blocks.modules():
            if isinstance(module, RMSNorm):
                module.eps = 1e-3
        shrink(blocks, final, by, True)
        largest, y = run(blocks, final, x / by)
        results.append((largest * by, y))
    for largest, y in results:
        assert abs(largest / results[0][0] - 1) < 1e-9
        assert torch.allclose(y, results[0][1], rtol=1e-9, atol=1e-12)


test_shrink, test_shrink_known_wrong = suite(shrink, [check_shrinks_exactly])
