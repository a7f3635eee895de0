"""adaLN-Zero and LayerScale: the formula, the start, the first gradients."""

import pytest
import torch
from torch import nn
from transformers import ConvNextConfig, Dinov2Config
from transformers.models.convnext.modeling_convnext import ConvNextLayer
from transformers.models.dinov2.modeling_dinov2 import Dinov2LayerScale
from transformers.models.qwen2_5_omni.modeling_qwen2_5_omni import (
    Qwen2_5_OmniAdaLayerNormZero,
    Qwen2_5_OmniAdaLayerNormZero_Final,
)

from snippets.norms_beyond_the_decoder.ada_ln import AdaLNZero
from snippets.norms_beyond_the_decoder.layer_scale import LayerScale
from snippets.rms_norm.reference import RMSNorm
from tests.same_results import of_module
from tests.snippets.norms_beyond_the_decoder.float64 import (
    DTYPES,
    assert_close,
    centred,
    draw,
    silu,
)
from tests.wrong import suite

D = 6


class Body(nn.Module):
    """Mixes features and is not linear, so that scale and alpha differ."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(draw(D, D, seed=20, scale=0.5))

    def forward(self, x):
        return torch.tanh(x @ self.weight.T.to(x.dtype)) + 0.3


def made(kind, moved=True):
    torch.manual_seed(0)
    block = kind(D, Body()).double()
    if moved:
        with torch.no_grad():
            for i, parameter in enumerate(block.parameters()):
                noise = draw(*parameter.shape, seed=30 + i, scale=0.4)
                parameter.copy_(noise)
    return block


def formula(block, x, c, eps=1e-6):
    """One condition and one token at a time."""
    y = torch.empty_like(x)
    linear = block.modulation[1]
    for i in range(len(x)):
        parts = linear.weight @ silu(c[i]) + linear.bias
        shift, scale, alpha = parts[:D], parts[D : 2 * D], parts[2 * D :]
        for t in range(x.shape[1]):
            h = (1 + scale) * centred(x[i, t], eps) + shift
            y[i, t] = x[i, t] + alpha * (torch.tanh(block.body.weight @ h) + 0.3)
    return y


def check_formula(kind):
    block = made(kind)
    for batch, time, scale in ((1, 1, 1.0), (3, 5, 4.0), (2, 4, 1e-3)):
        x, c = draw(batch, time, D, scale=scale, offset=0.3), draw(batch, D, seed=1)
        assert_close(block(x, c), formula(block, x, c))


def check_gradients(kind):
    block = made(kind)
    x, c = draw(3, 5, D).requires_grad_(), draw(3, D, seed=1).requires_grad_()
    inputs = (x, c, *block.parameters())
    grad = draw(3, 5, D, seed=2)
    actual = torch.autograd.grad(block(x, c), inputs, grad)
    expected = torch.autograd.grad(formula(block, x, c), inputs, grad)
    for a, b in zip(actual, expected, strict=True):
        assert_close(a, b, 1e-9, 1e-10, "gradient")


def check_starts_as_identity(kind):
    block = made(kind, moved=False)
    x, c = draw(3, 5, D, scale=9), draw(3, D, seed=1)
    assert torch.equal(block(x, c), x), "not the identity at the start"


def check_learns_from_the_start(kind):
    """Only alpha's rows have a gradient at first; then everything has one."""
    block = made(kind, moved=False)
    x, c, target = draw(3, 5, D), draw(3, D, seed=1), draw(3, 5, D, seed=2)
    for step in range(2):
        block.zero_grad()
        (block(x, c) - target).square().mean().backward()
        rows = block.modulation[1].weight.grad.split(D)
        assert bool(rows[2].any()), "alpha has no gradient"
        later = [rows[0], rows[1], block.body.weight.grad]
        assert all(bool(g.any()) == bool(step) for g in later), f"step {step + 1}"
        with torch.no_grad():
            for parameter in block.parameters():
                parameter -= 0.1 * parameter.grad


def check_has_no_affine_of_its_own(kind):
    block = made(kind)
    assert not list(block.norm.parameters()), "a second gain and bias"
    shapes = sorted(tuple(p.shape) for p in block.modulation.parameters())
    assert shapes == [(3 * D,), (3 * D, D)], shapes


def check_low_precision(kind):
    for dtype in DTYPES:
        block = made(kind).to(dtype)
        x, c = draw(3, 5, D, dtype=dtype), draw(3, D, seed=1, dtype=dtype)
        y = block(x, c)
        assert y.dtype == dtype
        expected = formula(made(kind), x.double(), c.double())
        assert_close(y, expected, 0, 24 * torch.finfo(dtype).eps)


