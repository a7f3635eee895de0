"""Both blocks once more, in float64, by explicit matrices and Jacobians."""

import torch
from torch import nn

from snippets.rms_norm.reference import RMSNorm

SHAPES = ((7,), (1, 1), (3, 7), (2, 5, 8), (1, 2, 3, 31))
EPS = 1e-2  # large enough for eps to matter


def draw(shape, seed=0, scale=1.0):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    sizes = 3 ** torch.randn((*shape[:-1], 1), generator=generator).double()
    return scale * sizes * torch.randn(shape, generator=generator).double()


def parts(d, kind):
    """A linear sublayer and a norm with a gain (and bias) that is not one."""
    generator = torch.Generator().manual_seed(d)
    sublayer = nn.Linear(d, d).double()
    norm = RMSNorm(d, EPS) if kind == "rms" else nn.LayerNorm(d, EPS)
    norm = norm.double()
    with torch.no_grad():
        for parameter in sublayer.parameters():
            parameter.normal_(std=0.7, generator=generator)
        for parameter in norm.parameters():
            parameter.uniform_(0.4, 1.9, generator=generator)
    return sublayer, norm


def norm_and_jacobian(norm, row):
    """Value and d x d Jacobian of a norm at one vector."""
    d = row.numel()
    gain, *bias = (p.detach() for p in norm.parameters())
    eye = torch.eye(d, dtype=torch.float64)
    centre = eye if isinstance(norm, RMSNorm) else eye - 1 / d
    c = centre @ row
    scale = (c @ c / d + EPS) ** 0.5
    value = gain * c / scale + (bias[0] if bias else 0)
    inner = (eye - torch.outer(c, c) / (d * scale**2)) @ centre / scale
    return value, gain[:, None] * inner


def reference(placement, sublayer, norm, x, grad_y):
    """Output and gradient at x of a block, row by row."""
    matrix, bias = sublayer.weight.detach(), sublayer.bias.detach()
    eye = torch.eye(x.shape[-1], dtype=torch.float64)
    outputs, gradients = [], []
    for row, upstream in zip(
        x.reshape(-1, x.shape[-1]), grad_y.reshape(-1, x.shape[-1]), strict=True
    ):
        if placement == "post":
            value, slope = norm_and_jacobian(norm, row + matrix @ row + bias)
            jacobian = slope @ (eye + matrix)
        else:
            inside, slope = norm_and_jacobian(norm, row)
            value = row + matrix @ inside + bias
            jacobian = eye + matrix @ slope
        outputs.append(value)
        gradients.append(upstream @ jacobian)
    return torch.stack(outputs).view(x.shape), torch.stack(gradients).view(x.shape)


def close(actual, expected, tolerance=1e-9):
    assert actual.shape == expected.shape, f"shape {tuple(actual.shape)}"
    gap = (actual.detach() - expected).abs().max()
    size = expected.abs().max() + 1e-12
    assert bool(gap <= tolerance * size), f"off by {float(gap / size):.2g}"
