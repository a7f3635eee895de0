"""The DeepNorm block against an explicit float64 formula, and its gradients."""

import pytest
import torch
from torch import nn

from snippets.deepnorm.block import Attention, DeepNorm, FeedForward, initialize
from tests.same_results import of_module
from tests.wrong import suite

SHAPES = ((7,), (1, 5), (3, 7), (2, 3, 31), (1, 2, 3, 9))


class Bend(nn.Module):
    """A branch with a matrix that is not symmetric and a curve."""

    def __init__(self, d):
        super().__init__()
        generator = torch.Generator().manual_seed(d)
        matrix = torch.randn(d, d, generator=generator, dtype=torch.float64)
        self.matrix = nn.Parameter(matrix / d**0.5)

    def forward(self, x):
        return torch.tanh(x @ self.matrix.to(x.dtype).T) + 0.3 * x.square()


def block(make, d, alpha, eps=1e-5, dtype=torch.float64):
    made = make(Bend(d), d, alpha, eps).to(dtype)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():  # gains and biases that are not one and zero
        for parameter in made.norm.parameters():
            noise = torch.rand(parameter.shape, generator=generator)
            parameter.copy_(0.5 + noise)
    return made


def expected(made, x, alpha, eps):
    """γ (z - mean z) / √(Var z + ε) + b with z = α x + f(x), by two moments."""
    z = alpha * x + made.branch(x)
    d = x.shape[-1]
    mean = z.sum(-1, keepdim=True) / d
    variance = (z - mean).pow(2).sum(-1, keepdim=True) / d
    gain = made.norm.weight
    bias = getattr(made.norm, "bias", None)
    y = gain * (z - mean) / (variance + eps) ** 0.5
    return y if bias is None else y + bias


def tokens(shape, scale=1.0, offset=0.0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(sum(shape))
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    return (scale * x + offset).to(dtype)


def close(actual, wanted, rtol=1e-10, atol=1e-10):
    assert actual.shape == wanted.shape
    actual, wanted = actual.detach().double(), wanted.detach().double()
    gap = (actual - wanted).abs()
    assert bool((gap <= atol + rtol * wanted.abs()).all()), float(gap.max())


def check_values(make):
    for shape in SHAPES:
        for alpha, scale, offset in ((3.76, 1, 0), (1.7, 0.1, 2), (0.5, 3, -1)):
            made = block(make, shape[-1], alpha)
            x = tokens(shape, scale, offset)
            for mode in (True, False):
                close(made.train(mode)(x.clone()), expected(made, x, alpha, 1e-5))


def check_eps(make):
    for eps in (1e-2, 1.0):
        made, x = block(make, 9, 2.2, eps), tokens((4, 9), 0.1)
        close(made(x.clone()), expected(made, x, 2.2, eps))


def check_gradients(make):
    made, x = block(make, 7, 3.76), tokens((2, 3, 7)).requires_grad_()
    upstream = tokens((2, 3, 7), 0.7, 0.1)
    wanted = torch.autograd.grad(expected(made, x, 3.76, 1e-5), x, upstream)[0]
    (actual,) = torch.autograd.grad(made(x), x, upstream)
    close(actual, wanted, 1e-8)


def check_parameters(make):
    names = {name for name, _ in block(make, 5, 2.0).named_parameters()}
    assert names == {"branch.matrix", "norm.weight", "norm.bias"}, names


def check_input_unchanged(make):
    made, x = block(make, 5, 2.0), tokens((3, 5))
    before = x.clone()
    made(x)
    assert torch.equal(x, before)


def check_cosine_at_100_layers(make):
    """α = 3.76: the output all but is the input (0.97), not the branch (0.26)."""
    generator = torch.Generator().manual_seed(0)
    x, update = torch.randn(2, 8, 2048, generator=generator)

    class Constant(nn.Module):
        def forward(self, _):
            return update

    y = make(Constant(), 2048, 200**0.25)(x.clone())
    cosine = float(torch.cosine_similarity(y, x, -1).mean().detach())
    assert abs(cosine - 0.966) < 0.01, cosine


CHECKS = [
    check_input_unchanged,
    check_values,
    check_eps,
    check_gradients,
    check_parameters,
    check_cosine_at_100_layers,
    *of_module(lambda make: block(make, 7, 2.0), tokens((2, 3, 7))),
]


test_right, test_known_wrong = suite(DeepNorm, CHECKS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_dtypes(dtype):
    made = block(DeepNorm, 31, 2.5, dtype=dtype)
    x = tokens((2, 5, 31), dtype=dtype)
    y = made(x)
    assert y.dtype == dtype
    wide = block(DeepNorm, 31, 2.5)
    wide.load_state_dict({k: v.double() for k, v in made.state_dict().items()})
    close(y, wide(x.double()), 0.05, 32 * torch.finfo(dtype).eps)


def test_alpha_one_is_post_norm():
    """The layer of torch.nn with norm_first=False, weights copied."""
    d, torch_layer = (
        12,
        nn.TransformerEncoderLayer(
            12, 3, 48, dropout=0.0, batch_first=True, dtype=torch.float64
        ),
    )
    attention = Attention(d, heads=3).double()
    feed_forward = FeedForward(d).double()
    one, two = DeepNorm(attention, d, 1.0), DeepNorm(feed_forward, d, 1.0)
    with torch.no_grad():
        for parameter in torch_layer.parameters():
            parameter.copy_(torch.rand_like(parameter) - 0.4)
        for name in ("self_attn.in_proj_bias", "self_attn.out_proj.bias"):
            torch_layer.get_parameter(name).zero_()
        for linear in (torch_layer.linear1, torch_layer.linear2):
            linear.bias.zero_()
        parts = torch_layer.self_attn.in_proj_weight.chunk(3)
        for layer, weight in zip(
            (attention.query, attention.key, attention.value), parts, strict=True
        ):
            layer.weight.copy_(weight)
        attention.output.weight.copy_(torch_layer.self_attn.out_proj.weight)
        feed_forward.up.weight.copy_(torch_layer.linear1.weight)
        feed_forward.down.weight.copy_(torch_layer.linear2.weight)
    one.norm, two.norm = torch_layer.norm1.double(), torch_layer.norm2.double()
    x = tokens((2, 6, d)).requires_grad_()
    mask = nn.Transformer.generate_square_subsequent_mask(6, dtype=torch.float64)
    theirs, ours = torch_layer(x, src_mask=mask, is_causal=True), two(one(x))
    close(ours, theirs)
    upstream = tokens((2, 6, d), 1.0, 0.2)
    close(
        torch.autograd.grad(ours, x, upstream)[0],
        torch.autograd.grad(theirs, x, upstream)[0],
        1e-8,
    )


@pytest.mark.parametrize("branch", [Attention(8, 2), FeedForward(8)], ids=repr)
def test_branch_is_causal_and_keeps_its_shape(branch):
    initialize(branch, 0.5)
    x = tokens((2, 5, 8), dtype=torch.float32)
    later = x.clone()
    later[:, 3:] += 1
    assert branch(x).shape == x.shape
    close(branch(later)[:, :3], branch(x)[:, :3], 1e-5, 1e-6)
