"""Independent float64 answers: differences of pairs, explicit Jacobians, loops."""

import torch

SHAPES = (
    (2, 1),
    (7, 1),
    (2, 3),
    (31, 7),
    (2, 7, 5),
    (1, 7, 3),
    (3, 1, 4),
    (2, 2, 3, 5),
)


def statistics(rows):
    """Mean and biased variance of each column, in float64, without a mean square.

    The variance is the mean of (a - b)² / 2 over all pairs of rows.
    """
    rows = rows.detach().double()
    first = rows[0]
    mean = first + (rows - first).sum(0) / len(rows)
    pairs = rows[:, None] - rows[None]
    return mean, pairs.square().sum((0, 1)) / (2 * len(rows) ** 2)


def batch_norm(x, gain, bias, eps):
    """What train mode returns, in float64; x is (..., d)."""
    rows = x.detach().double().reshape(-1, x.shape[-1])
    mean, var = statistics(rows)
    y = (rows - mean) / (var + eps).sqrt() * gain.double() + bias.double()
    return y.detach().reshape(x.shape)


def layer_norm(x, gain, bias, eps):
    """Token by token, in float64; x is (..., d)."""
    rows = x.detach().double().reshape(-1, x.shape[-1])
    mean, var = statistics(rows.T)
    y = (rows.T - mean) / (var + eps).sqrt()
    return (y.T * gain.double() + bias.double()).detach().reshape(x.shape)


def normalize_gradient(upstream, column, eps):
    """Gradient of (column - mean) / √(var + eps) through its Jacobian."""
    n = len(column)
    mean, var = statistics(column[:, None])
    r = 1 / float(var + eps) ** 0.5
    unit = (column - mean) * r
    eye = torch.eye(n, dtype=torch.float64)
    jacobian = r * (eye - 1 / n - torch.outer(unit, unit) / n)
    return jacobian @ upstream


def batch_norm_gradients(grad_y, x, gain, eps):
    """Gradients to x, gain and bias in train mode, in float64."""
    rows = x.detach().double().reshape(-1, x.shape[-1])
    upstream = grad_y.detach().double().reshape(rows.shape)
    mean, var = statistics(rows)
    columns = [
        normalize_gradient(upstream[:, j] * float(gain.detach()[j]), rows[:, j], eps)
        for j in range(rows.shape[1])
    ]
    unit = (rows - mean) / (var + eps).sqrt()
    grad_x = torch.stack(columns, dim=1).reshape(x.shape)
    return grad_x, (upstream * unit).sum(0), upstream.sum(0)


def layer_norm_gradients(grad_y, x, gain, eps):
    """Gradients to x, gain and bias, token by token, in float64."""
    rows = x.detach().double().reshape(-1, x.shape[-1])
    upstream = grad_y.detach().double().reshape(rows.shape)
    mean, var = statistics(rows.T)
    unit = ((rows.T - mean) / (var + eps).sqrt()).T
    pairs = zip(upstream * gain.detach().double(), rows, strict=True)
    grad_x = torch.stack([normalize_gradient(g, row, eps) for g, row in pairs])
    return grad_x.reshape(x.shape), (upstream * unit).sum(0), upstream.sum(0)


def tokens(shape, *, offset=0.0, scale=1.0, dtype=torch.float64, seed=0):
    """Random tokens; each feature has a mean and a size of its own."""
    generator = torch.Generator().manual_seed(seed + sum(shape))
    options = {"generator": generator, "dtype": torch.float64}
    x = torch.randn(shape, **options) * 3 ** torch.randn(shape[-1], **options)
    return (scale * (x + torch.randn(shape[-1], **options) + offset)).to(dtype)


def affine(module, seed=0):
    """The module with a random gain, not one and one of it negative, and a bias."""
    generator = torch.Generator().manual_seed(100 + seed)
    with torch.no_grad():
        d = module.gain.numel()
        gain = 0.3 + 2 * torch.rand(d, generator=generator, dtype=torch.float64)
        gain[0] *= -1
        module.gain.copy_(gain)
        module.bias.copy_(torch.randn(d, generator=generator, dtype=torch.float64))
    return module


def assert_close(actual, expected, rtol, atol=0.0, what="value"):
    """Elementwise |actual - expected| <= atol + rtol |expected|, NaN never equal."""
    assert actual.shape == expected.shape, f"{what}: {tuple(actual.shape)}"
    gap = (actual.detach().double() - expected.detach()).abs()
    good = gap <= atol + rtol * expected.detach().abs()
    assert bool(good.all()), f"{what}: off by up to {gap.max():.3g}"
