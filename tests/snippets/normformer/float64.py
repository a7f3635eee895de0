"""An independent NormFormer block in float64: loops over heads, no modules."""

import math

import torch

D, HEADS = 12, 3
ADDITIONS = ("scale_heads", "scale_attn", "scale_fc", "scale_resids")


def layer_norm(x, gain, bias, eps=1e-5):
    d = x.shape[-1]
    centred = x - x.sum(-1, keepdim=True) / d
    length = torch.linalg.vector_norm(centred, dim=-1, keepdim=True)
    return gain * centred / torch.sqrt(length**2 / d + eps) + bias


def gelu(x):
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))


def parameters(model, seed=0):
    """Random values for all parameters of a module, by name."""
    generator = torch.Generator().manual_seed(seed)
    found = {}
    for name, parameter in model.named_parameters():
        value = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        found[name] = 0.5 * value + (1.0 if "norm.weight" in name else 0.0)
    return found


def tokens(shape=(2, 5), seed=0, offset=0.5):
    generator = torch.Generator().manual_seed(50 + seed)
    x = torch.randn(*shape, D, generator=generator, dtype=torch.float64)
    return x * 3 + offset


def attention(x, p):
    width = D // HEADS
    q, k, v = (x @ p["attention.qkv.weight"].T + p["attention.qkv.bias"]).split(D, -1)
    mask = torch.ones(x.shape[1], x.shape[1]).tril().bool()
    y = p["attention.out.bias"]
    for head in range(HEADS):
        part = slice(head * width, (head + 1) * width)
        scores = q[..., part] @ k[..., part].transpose(1, 2) / width**0.5
        weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        of_head = weights @ v[..., part]
        if "attention.head_scale" in p:
            of_head = p["attention.head_scale"][head] * of_head
        y = y + of_head @ p["attention.out.weight"][:, part].T
    return y


def block(x, p):
    """The block's output; which additions it has follows from p's names."""

    def norm(name, value):
        if f"{name}.weight" not in p:
            return value
        return layer_norm(value, p[f"{name}.weight"], p[f"{name}.bias"])

    x = x + norm("output_norm", attention(norm("attention_norm", x), p))
    hidden = gelu(norm("ffn_norm", x) @ p["ffn.fc1.weight"].T + p["ffn.fc1.bias"])
    y = norm("ffn.norm", hidden) @ p["ffn.fc2.weight"].T + p["ffn.fc2.bias"]
    return p.get("residual_scale", 1.0) * x + y


def close(actual, expected, rtol, what):
    """Largest gap relative to the largest expected value; NaN never passes."""
    assert actual.shape == expected.shape, f"{what}: {tuple(actual.shape)}"
    gap = (actual.double() - expected).abs().max() / expected.abs().max()
    assert bool(gap <= rtol), f"{what}: off by {gap:.2g}"
