"""Independent float64 answers: complex rotations, loops over heads and queries."""

import math

import torch

from snippets.qk_norm.norms import l2_norm
from snippets.rms_norm.reference import RMSNorm, rms_norm

EPS = 1e-3  # far from every default: a hard-coded eps shows


def _gained(width):
    return RMSNorm(width, EPS)


def _centred(width):
    return torch.nn.LayerNorm(width, EPS, bias=False)


def _free(width):
    return lambda x: rms_norm(x, None, EPS)


def _l2(width):
    return lambda x: l2_norm(x, EPS)


KINDS = {"rms": _gained, "layer": _centred, "free": _free, "l2": _l2, None: None}
SHAPES = (  # d, heads, key heads, width, batch, time
    (6, 1, 1, 2, 1, 1),
    (7, 3, 3, 4, 2, 5),
    (8, 4, 2, 6, 2, 7),
    (5, 6, 2, 2, 1, 9),
)


def build(cls, shape, kind, place="head", scale=None, dtype=torch.float64, seed=0):
    """An Attention whose every parameter is random; gains differ and have signs."""
    torch.manual_seed(seed)
    d, heads, key_heads, width, *_ = shape
    norm = KINDS[kind]
    attention = cls(d, heads, key_heads, width, norm=norm, place=place, scale=scale)
    attention.to(dtype)
    with torch.no_grad():
        for name, parameter in attention.named_parameters():
            if "norm" in name:
                parameter.uniform_(0.3, 2.3)
                parameter[::2] *= -1
            elif parameter.ndim:
                parameter.normal_(std=0.7)
        rows = attention.query.weight.unflatten(0, (heads, width))
        rows.mul_(4.0 ** torch.arange(heads)[:, None, None])  # heads of unequal size
    return attention


def inputs(shape, dtype=torch.float64, seed=1):
    torch.manual_seed(seed)
    d, _, _, _, batch, time = shape
    return torch.randn(batch, time, d, dtype=torch.float64).to(dtype)


def normed(x, kind, gain):
    """One vector through one norm, as a formula with lengths."""
    d = x.shape[-1]
    if kind is None:
        return x
    if kind == "layer":
        x = x - x.sum() / d
    square = torch.dot(x, x)
    if kind != "l2":
        square = square / d
    y = x / torch.sqrt(square + EPS)
    return y if gain is None else y * gain


def turned(x, position, base=10_000.0):
    """RoPE as a product of complex numbers."""
    half = x.shape[-1] // 2
    angles = [position * base ** (-i / half) for i in range(half)]
    spin = [complex(math.cos(a), math.sin(a)) for a in angles]
    z = torch.complex(x[:half], x[half:]) * torch.tensor(spin, dtype=torch.complex128)
    return torch.cat((z.real, z.imag))


def prepared(x, weight, width, kind, gain, place):
    """(heads, time, width) of one sequence: projected, normed, turned."""
    heads = weight.shape[0] // width
    out = []
    for position, token in enumerate(x):
        vector = weight @ token
        if place == "projection":
            vector = normed(vector, kind, gain)
        parts = []
        for head in range(heads):
            part = vector[head * width : (head + 1) * width]
            if place == "head":
                part = normed(part, kind, gain)
            part = turned(part, position)
            if place == "rotated":
                part = normed(part, kind, gain)
            parts.append(part)
        out.append(torch.stack(parts))
    return torch.stack(out, dim=1)


def reference_logits(attention, x, kind, place, scale):
    """(batch, heads, time, time), from the parameters alone."""
    width, group = attention.width, attention.heads // attention.key_heads
    gains = (getattr(n, "gain", getattr(n, "weight", None)) for n in norms(attention))
    q_gain, k_gain = gains
    rows = []
    for sequence in x:
        q = prepared(sequence, attention.query.weight, width, kind, q_gain, place)
        k = prepared(sequence, attention.key.weight, width, kind, k_gain, place)
        rows.append(
            torch.stack([scale * (q[h] @ k[h // group].T) for h in range(len(q))])
        )
    return torch.stack(rows)


def norms(attention):
    return attention.query_norm, attention.key_norm


def reference(attention, x, kind, place, scale):
    """The output, query by query."""
    width, group = attention.width, attention.heads // attention.key_heads
    logits = reference_logits(attention, x, kind, place, scale)
    batch = []
    for sequence, scores in zip(x, logits, strict=True):
        v = (sequence @ attention.value.weight.T).unflatten(-1, (-1, width))
        rows = []
        for t in range(len(sequence)):
            mixed = []
            for head in range(attention.heads):
                row = scores[head, t, : t + 1]
                weights = torch.exp(row - row.detach().max())
                weights = weights / weights.sum()
                mixed.append(weights @ v[: t + 1, head // group])
            rows.append(attention.output.weight @ torch.cat(mixed))
        batch.append(torch.stack(rows))
    return torch.stack(batch)


def assert_close(actual, expected, rtol, what="value", atol=None):
    """|actual - expected| <= rtol * largest, NaN never equal."""
    assert actual.shape == expected.shape, f"{what}: {actual.shape}"
    gap = (actual.detach().double() - expected.detach().double()).abs().max()
    size = expected.detach().double().abs().max()
    limit = rtol * float(size) if atol is None else atol
    assert float(gap) <= limit + 1e-300, f"{what}: off by {gap:.3g} of {size:.3g}"
