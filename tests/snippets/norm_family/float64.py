"""Independent float64 answers: loops over groups of cells, and torch's own Jacobian."""

import torch

SHAPES = (
    (2, 6),
    (1, 6, 1),
    (3, 6, 5),
    (2, 12, 7),
    (1, 6, 31),
    (2, 6, 3, 4),
    (3, 6, 2, 1, 2),
)


def channels(count, seed=0):
    """Gain and bias, never one or zero; one gain is negative."""
    draws = torch.Generator().manual_seed(100 + seed + count)
    gain, bias = torch.rand(2, count, generator=draws, dtype=torch.float64) + 0.3
    gain[0] *= -2
    return gain, bias


def numbers(shape, *, offset=0.0, scale=1.0, dtype=torch.float64, seed=0):
    """Random numbers whose sizes differ from sample to sample and by channel."""
    draws = torch.Generator().manual_seed(seed + sum(shape))
    x = torch.randn(shape, generator=draws, dtype=torch.float64)
    for axis in (0, 1):
        sizes = [1] * len(shape)
        sizes[axis] = shape[axis]
        x = x * 2 ** torch.randn(sizes, generator=draws, dtype=torch.float64)
        x = x + torch.randn(sizes, generator=draws, dtype=torch.float64)
    return (scale * (x + offset)).to(dtype)


def grouped_reference(x, groups, gain, bias, eps):
    """Sample by sample and group by group: z = (n x - sum) / sqrt(n pairs + n² eps)."""
    x, out = x.double(), torch.empty_like(x.double())
    size = x.shape[1] // groups
    for sample in range(x.shape[0]):
        for group in range(groups):
            rows = slice(group * size, (group + 1) * size)
            cells = x[sample, rows]
            n = cells.numel()
            middle = cells.sum() / n
            squares = ((cells - middle) ** 2).sum()
            z = (cells - middle) * (n**0.5) / torch.sqrt(squares + n * eps)
            for k in range(size):
                c = group * size + k
                out[sample, c] = z[k] * gain.double()[c] + bias.double()[c]
    return out


def assert_close(actual, expected, rtol, atol=0.0, what="value"):
    assert actual.shape == expected.shape, f"{what}: {tuple(actual.shape)}"
    gap = (actual.detach().double() - expected.detach().double()).abs()
    good = gap <= atol + rtol * expected.detach().double().abs()
    assert bool(good.all()), f"{what}: off by up to {gap.max():.3g}"


def gradients(function, *inputs, seed=5):
    """Value and gradients of function for one random upstream gradient."""
    leaves = [each.detach().clone().requires_grad_() for each in inputs]
    y = function(*leaves)
    draws = torch.Generator().manual_seed(seed)
    grad_y = torch.randn(y.shape, generator=draws, dtype=torch.float64).to(y.dtype)
    return y.detach(), *torch.autograd.grad(y, leaves, grad_y, materialize_grads=True)
