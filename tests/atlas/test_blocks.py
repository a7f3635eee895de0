"""What stands between two branches is shown, or the row says that it is not."""

import pytest

pytest.importorskip("transformers")

import torch
from torch import nn
from torch.nn import functional as F

from scripts.experiments.atlas import blocks, examine
from scripts.experiments.atlas.trace import follow

D = 16


class Attention(nn.Module):
    """With a norm before its last matrix, where ``inner`` says so."""

    def __init__(self, inner=False):
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.sub_norm = nn.RMSNorm(D) if inner else nn.Identity()

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return self.out(self.sub_norm(F.softmax(q @ k.mT / D**0.5, -1) @ v))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(D, 2 * D), nn.Linear(2 * D, D)

    def forward(self, x):
        return self.down(F.silu(self.up(x)))


class Box(nn.Module):
    """Attention, norm and feed-forward without a residual between them."""

    def __init__(self, between=lambda x: x, inner=False):
        super().__init__()
        self.attention, self.mlp = Attention(inner), FeedForward()
        self.norm = nn.RMSNorm(D) if between else nn.Identity()
        self.between = between or (lambda x: x)

    def forward(self, x):
        return self.mlp(self.norm(self.between(self.attention(x))))


class Block(nn.Module):
    def __init__(self, **box):
        super().__init__()
        self.first, self.box, self.linear = nn.RMSNorm(D), Box(**box), nn.Linear(D, D)

    def forward(self, x):
        return x + self.linear(self.box(self.first(x)))


class Model(nn.Module):
    def __init__(self, **box):
        super().__init__()
        self.layers = nn.ModuleList([Block(**box)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def row(**box) -> dict:
    torch.manual_seed(0)
    model = Model(**box)
    trace = follow(model, {"x": torch.randn(2, 6, D)})
    ((_, (call,)),) = blocks.blocks(trace, model)
    return examine.analyse(call, trace, examine.behaviours(trace), "model.py")


def test_a_norm_between_two_branches_of_a_module_is_shown():
    found = row()
    assert found["equations"] == [
        "y = x + Linear(FFN(N[norm](Attention(N[first](x)))))"
    ]
    assert [n[:2] for n in found["norms"]] == [
        ["attention-in", "first"],
        ["ffn-in", "norm"],
    ]
    assert (found["placement"], found["status"]) == ("pre", "resolved")


def test_one_that_is_not_shown_makes_the_row_partial():
    """What it reads is no tensor that was seen, nor a sum of these."""
    found = row(between=torch.tanh)
    assert "N[norm]" not in found["equations"][0]
    reason = "norms without a place in the equations: box.norm"
    assert (found["status"], found["reason"]) == ("partial", reason)


@pytest.mark.parametrize("inner", [False, True])
def test_a_norm_within_one_branch_does_not(inner):
    found = row(between=None, inner=inner)
    assert len(found["norms"]) == 1 + inner
    assert found["status"] == "resolved"


def test_a_module_that_is_not_opened_makes_the_row_partial(monkeypatch):
    monkeypatch.setattr(blocks.Block, "_chained", lambda *_: False)
    assert row()["status"] == "partial"


class Apart(nn.Module):
    """Layers whose parts stand in lists, one after the other or all in turn."""

    def __init__(self, turns: bool):
        super().__init__()
        self.attentions = nn.ModuleList(Attention() for _ in range(3))
        self.mlps = nn.ModuleList(FeedForward() for _ in range(3))
        self.norms = nn.ModuleList(nn.RMSNorm(D) for _ in range(3))
        self.turns = turns

    def forward(self, x):
        if self.turns:
            for attention, mlp, norm in zip(
                self.attentions, self.mlps, self.norms, strict=True
            ):
                x = x + attention(x)
                x = norm(x + mlp(x))
            return x
        for part in (*self.attentions, *self.mlps):
            x = x + part(x)
        return x


@pytest.mark.parametrize("turns", [True, False])
def test_parts_in_lists_are_layers_where_they_run_in_turns(turns):
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.body = nn.Linear(D, D), Apart(turns)

        def forward(self, x):
            return self.body(self.embed(x))

    torch.manual_seed(0)
    model = Outer()
    trace = follow(model, {"x": torch.randn(2, 6, D)})
    found = dict(blocks.blocks(trace, model))
    assert [blocks.loose(*item) for item in found.items()] == (
        [True] if turns else [False, False]
    )
    known = examine.behaviours(trace)
    for i, call in enumerate(found["body.attentions"] if turns else ()):
        row = examine._without_index(examine.analyse(call, trace, known, "model.py"), i)
        assert row["equations"] == ["a = x + Attention(x)", "y = N[norms](a + FFN(a))"]
        assert [n[:2] for n in row["norms"]] == [["ffn-out", "norms"]]