ADA_LN = [
    check_starts_as_identity,
    check_formula,
    check_gradients,
    check_learns_from_the_start,
    check_has_no_affine_of_its_own,
    check_low_precision,
    *of_module(made, draw(3, 5, D), draw(3, D, seed=1)),
]


test_ada_ln, test_ada_ln_known_wrong = suite(AdaLNZero, ADA_LN)


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16), ids=str)
def test_class_of_transformers(dtype):
    theirs = Qwen2_5_OmniAdaLayerNormZero(D).to(dtype)
    block = AdaLNZero(D, nn.Identity()).to(dtype)
    with torch.no_grad():
        block.modulation[1].weight.copy_(theirs.linear.weight[: 3 * D])
        block.modulation[1].bias.copy_(theirs.linear.bias[: 3 * D])
    x, c = draw(3, 5, D, dtype=dtype), draw(3, D, seed=1, dtype=dtype)
    modulated, alpha, *_ = theirs(x, c)
    expected = x + alpha[:, None] * modulated
    assert_close(block(x, c), expected, 0, 16 * torch.finfo(dtype).eps)


def test_two_classes_of_one_file_order_shift_and_scale_differently():
    x, c = draw(2, 3, D, dtype=torch.float32), torch.ones(2, D)
    for kind, first_is_scale in (
        (Qwen2_5_OmniAdaLayerNormZero, False),
        (Qwen2_5_OmniAdaLayerNormZero_Final, True),
    ):
        module = kind(D)
        nn.init.zeros_(module.linear.weight)
        with torch.no_grad():
            module.linear.bias.zero_()
            module.linear.bias[:D] = 2.0
        out = module(x, c)
        out = out if isinstance(out, torch.Tensor) else out[0]
        normed = centred(x.double(), 1e-6)
        assert_close(out, 3 * normed if first_is_scale else normed + 2, 1e-5, 1e-5)


# LayerScale --------------------------------------------------------------------


def scaled(kind, start=1e-4, moved=True):
    block = kind(D, RMSNorm(D), Body(), start).double()
    if moved:
        with torch.no_grad():
            block.scale.copy_(draw(D, seed=40))
            block.norm.gain.copy_(draw(D, seed=41, offset=1))
    return block


def scaled_formula(block, x):
    normed = x / torch.sqrt((x * x).sum(-1, keepdim=True) / D + 1e-6)
    h = torch.tanh((normed * block.norm.gain) @ block.body.weight.T) + 0.3
    return x + h @ torch.diag(block.scale)


def check_scale(kind):
    block = scaled(kind)
    x = draw(2, 3, D, scale=3).requires_grad_()
    assert_close(block(x), scaled_formula(block, x))
    inputs, grad = (x, *block.parameters()), draw(2, 3, D, seed=2)
    actual = torch.autograd.grad(block(x), inputs, grad, materialize_grads=True)
    expected = torch.autograd.grad(scaled_formula(block, x), inputs, grad)
    for a, b in zip(actual, expected, strict=True):
        assert_close(a, b, 1e-9, 1e-11, "gradient")


def check_scale_start(kind):
    x = draw(2, 3, D)
    for start in (1e-4, 0.1):
        block = scaled(kind, start, moved=False)
        assert tuple(block.scale.shape) == (D,), "one number a feature"
        branch = block.body(block.norm(x))
        assert_close(block(x) - x, start * branch, 1e-6, 1e-12)


SCALE = [
    check_scale_start,
    check_scale,
    *of_module(scaled, draw(2, 3, D)),
]


test_layer_scale, test_layer_scale_known_wrong = suite(LayerScale, SCALE)


def test_dinov2_has_it():
    theirs = Dinov2LayerScale(Dinov2Config(hidden_size=D, layerscale_value=0.3))
    block = LayerScale(D, nn.Identity(), nn.Identity(), start=0.3)
    x = draw(2, 3, D, dtype=torch.float32)
    assert_close(x + theirs(x), block(x), 1e-6, 1e-7)


def test_convnext_starts_it_at_a_millionth():
    layer = ConvNextLayer(ConvNextConfig(), dim=D)
    assert layer.layer_scale_parameter.shape == (D,)
    assert bool((layer.layer_scale_parameter == torch.tensor(1e-6)).all())


def test_the_scale_folds_into_the_last_matrix():
    scale, weight, h = draw(D), draw(D, D, seed=1), draw(4, D, seed=2)
    folded = torch.diag(scale) @ weight
    assert_close(scale * (h @ weight.T), h @ folded.T)
