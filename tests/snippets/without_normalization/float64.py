"""Independent float64 answers: tanh and its derivative through exponentials."""

import torch

SHAPES = ((1,), (7,), (3, 1), (2, 3), (5, 7), (1, 4, 13), (2, 3, 31), (2, 1, 3, 17))
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def tanh(z):
    """1 - 2 / (exp(2 z) + 1), on |z| so that exp cannot overflow to the wrong side."""
    size = 1 - 2 / (torch.exp(2 * z.abs().clamp(max=300)) + 1)
    return torch.where(z < 0, -size, size)


def reference(x, alpha, gain, bias):
    x, alpha, gain, bias = (each.detach().double() for each in (x, alpha, gain, bias))
    return torch.addcmul(bias.expand_as(x), gain.expand_as(x), tanh(alpha * x))


def reference_gradients(grad_y, x, alpha, gain):
    """Row by row, with the derivative 1 / cosh²."""
    grad_y, x, alpha, gain = (e.detach().double() for e in (grad_y, x, alpha, gain))
    d = x.shape[-1]
    slope = torch.cosh((alpha * x).clamp(-300, 300)) ** -2
    grad_x = torch.empty_like(x).reshape(-1, d)
    grad_alpha, grad_gain = torch.zeros(()).double(), torch.zeros(d).double()
    grad_bias = torch.zeros(d).double()
    rows = zip(
        grad_y.reshape(-1, d), x.reshape(-1, d), slope.reshape(-1, d), strict=True
    )
    for i, (g, row, s) in enumerate(rows):
        grad_x[i] = torch.diag(alpha * gain * s) @ g
        grad_alpha += (g * gain * s) @ row
        grad_gain += g * tanh(alpha * row)
        grad_bias += g
    return grad_x.reshape(x.shape), grad_alpha, grad_gain, grad_bias


def tokens(shape, *, offset=0.0, scale=1.0, dtype=torch.float64, seed=0):
    """Random tokens whose sizes differ from row to row."""
    generator = torch.Generator().manual_seed(seed + sum(shape))
    x = torch.randn(shape, generator=generator, dtype=torch.float64) + offset
    sizes = 2 ** torch.randn((*shape[:-1], 1), generator=generator, dtype=torch.float64)
    return (scale * sizes * x).to(dtype)


def parameters(d, dtype=torch.float64, alpha=0.7):
    """alpha, gain, bias: no gain is one, one is negative, no bias is zero."""
    generator = torch.Generator().manual_seed(100)
    gain = 0.3 + 2 * torch.rand(d, generator=generator, dtype=torch.float64)
    gain[0] *= -1
    bias = 0.2 + torch.rand(d, generator=generator, dtype=torch.float64)
    alpha = torch.tensor(alpha, dtype=torch.float64)
    return alpha.to(dtype), gain.to(dtype), bias.to(dtype)


def assert_close(actual, expected, rtol, atol=0.0, what="value"):
    assert actual.shape == expected.shape, f"{what}: {actual.shape}"
    gap = (actual.detach().double() - expected).abs()
    good = gap <= atol + rtol * expected.abs()
    assert bool(good.all()), f"{what}: off by up to {gap.max():.3g}"
