"""An independent nGPT layer in float64: complex rotations, loops, plain softmax."""

import torch


def direction(x):
    return x / (x * x).sum(-1, keepdim=True) ** 0.5


def states(shape, seed=0):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return direction(torch.randn(shape, generator=generator, dtype=torch.float64))


def turned(x):
    """Positions as complex numbers: (time, d) times exp(i place rate)."""
    time, d = x.shape
    pairs = torch.complex(x[:, 0::2], x[:, 1::2])
    rate = [10000.0 ** (-2 * i / d) for i in range(d // 2)]
    rate = torch.tensor(rate, dtype=torch.float64)
    phase = torch.outer(torch.arange(time).double(), rate)
    pairs = pairs * torch.exp(1j * phase)
    return torch.stack((pairs.real, pairs.imag), -1).reshape(time, d)


def attention(h, p):
    """One sequence (time, d)."""
    time, d = h.shape
    q, k, v = h @ p["query"].T, h @ p["key"].T, h @ p["value"].T
    size = d // p["heads"]
    out = torch.zeros(time, d, dtype=torch.float64)
    columns = []
    for head in range(p["heads"]):
        part = slice(head * size, (head + 1) * size)
        s = p["s_qk"][part]
        a = s * direction(turned(q[:, part]))
        b = s * direction(turned(k[:, part]))
        scores = size**0.5 * a @ b.T
        scores = scores.masked_fill(torch.ones(time, time).triu(1).bool(), -torch.inf)
        weights = torch.exp(scores - scores.logsumexp(-1, keepdim=True))
        columns.append(weights @ v[:, part])
    out = torch.cat(columns, -1)
    return out @ p["attention_out"].T


def feed_forward(h, p):
    u = p["s_u"] * (h @ p["up"].T)
    v = p["s_v"] * (h @ p["gate"].T) * h.shape[-1] ** 0.5
    return (u * v / (1 + torch.exp(-v))) @ p["feed_forward_out"].T


def layer(h, p):
    """(batch, time, d): both branches, each a step on the sphere."""
    rows = []
    for row in h:
        for branch, alpha in (
            (attention, p["alpha_attention"]),
            (feed_forward, p["alpha_feed_forward"]),
        ):
            alpha = alpha.abs()
            row = direction((1 - alpha) * row + alpha * direction(branch(row, p)))
        rows.append(row)
    return torch.stack(rows)


def values(block):
    """The parameters of a NormalizedBlock, as the reference wants them."""
    matrices = ("query", "key", "value", "attention_out", "up", "gate")
    scales = ("alpha_attention", "alpha_feed_forward", "s_qk", "s_u", "s_v")
    named = {n: getattr(block, n).weight for n in (*matrices, "feed_forward_out")}
    for name in scales:
        scale = getattr(block, name)
        named[name] = scale.stored * scale.factor
    return named | {"heads": block.heads}


def assert_close(actual, expected, rtol, atol=0.0, what="value"):
    assert actual.shape == expected.shape, f"{what}: {actual.shape}"
    gap = (actual.detach() - expected.detach()).abs()
    good = gap <= atol + rtol * expected.detach().abs()
    assert bool(good.all()), f"{what}: off by up to {gap.max():.3g}"
