"""Independent float64 answers: other formulas than the snippets use."""

import torch

SHAPES = ((1,), (7,), (3, 1), (2, 3), (5, 7), (1, 4, 13), (2, 3, 31), (2, 1, 3, 17))


def reference(x, gain=None, eps=1e-6):
    """x √d / √(|x|² + d eps) · gain, in float64."""
    x = x.detach().double()
    d = x.shape[-1]
    length = torch.sqrt(
        torch.linalg.vector_norm(x, dim=-1, keepdim=True) ** 2 + d * eps
    )
    y = d**0.5 * x / length
    return y if gain is None else y * gain.detach().double()


def reference_gradients(grad_y, x, gain, eps=1e-6):
    """Gradients through the explicit Jacobian of each vector, in float64."""
    grad_y, x, gain = (each.detach().double() for each in (grad_y, x, gain))
    d = x.shape[-1]
    rows, upstream = x.reshape(-1, d), grad_y.reshape(-1, d)
    grad_x = torch.empty_like(rows)
    grad_gain = torch.zeros(d, dtype=torch.float64)
    for i, row in enumerate(rows):
        scale = float((row @ row) / d + eps)
        outer = torch.outer(row, row) / (d * scale**1.5)
        jacobian = torch.eye(d, dtype=torch.float64) / scale**0.5 - outer
        grad_x[i] = jacobian @ (upstream[i] * gain)
        grad_gain += upstream[i] * row / scale**0.5
    return grad_x.reshape(x.shape), grad_gain


def tokens(shape, *, offset=0.0, scale=1.0, dtype=torch.float64, seed=0):
    """Random tokens whose sizes differ from row to row; never all alike."""
    generator = torch.Generator().manual_seed(seed + sum(shape))
    x = torch.randn(shape, generator=generator, dtype=torch.float64) + offset
    sizes = 4 ** torch.randn((*shape[:-1], 1), generator=generator, dtype=torch.float64)
    return (scale * sizes * x).to(dtype)


def gains(d, *, dtype=torch.float64, seed=0):
    """Gains that are not one, some below, some above, one negative."""
    generator = torch.Generator().manual_seed(100 + seed)
    gain = 0.3 + 2 * torch.rand(d, generator=generator, dtype=torch.float64)
    gain[0] *= -1
    return gain.to(dtype)


def assert_close(actual, expected, rtol, atol=0.0, what="value"):
    """Elementwise |actual - expected| <= atol + rtol |expected|, NaN never equal."""
    assert actual.shape == expected.shape, f"{what}: {actual.shape}"
    gap = (actual.detach().double() - expected).abs()
    good = gap <= atol + rtol * expected.abs()
    assert bool(good.all()), f"{what}: off by up to {gap.max():.3g}"
