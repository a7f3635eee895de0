"""Answer keys of docs/data/quiz/deep-recipes.yml, found out by running."""

import torch
from torch import nn
from torch.nn import functional as F

from snippets.curse_of_depth.depth_scaling import ScaledNorm
from snippets.deepnorm.block import Attention, DeepNorm, FeedForward, initialize
from snippets.deepnorm.coefficients import coefficients
from snippets.normformer.block import Block
from snippets.residual_recipes.complete_p import DepthScaled
from snippets.residual_recipes.layer_scale import LayerScale, initial_scale
from snippets.sandwich_norm.attention import CausalAttention
from snippets.sandwich_norm.blocks import SandwichNorm
from snippets.without_normalization.residual import ScaledResidual


class _Constant(nn.Module):
    """A branch that answers with a fixed tensor."""

    def __init__(self, answer: torch.Tensor) -> None:
        super().__init__()
        self.answer = answer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.answer


def deepnorm_block_and_its_input() -> dict[str, bool]:
    torch.manual_seed(0)
    x, update = torch.randn(2, 8, 4096)
    alpha = coefficients(decoder_layers=100)["decoder"].alpha
    y = DeepNorm(_Constant(update), 4096, alpha)(x)
    cosine = F.cosine_similarity(y, x, dim=-1).mean().item()
    return {
        "nearly-the-input": cosine > 0.9,
        "half-and-half": 0.6 < cosine < 0.8,
        "mostly-the-update": 0.1 < cosine < 0.4,
    }


def deepnorm_alpha_for_48_layers() -> dict[str, bool]:
    alpha = coefficients(decoder_layers=48)["decoder"].alpha
    rules = {
        "fourth-root-of-96": lambda n: (2 * n) ** 0.25,
        "fourth-root-of-192": lambda n: (4 * n) ** 0.25,
        "fourth-root-of-384": lambda n: (8 * n) ** 0.25,
        "square-root-of-96": lambda n: (2 * n) ** 0.5,
    }
    return {  # 3.5566: from the configuration of MiniMax-Text-01, 80 layers
        name: abs(rule(48) - alpha) < 1e-3 and abs(rule(80) - 3.5566) < 1e-3
        for name, rule in rules.items()
    }


def matrices_that_beta_shrinks() -> dict[str, bool]:
    torch.manual_seed(0)
    small = set()
    for branch in (Attention(256, 4), FeedForward(256)):
        initialize(branch, beta=0.2)
        for name, linear in branch.named_children():
            xavier = (2 / (linear.in_features + linear.out_features)) ** 0.5
            if linear.weight.std() < 0.5 * xavier:
                small.add(name)
    return {
        "all-matrices": small == {"query", "key", "value", "output", "up", "down"},
        "the-last-of-each-branch": small == {"output", "down"},
        "all-of-attention": small == {"query", "key", "value", "output"},
        "all-but-query-and-key": small == {"value", "output", "up", "down"},
    }


@torch.no_grad()
def sandwich_with_a_larger_last_matrix() -> dict[str, bool]:
    torch.manual_seed(0)
    block = SandwichNorm(FeedForward(64), 64)
    x = torch.randn(2, 5, 64)
    before = block(x) - x
    block.branch.down.weight.mul_(100)
    factor = ((block(x) - x).norm() / before.norm()).item()
    return {
        "same-size": 0.9 < factor < 1.1,
        "tenfold": 9 < factor < 11,
        "hundredfold": 90 < factor < 110,
        "a-hundredth": 0.009 < factor < 0.011,
    }


def logits_without_an_entrance_norm() -> dict[str, bool]:
    torch.manual_seed(0)
    attention, x = CausalAttention(64, heads=4, qk_norm=False), torch.randn(2, 16, 64)
    spread = {}
    for size in (1, 4):
        q, k = attention.queries_and_keys(size * x)
        spread[size] = (q @ k.mT).std().item()
    factor = spread[4] / spread[1]
    return {
        "same": 0.9 < factor < 1.1,
        "twice": 1.9 < factor < 2.1,
        "four-times": 3.9 < factor < 4.1,
        "sixteen-times": 15.9 < factor < 16.1,
    }


