"""The small decoder against one written out, for each of its recipes, in float64."""

import math
from dataclasses import fields, replace

import pytest
import torch
from torch.nn import functional as F

from snippets.port_a_norm import decoder
from snippets.port_a_norm.decoder import HEADS, LAYERS, WORDS, Recipe, decode, weights

RECIPES = [
    Recipe(),
    Recipe(form="w"),
    Recipe(kind="LayerNorm", shift=True, eps=1e-3),
    Recipe(outputs=False, qk="none", final=False),
    Recipe(qk="projection", factor=0.5),
    Recipe(inputs=False),
    Recipe(qk="rotated", misloaded="in"),
    Recipe(misloaded="out"),
]


def normed(x, stored, r, size):
    gain = (1 if r.form == "1+w" else 0) + stored[0, :size]
    if r.kind == "LayerNorm":
        y = F.layer_norm(x, (size,), gain, eps=r.eps)
    else:
        y = F.rms_norm(x, (size,), gain, r.eps)
    return y + stored[1, :size] if r.shift else y


def turned(x):
    """Rotary positions by complex numbers; x is (time, width)."""
    time, width = x.shape
    speed = 10_000.0 ** (-torch.arange(0, width, 2).double() / width)
    angle = torch.arange(time).double()[:, None] * speed
    z = torch.complex(*x.chunk(2, -1)) * torch.polar(torch.ones_like(angle), angle)
    return torch.cat((z.real, z.imag), -1)


def expected(tokens, w, r):
    rows = []
    for row in tokens:
        x = w["embedding"][row]
        d = x.shape[-1]
        size = d // HEADS
        for i in range(LAYERS):
            for name in ("attention", "ffn"):
                first, last = (w[f"{i}.{name}.{end}"] for end in ("in", "out"))
                if r.misloaded == "in":
                    first = last
                elif r.misloaded == "out":
                    last = first
                h = normed(x, first, r, d) if r.inputs else x
                if name == "ffn":
                    y = F.gelu(h @ w[f"{i}.up"].T) @ w[f"{i}.down"].T
                else:
                    q, k, v = (h @ w[f"{i}.{n}"].T for n in ("q", "k", "v"))
                    if r.qk == "projection":
                        q = normed(q, w[f"{i}.q.norm"], r, d)
                        k = normed(k, w[f"{i}.k.norm"], r, d)
                    heads = []
                    for head in range(HEADS):
                        part = slice(head * size, (head + 1) * size)
                        a, b = q[:, part], k[:, part]
                        if r.qk == "head":
                            a = normed(a, w[f"{i}.q.norm"], r, size)
                            b = normed(b, w[f"{i}.k.norm"], r, size)
                        a, b = turned(a), turned(b)
                        if r.qk == "rotated":
                            a = normed(a, w[f"{i}.q.norm"], r, size)
                            b = normed(b, w[f"{i}.k.norm"], r, size)
                        scores = a @ b.T / math.sqrt(size)
                        hidden = torch.ones_like(scores).triu(1).bool()
                        scores = scores.masked_fill(hidden, -math.inf)
                        heads.append(scores.softmax(-1) @ v[:, part])
                    y = torch.cat(heads, -1) @ w[f"{i}.o"].T
                x = x + r.factor * (normed(y, last, r, d) if r.outputs else y)
        rows.append((normed(x, w["final"], r, d) if r.final else x) @ w["head"].T)
    return torch.stack(rows)


@pytest.fixture(scope="module")
def model():
    return weights()


@pytest.fixture(scope="module")
def tokens():
    return torch.randint(WORDS, (2, 7), generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_recipes(recipe, model, tokens):
    right = expected(tokens, model, recipe)
    assert torch.allclose(decode(tokens, model, recipe), right, rtol=1e-8, atol=1e-9)


OTHER = {
    "kind": "LayerNorm",
    "form": "w",
    "eps": 1e-5,
    "rounds": "before",
    "inputs": False,
    "outputs": False,
    "misloaded": "out",
    "qk": "none",
    "shift": True,
    "factor": 0.5,
    "final": False,
}


@pytest.mark.parametrize("field", [field.name for field in fields(Recipe)])
def test_each_choice_changes_the_result(field, model, tokens):
    low = {name: tensor.bfloat16() for name, tensor in model.items()}
    used = low if field == "rounds" else model
    changed = replace(Recipe(), **{field: OTHER[field]})
    assert not torch.equal(
        decode(tokens, used, Recipe()), decode(tokens, used, changed)
    )


def test_gains_and_biases_are_not_one_and_zero(model):
    gains = torch.stack([t for n, t in model.items() if n.endswith(("in", "out"))])
    assert gains.shape[1:] == (2, decoder.D) and gains.std(-1).min() > 0.1
