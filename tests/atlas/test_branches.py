"""A branch is told by what it does, and its names come second."""

import pytest

pytest.importorskip("transformers")

import torch
from torch import nn
from torch.nn import functional as F

from scripts.experiments.atlas import branches
from scripts.experiments.atlas.trace import follow

D = 8


class Softmax(nn.Module):
    def forward(self, x):
        logits = x @ x.mT
        mask = torch.ones_like(logits).triu(1).bool()
        return F.softmax(logits.masked_fill(mask, -1e9), -1) @ x


class State(nn.Module):
    def forward(self, x):
        return x.cumsum(1)


class Routed(nn.Module):
    """A softmax over four experts, and no other token read."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(D, 4)

    def forward(self, x):
        return x * F.softmax(self.router(x), -1).amax(-1, keepdim=True)


class Cross(nn.Module):
    def forward(self, x, memory):
        return F.softmax(x @ memory.mT, -1) @ memory


class Kept(nn.Module):
    """Attention to keys that are no argument of it, as where layers share them."""

    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.randn(2, 1, 6, D))

    def forward(self, x):
        return (F.softmax(x[:, None] @ self.keys.mT, -1) @ self.keys)[:, 0]


def called(kind: type, name: str):
    """The label of a branch of a class, the class and the attribute renamed."""

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            setattr(self, name, type(name, (kind,), {})())

        def forward(self, x):
            branch = getattr(self, name)
            return x + (branch(x, x[:, :4] * 2) if kind is Cross else branch(x))

    torch.manual_seed(0)
    trace = follow(Block(), {"x": torch.randn(2, 6, D)})
    block, branch, *_ = trace.calls
    return branches.label(branch, block)


@pytest.mark.parametrize(
    ("kind", "name", "label"),
    [
        (Softmax, "KimiLinearAttention", "Attention"),  # attention, called linear
        (Softmax, "mlp", "Attention"),
        (State, "self_attn", "LinearAttention"),
        (State, "mamba_mixer", "Mamba"),
        (State, "block", "Mixer"),
        (Routed, "attention", "FFN"),
        (Routed, "mlp", "FFN"),
        (Routed, "linear", "Linear"),
        (Cross, "mlp", "CrossAttention"),
        (Kept, "mlp", "Attention"),
    ],
)
def test_a_branch_is_what_it_does(kind, name, label):
    assert called(kind, name) == label


def test_what_cannot_run_again_goes_by_its_name():
    assert branches.by_name("self_attn", "softattention") == "attention"
    assert branches.by_name("encoder_attn", "attention") == "cross"
    assert branches.by_name("linear_attn", "gateddeltanet") == "state"
    assert branches.by_name("mlp", "mlp") == "point"
