# --8<-- [start:Recipe]
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from snippets.port_a_norm.gains import gain_of
from snippets.qk_norm.rope import rotate

D, HEADS, LAYERS, WORDS = 64, 4, 6, 512


@dataclass(frozen=True)
class Recipe:
    """How the norms of a small decoder work; the weights are the same."""

    kind: str = "RMSNorm"  # or LayerNorm, without a bias
    form: str = "1+w"  # of the stored gain
    eps: float = 1e-6
    rounds: str = "after"  # the gain, or before it
    inputs: bool = True  # a norm on what a branch reads
    outputs: bool = True  # and one on what it returns
    misloaded: str = "none"  # in or out: this end has the gain of the other
    qk: str = "head"  # or projection, rotated (after RoPE), none
    shift: bool = False  # add the norm's bias
    factor: float = 1.0  # of what a branch adds to the stream
    final: bool = True


# --8<-- [end:Recipe]


# --8<-- [start:weights]
def weights(scale: float = 0.02) -> dict[str, Tensor]:
    """Random weights in float64, gains and biases of norms among them."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    found = {"embedding": scale * (0.2 + draw(WORDS, D))}
    found |= {"head": draw(WORDS, D), "final": 0.3 * draw(2, D)}
    for i in range(LAYERS):
        for name in ("attention.in", "attention.out", "ffn.in", "ffn.out"):
            found[f"{i}.{name}"] = 0.3 * draw(2, D)
        for name in ("q", "k"):
            found[f"{i}.{name}.norm"] = 0.3 * draw(2, D)  # gain, bias
        for name in ("q", "k", "v", "o"):
            found[f"{i}.{name}"] = draw(D, D) / D**0.5
        found[f"{i}.up"] = draw(4 * D, D) / D**0.5
        found[f"{i}.down"] = draw(D, 4 * D) / (4 * D) ** 0.5
    return found


# --8<-- [end:weights]


# --8<-- [start:decoder]
def norm(x: Tensor, stored: Tensor, recipe: Recipe) -> Tensor:
    """x is (..., d); stored is (2, d), the gain as stored and the bias."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    if recipe.kind == "LayerNorm":
        wide = wide - wide.mean(dim=-1, keepdim=True)
    mean_square = wide.square().mean(dim=-1, keepdim=True)
    y = wide * torch.rsqrt(mean_square + recipe.eps)
    gain = gain_of(stored[0], recipe.form).to(y.dtype)
    if recipe.rounds == "before":
        y, gain = y.to(x.dtype), gain.to(x.dtype)
    y = y * gain
    return (y + stored[1] if recipe.shift else y).to(x.dtype)


def attention(x: Tensor, w: dict, i: int, recipe: Recipe) -> Tensor:
    def part(name: str) -> Tensor:
        y, stored = x @ w[f"{i}.{name}"].T, w.get(f"{i}.{name}.norm")
        plain = stored is None or recipe.qk == "none"
        if not plain and recipe.qk == "projection":
            y = norm(y, stored, recipe)
        y = y.unflatten(-1, (HEADS, -1)).transpose(1, 2)
        if stored is not None and recipe.qk == "rotated":
            return norm(rotate(y), stored[:, : D // HEADS], recipe)
        if not plain and recipe.qk == "head":
            y = norm(y, stored[:, : D // HEADS], recipe)
        return y if stored is None else rotate(y)

    q, k, v = part("q"), part("k"), part("v")
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return y.transpose(1, 2).flatten(start_dim=2) @ w[f"{i}.o"].T


def ffn(x: Tensor, w: dict, i: int, recipe: Recipe) -> Tensor:
    return F.gelu(x @ w[f"{i}.up"].T) @ w[f"{i}.down"].T


def decode(tokens: Tensor, w: dict, recipe: Recipe) -> Tensor:
    """Logits (batch, time, words) for tokens (batch, time)."""
    x = w["embedding"][tokens]
    other = {"in": "out", "out": "in"}
    ends = [other[e] if e == recipe.misloaded else e for e in ("in", "out")]
    for i in range(LAYERS):
        for name, branch in (("attention", attention), ("ffn", ffn)):
            gains = [w[f"{i}.{name}.{end}"] for end in ends]
            y = norm(x, gains[0], recipe) if recipe.inputs else x
            y = branch(y, w, i, recipe)
            if recipe.outputs:
                y = norm(y, gains[1], recipe)
            x = x + recipe.factor * y
    return (norm(x, w["final"], recipe) if recipe.final else x) @ w["head"].T


# --8<-- [end:decoder]
