"""Independent float64 answers: from pairs of values, not from means."""

import torch


def moved(x, dim):
    """x in float64 with dim gathered into one last dimension, and how to go back."""
    x = x.detach().double()
    dims = (dim,) if isinstance(dim, int) else dim
    dims = sorted(d % x.ndim for d in dims)
    kept = [d for d in range(x.ndim) if d not in dims]
    order = kept + dims
    inverse = [order.index(d) for d in range(x.ndim)]
    shape = [x.shape[d] for d in order]

    def back(y):
        return y.reshape(shape).permute(inverse)

    return x.permute(order).reshape(*(x.shape[d] for d in kept), -1), back


def reference(x, dim=-1, correction=0, eps=0.0):
    """Mean differences over the root of the mean squared differences of pairs."""
    rows, back = moved(x, dim)
    n = rows.shape[-1]
    pairs = rows[..., :, None] - rows[..., None, :]
    variance = pairs.square().sum((-2, -1)) / (2 * n * (n - correction))
    return back(pairs.mean(-1) / torch.sqrt(variance + eps)[..., None])


def reference_gradient(grad_y, x, dim=-1, correction=0, eps=0.0):
    """Through the explicit Jacobian of each row."""
    rows, back = moved(x, dim)
    upstream, _ = moved(grad_y, dim)
    n = rows.shape[-1]
    flat, grads = rows.reshape(-1, n), upstream.reshape(-1, n)
    out = torch.empty_like(flat)
    for i, row in enumerate(flat):
        centred = row - row.mean()
        variance = float(centred @ centred) / (n - correction) + eps
        jacobian = torch.eye(n).double() - 1 / n
        jacobian = jacobian / variance**0.5
        jacobian -= torch.outer(centred, centred) / (variance**1.5 * (n - correction))
        out[i] = jacobian.T @ grads[i]
    return back(out.reshape(rows.shape))


def numbers(shape, *, offset=0.0, scale=1.0, dtype=torch.float64, seed=0):
    """Random rows whose sizes differ; never all alike."""
    draws = torch.Generator().manual_seed(seed + sum(shape))
    x = torch.randn(shape, generator=draws, dtype=torch.float64)
    sizes = 2 ** torch.randn((*shape[:-1], 1), generator=draws, dtype=torch.float64)
    return (scale * (sizes * x + offset)).to(dtype)


def assert_close(actual, expected, rtol, atol=0.0, what="value"):
    assert actual.shape == expected.shape, f"{what}: {tuple(actual.shape)}"
    gap = (actual.detach().double() - expected).abs()
    good = gap <= atol + rtol * expected.abs()
    assert bool(good.all()), f"{what}: off by up to {gap.max():.3g}"
