"""What the tests of the recipes share: a branch, tokens, references."""

import torch
from torch import nn

SHAPES = ((7,), (1, 5), (3, 7), (2, 3, 31), (1, 2, 3, 9))


class Bend(nn.Module):
    """A branch with a matrix that is not symmetric and a curve."""

    def __init__(self, d, seed=0):
        super().__init__()
        generator = torch.Generator().manual_seed(97 * d + seed)
        matrix = torch.randn(d, d, generator=generator, dtype=torch.float64)
        self.matrix = nn.Parameter(matrix / d**0.5)

    def forward(self, x):
        return torch.tanh(x @ self.matrix.to(x.dtype).T) + 0.3 * x.square()


def tokens(shape, scale=1.0, offset=0.0, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(sum(shape) + 1000 * seed)
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    return (scale * x + offset).to(dtype)


def disturb(module, seed=1, dtype=torch.float64):
    """Gains that are not one, biases that are not zero; matrices stay."""
    generator = torch.Generator().manual_seed(seed)
    module.to(dtype)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() < 2:
                noise = torch.rand(parameter.shape, generator=generator)
                parameter.copy_(0.5 + noise)
    return module


def layer_norm(x, norm, eps=1e-5):
    """γ (x - mean x) / √(Var x + ε) + b, by two moments."""
    centred = x - x.sum(-1, keepdim=True) / x.shape[-1]
    variance = centred.pow(2).sum(-1, keepdim=True) / x.shape[-1]
    return norm.weight * centred / (variance + eps) ** 0.5 + norm.bias


def rms(x, eps=1e-6):
    return x / (x.pow(2).sum(-1, keepdim=True) / x.shape[-1] + eps) ** 0.5


def close(actual, wanted, rtol=1e-10, atol=1e-10):
    assert actual.shape == wanted.shape
    actual, wanted = actual.detach().double(), wanted.detach().double()
    gap = (actual - wanted).abs()
    assert bool((gap <= atol + rtol * wanted.abs()).all()), float(gap.max())


def same_gradients(ours, theirs, wrt, rtol=1e-8):
    """Both outputs pull back one upstream gradient to the same gradients."""
    upstream = tokens(tuple(ours.shape), 0.7, 0.1, seed=5)
    options = dict(retain_graph=True, materialize_grads=True)
    for actual, wanted in zip(
        torch.autograd.grad(ours, wrt, upstream, **options),
        torch.autograd.grad(theirs, wrt, upstream, **options),
        strict=True,
    ):
        close(actual, wanted, rtol, 1e-9)