def order_that_survives_float16() -> dict[str, bool]:
    torch.manual_seed(0)
    q, k = (200 * torch.randn(2, 64, 64)).half()

    def shifted(logits):
        return logits - logits.amax(dim=-1, keepdim=True)

    logits = {
        "divide-the-product": (q @ k.mT) / 8,
        "divide-the-queries": (q / 8) @ k.mT,
        "relax-the-finished-logits": shifted(((q / 8) @ k.mT) / 32) * 32,
        "relax-before-the-product": shifted((q / (8 * 32)) @ k.mT) * 32,
    }
    return {
        name: bool(torch.softmax(each, dim=-1).isfinite().all())
        for name, each in logits.items()
    }


@torch.no_grad()
def all_head_scales_doubled() -> dict[str, bool]:
    torch.manual_seed(0)
    block, x = Block(64, heads=4), torch.randn(2, 5, 64)
    nn.init.zeros_(block.attention.out.bias)
    before = block.output_norm(block.attention(x))
    block.attention.head_scale.mul_(2)
    after = block.output_norm(block.attention(x))
    factor = (after.norm() / before.norm()).item()
    return {
        "nothing-changes": torch.allclose(after, before, atol=1e-2),
        "twice-the-update": 1.9 < factor < 2.1,
        "half-the-update": 0.4 < factor < 0.6,
    }


def branch_factor_for_eight_times_the_depth() -> dict[str, bool]:
    exponents = {"zero": 0.0, "one-half": 0.5, "one": 1.0}
    return {
        name: 0.7 < _reach(a, 32) / _reach(a, 4) < 1.4 for name, a in exponents.items()
    }


def _reach(exponent: float, layers: int) -> float:
    """How far one step along the signs moves a fresh stack's output."""
    torch.manual_seed(0)
    blocks = nn.Sequential()
    for _ in range(layers):
        branch, norm = FeedForward(32), nn.LayerNorm(32)
        initialize(branch, beta=1.0)
        blocks.append(DepthScaled(branch, norm, layers / 4, exponent))
    blocks.append(nn.LayerNorm(32)).double()
    x, target = torch.randn(2, 16, 32, dtype=torch.float64)
    y = blocks(x)
    (y * target).sum().backward()
    with torch.no_grad():
        for module in blocks.modules():
            if isinstance(module, nn.Linear):
                module.weight -= 1e-7 * module.weight.grad.sign()
        return (blocks(x) - y).norm().item()


def first_gradient_of_the_branch_matrices() -> dict[str, bool]:
    torch.manual_seed(0)
    x, target = torch.randn(2, 3, 8, 32)
    norm, none = nn.LayerNorm(32), {}
    for name, block in {
        "rezero": ScaledResidual(FeedForward(32)),
        "layer-scale": LayerScale(FeedForward(32), norm, 32, initial_scale(96)),
        "layer-norm-scaling": DepthScaled(FeedForward(32), ScaledNorm(norm, 96), 1.0),
    }.items():
        (block(x) * target).sum().backward()
        linears = [m for m in block.modules() if isinstance(m, nn.Linear)]
        none[name] = not any(each.weight.grad.any() for each in linears)
    return none


def deepnorm_in_one_line() -> dict[str, bool]:
    torch.manual_seed(0)
    x, alpha = torch.randn(3, 4, 16), 2.5
    f = nn.Linear(16, 16)
    block = DeepNorm(f, 16, alpha)
    norm = block.norm
    lines = {
        "stream": norm(alpha * x + f(x)),
        "branch": norm(x + alpha * f(x)),
        "pre": alpha * x + f(norm(x)),
        "inside": norm(x) * alpha + f(x),
    }
    return {name: torch.allclose(line, block(x)) for name, line in lines.items()}


def exit_gains_shrunk_by_depth() -> dict[str, bool]:
    torch.manual_seed(0)
    x = torch.randn(50, 256)
    x = x / x.square().mean().sqrt()
    with torch.no_grad():
        for _ in range(48):
            block = SandwichNorm(nn.Linear(256, 256, bias=False), 256)
            block.post.gain.fill_(48**-0.5)
            x = block(x)
    size = x.square().mean().sqrt().item()
    values = {"one": 1, "root-two": 1.41, "seven": 7, "eight": 7.9}
    return {name: abs(size / value - 1) < 0.1 for name, value in values.items()}
