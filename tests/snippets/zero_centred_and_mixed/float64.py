"""Independent float64 answers for norms and for layers with a placement."""

import math

import torch

SHAPES = ((1,), (7,), (3, 1), (2, 3), (1, 4, 13), (2, 3, 31), (2, 1, 3, 17))
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def tokens(shape, *, offset=0.0, scale=1.0, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    x = torch.randn(shape, generator=generator, dtype=torch.float64) + offset
    sizes = 3 ** torch.randn((*shape[:-1], 1), generator=generator, dtype=torch.float64)
    return (scale * sizes * x).to(dtype)


def norm(x, gain=None, eps=1e-6):
    """√d x / √(|x|² + d eps)"""
    d = x.shape[-1]
    y = d**0.5 * x / torch.sqrt((x * x).sum(-1, keepdim=True) + d * eps)
    return y if gain is None else y * gain


def norm_gradients(grad_y, x, gain, eps):
    """Through the explicit Jacobian of each row."""
    d = x.shape[-1]
    rows, upstream = x.reshape(-1, d), grad_y.reshape(-1, d)
    grad_x, grad_gain = torch.empty_like(rows), torch.zeros(d, dtype=torch.float64)
    for i, row in enumerate(rows):
        scale = float(row @ row) / d + eps
        jacobian = torch.eye(d, dtype=torch.float64) / scale**0.5
        jacobian -= torch.outer(row, row) / (d * scale**1.5)
        grad_x[i] = jacobian @ (upstream[i] * gain)
        grad_gain += upstream[i] * row / scale**0.5
    return grad_x.reshape(x.shape), grad_gain


def gelu(x):
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))


def attention(x, body, qkv_norm):
    """Head by head with a written-out softmax; x is (batch, time, d)."""
    d, time = x.shape[-1], x.shape[1]
    size = d // body.heads
    q, k, v = (x @ w.T for w in body.qkv.weight.split(d))
    heads = []
    for head in range(body.heads):
        part = slice(head * size, (head + 1) * size)
        a, b, c = q[..., part], k[..., part], v[..., part]
        if qkv_norm:
            pairs = zip((a, b, c), body.norms, strict=True)
            a, b, c = (norm(each, module.gain) for each, module in pairs)
        scores = a @ b.mT / size**0.5
        scores = scores.masked_fill(torch.ones(time, time).triu(1).bool(), -torch.inf)
        heads.append(torch.exp(scores - scores.logsumexp(-1, keepdim=True)) @ c)
    return torch.cat(heads, -1) @ body.out.weight.T


def network(x, body):
    return gelu(x @ body[0].weight.T) @ body[2].weight.T


GAINS = {"none": 0, "pre": 1, "post": 1, "stream": 1, "peri": 2}


def half(x, branch, kind, gains):
    assert len(gains) == GAINS[kind], "not the norms of this placement"
    if kind == "none":
        return x + branch(x)
    if kind == "pre":
        return x + branch(norm(x, gains[0]))
    if kind == "post":
        return norm(x + branch(x), gains[0])
    if kind == "stream":
        return norm(x, gains[0]) + branch(norm(x, gains[0]))
    return x + norm(branch(norm(x, gains[0])), gains[1])


def run(x, stack, kinds):
    """kinds: per layer (attention's placement, the network's, QKV norm)."""
    for layer, (first, second, qkv_norm) in zip(stack, kinds, strict=True):
        for module, kind in zip(layer, (first, second), strict=True):
            body = module.body
            if hasattr(body, "qkv"):

                def branch(h, body=body):
                    return attention(h, body, qkv_norm)  # noqa: B023
            else:

                def branch(h, body=body):
                    return network(h, body)

            gains = [
                getattr(module, name).gain
                for name in ("norm", "out_norm")
                if getattr(module, name, None) is not None
            ]
            x = half(x, branch, kind, gains)
    return x


def assert_close(actual, expected, rtol, atol=0.0, what="value"):
    assert actual.shape == expected.shape, f"{what}: {actual.shape}"
    gap = (actual.detach().double() - expected.detach().double()).abs()
    good = gap <= atol + rtol * expected.detach().double().abs()
    assert bool(good.all()), f"{what}: off by up to {gap.max():.3g}"
