"""Independent float64 answers: other formulas than the snippets use."""

import torch

SHAPES = ((1,), (7,), (3, 1), (2, 2), (5, 7), (1, 4, 13), (2, 3, 31), (2, 1, 3, 17))


def reference(x, gain=None, bias=None, eps=1e-5):
    """P x √d / √(|P x|² + d eps), P = I - 11ᵀ/d as a matrix, in float64."""
    x = x.detach().double()
    d = x.shape[-1]
    projection = torch.eye(d, dtype=torch.float64) - 1 / d
    dropped = (x - x[..., :1]) @ projection  # exact also with a large mean
    square = (dropped * dropped).sum(-1, keepdim=True)
    y = d**0.5 * dropped / (square + d * eps).sqrt()
    if gain is not None:
        y = y * gain.detach().double()
    return y if bias is None else y + bias.detach().double()


def reference_gradients(grad_y, x, gain, eps=1e-5):
    """Gradients through the explicit Jacobian of each vector, in float64."""
    grad_y, x, gain = (each.detach().double() for each in (grad_y, x, gain))
    d = x.shape[-1]
    projection = torch.eye(d, dtype=torch.float64) - 1 / d
    rows, upstream = x.reshape(-1, d), grad_y.reshape(-1, d)
    grad_x = torch.empty_like(rows)
    grad_gain = torch.zeros(d, dtype=torch.float64)
    for i, row in enumerate(rows):
        dropped = projection @ (row - row[0])
        scale = float((dropped @ dropped) / d + eps)
        outer = torch.outer(dropped, dropped) / (d * scale**1.5)
        jacobian = projection / scale**0.5 - outer
        grad_x[i] = jacobian @ (upstream[i] * gain)
        grad_gain += upstream[i] * dropped / scale**0.5
    return grad_x.reshape(x.shape), grad_gain, upstream.sum(0)


def tokens(shape, *, offset=0.0, scale=1.0, dtype=torch.float64, seed=0):
    """Random tokens whose sizes and means differ from row to row."""
    generator = torch.Generator().manual_seed(seed + sum(shape))
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    one = (*shape[:-1], 1)
    sizes = 3 ** torch.randn(one, generator=generator, dtype=torch.float64)
    means = torch.randn(one, generator=generator, dtype=torch.float64)
    return (scale * (sizes * x + means) + offset).to(dtype)


def gains(d, *, dtype=torch.float64, seed=0):
    """Gains that are not one, some below, some above, one negative."""
    generator = torch.Generator().manual_seed(100 + seed)
    gain = 0.3 + 2 * torch.rand(d, generator=generator, dtype=torch.float64)
    gain[0] *= -1
    return gain.to(dtype)


def biases(d, *, dtype=torch.float64):
    """Biases that are not zero and not alike."""
    generator = torch.Generator().manual_seed(7)
    return torch.randn(d, generator=generator, dtype=torch.float64).to(dtype)


def assert_close(actual, expected, rtol, atol=0.0, what="value"):
    """Elementwise |actual - expected| <= atol + rtol |expected|, NaN never equal."""
    assert actual.shape == expected.shape, f"{what}: {tuple(actual.shape)}"
    gap = (actual.detach().double() - expected).abs()
    good = gap <= atol + rtol * expected.abs()
    assert bool(good.all()), f"{what}: off by up to {gap.max():.3g}"
