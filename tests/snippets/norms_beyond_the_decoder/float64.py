"""Independent float64 answers: written with loops or explicit Jacobians."""

import math

import torch

DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def draw(*shape, seed=0, offset=0.0, scale=1.0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    return (scale * x + offset).to(dtype)


def silu(z):
    return z / (1 + torch.exp(-z))


def grouped(x, groups, eps):
    """Every row, every group: x / √(mean of squares + eps)."""
    rows, y = x.reshape(-1, x.shape[-1]), []
    for row in rows:
        parts = row.split(x.shape[-1] // groups)
        y += [p / torch.sqrt((p * p).sum() / p.numel() + eps) for p in parts]
    return torch.cat(y).reshape(x.shape)


def gated(x, gate, gain, groups, norm_before_gate, eps):
    opening = silu(gate)
    if norm_before_gate:
        return grouped(x, groups, eps) * gain * opening
    return grouped(x * opening, groups, eps) * gain


def unit(x, eps=1e-6):
    """eps inside the root of the sum of squares."""
    return x / torch.sqrt((x * x).sum(-1, keepdim=True) + eps)


def delta(q, k, v, beta, decay):
    """One sequence, with the transition matrix I - beta k kᵀ written out."""
    d = k.shape[-1]
    state, outputs = torch.zeros(d, v.shape[-1], dtype=k.dtype), []
    for t in range(len(k)):
        kept = torch.diag(decay[t].expand(d))
        change = torch.eye(d, dtype=k.dtype) - beta[t] * torch.outer(k[t], k[t])
        state = change @ kept @ state + beta[t] * torch.outer(k[t], v[t])
        outputs.append(q[t] @ state)
    return torch.stack(outputs), state


def centred(x, eps):
    """LayerNorm without gain and bias."""
    mean = x.sum(-1, keepdim=True) / x.shape[-1]
    variance = ((x - mean) ** 2).sum(-1, keepdim=True) / x.shape[-1]
    return (x - mean) / torch.sqrt(variance + eps)


def attention(q, k, v, sinks=None):
    """Head by head and query by query; sinks is one number a head."""
    y = torch.empty_like(v)
    heads, time = q.shape[-3], q.shape[-2]
    for head in range(heads):
        for t in range(time):
            logits = q[..., head, t : t + 1, :] @ k[..., head, : t + 1, :].mT
            e = torch.exp(logits / math.sqrt(q.shape[-1]))
            total = e.sum(-1, keepdim=True)
            if sinks is not None:
                total = total + torch.exp(sinks[head])
            y[..., head, t, :] = (e / total @ v[..., head, : t + 1, :]).squeeze(-2)
    return y


def assert_close(actual, expected, rtol=1e-10, atol=1e-12, what="value"):
    assert actual.shape == expected.shape, f"{what}: {tuple(actual.shape)}"
    gap = (actual.detach().double() - expected.detach().double()).abs()
    good = gap <= atol + rtol * expected.detach().double().abs()
    assert bool(good.all()), f"{what}: off by up to {gap.max():.3g}"


def same_gradients(function, reference, inputs, rtol=1e-8):
    """Both differentiated by autograd; the reference is another formula."""
    inputs = [x.clone().requires_grad_() for x in inputs]
    results = []
    for each in (function, reference):
        y = each(*inputs)
        grad = draw(*y.shape, seed=7)
        results.append(torch.autograd.grad(y, inputs, grad, allow_unused=True))
    for a, b in zip(*results, strict=True):
        assert a is not None, "no gradient"
        assert_close(a, b, rtol, rtol * float(b.abs().max()) + 1e-12, "gradient")
