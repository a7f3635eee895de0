"""An independent decoder in float64: other formulas than the snippet's.

Norms by the vector's length, RoPE by complex numbers, attention by an explicit
softmax, a loop over heads. Differentiable, so gradients come from autograd.
"""

import torch
from torch.nn import functional as F

from snippets.transformer_block.decoder import Decoder, Sizes

PLAIN = Sizes(d=24, blocks=2, heads=6, kv_heads=2, width=8, hidden=40, vocabulary=31)
QK = Sizes(24, 2, 6, 2, 8, 40, 31, eps=3e-3, base=500.0, qk_norm=True)


def parameters(sizes, seed=0):
    """Random float64 parameters by name; gains in 0.4 to 1.6, one negative."""
    generator = torch.Generator().manual_seed(seed)
    found = {}
    for name, parameter in Decoder(sizes).state_dict().items():
        value = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        if value.ndim == 1:
            value = 0.4 + 1.2 * torch.rand(value.shape, generator=generator).double()
            value[0] *= -1
        else:
            value *= 0.3
        found[name] = value
    return found


def tokens(sizes, shape=(2, 7), seed=0):
    generator = torch.Generator().manual_seed(10 + seed)
    return torch.randint(sizes.vocabulary, shape, generator=generator)


def norm(x, gain, eps):
    d = x.shape[-1]
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return gain * x * d**0.5 / torch.sqrt(length**2 + d * eps)


def rotated(x, base):
    """x is (batch, time, width): feature i and i + width / 2 as one complex."""
    time, width = x.shape[-2:]
    number = torch.complex(x[..., : width // 2], x[..., width // 2 :])
    powers = [base ** (-2 * i / width) for i in range(width // 2)]
    frequency = torch.tensor(powers, dtype=torch.float64)
    angle = torch.arange(time)[:, None] * frequency
    number = number * torch.polar(torch.ones_like(angle), angle)
    return torch.cat((number.real, number.imag), dim=-1)


def attention(x, p, sizes):
    heads = []
    mask = torch.ones(x.shape[1], x.shape[1]).tril().bool()
    for head in range(sizes.heads):
        shared = head // (sizes.heads // sizes.kv_heads)
        rows = slice(head * sizes.width, (head + 1) * sizes.width)
        kv_rows = slice(shared * sizes.width, (shared + 1) * sizes.width)
        q = x @ p["q.weight"][rows].T
        k = x @ p["k.weight"][kv_rows].T
        v = x @ p["v.weight"][kv_rows].T
        if sizes.qk_norm:
            q = norm(q, p["q_norm.gain"], sizes.eps)
            k = norm(k, p["k_norm.gain"], sizes.eps)
        q, k = rotated(q, sizes.base), rotated(k, sizes.base)
        scores = (q @ k.transpose(1, 2)) / sizes.width**0.5
        weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        heads.append(weights @ v)
    return torch.cat(heads, dim=-1) @ p["out.weight"].T


def logits(p, sizes, ids):
    """(batch, time, vocabulary) from parameters by Decoder's names."""
    x = p["embedding.weight"][ids]
    for number in range(sizes.blocks):
        start = f"blocks.{number}."
        b = {k.removeprefix(start): v for k, v in p.items() if k.startswith(start)}
        of_attention = {
            k.removeprefix("attention."): v
            for k, v in b.items()
            if k.startswith("attention.")
        }
        n = norm(x, b["attention_norm.gain"], sizes.eps)
        x = x + attention(n, of_attention, sizes)
        n = norm(x, b["ffn_norm.gain"], sizes.eps)
        gate = n @ b["ffn.gate.weight"].T
        hidden = gate / (1 + torch.exp(-gate)) * (n @ b["ffn.up.weight"].T)
        x = x + hidden @ b["ffn.down.weight"].T
    return norm(x, p["norm.gain"], sizes.eps) @ p["embedding.weight"].T


def loss(of_logits, ids):
    """Next-token cross-entropy, in the logits' dtype."""
    return F.cross_entropy(of_logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def gradients(p, sizes, ids):
    """Gradients of the loss with respect to every parameter, by name."""
    leaves = {name: value.clone().requires_grad_() for name, value in p.items()}
    found = torch.autograd.grad(
        loss(logits(leaves, sizes, ids), ids), list(leaves.values())
    )
    return dict(zip(leaves, found, strict=True))


def close(actual, expected, rtol, what):
    """Largest gap relative to the largest expected value; NaN never passes."""
    assert actual.shape == expected.shape, f"{what}: {tuple(actual.shape)}"
    gap = (actual.double() - expected).abs().max() / expected.abs().max()
    assert bool(gap <= rtol), f"{what}: off by {gap:.2g}"
