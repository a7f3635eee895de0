"""Two models with the weights in their files: what was done to one is said."""

import pytest

pytest.importorskip("transformers")

import torch
from torch import nn

from scripts.examine import compare, report, stored, text
from scripts.examine.load import BATCH, TOKENS, Loaded
from tests.examine.faulty import VOCABULARY, Block, D, Decoder, RMSNorm
from tests.examine.test_faults import one_thread  # noqa: F401


class Offset(RMSNorm):
    """Gain 1 + w."""

    start = 0.0

    def forward(self, x):
        h = x.float()
        return (h * self.root(h) * (1 + self.weight.float())).type_as(x)


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.gate, self.down = (nn.Linear(D, D, bias=False) for _ in range(3))

    def forward(self, x):
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class GatedBlock(Block):
    def __init__(self, norm, attention):
        super().__init__(norm, attention)
        self.feed_forward = Gated()


def original(norm=RMSNorm):
    torch.manual_seed(0)
    model = Decoder(norm, block=GatedBlock)
    for module in model.modules():
        if isinstance(module, RMSNorm):
            module.weight.data += 0.1 * torch.randn(module.weight.shape)
    return model


def each(change, norm=RMSNorm):
    """The original with a change in every layer."""

    def made():
        model = original(norm)
        torch.manual_seed(1)
        for layer in model.layers:
            change(layer)
        return model

    return made


def fold(into):
    def change(layer):
        for name in into:
            matrix = getattr(layer.feed_forward, name)
            matrix.weight.data *= layer.norm_2.weight.data
        layer.norm_2.weight.data.fill_(1)

    return change


def scale(of_gain):
    """The matrices behind the second norm take a factor; ``of_gain`` takes it back."""

    def change(layer):
        factor = torch.rand(D) + 0.5
        for name in ("up", "gate"):
            getattr(layer.feed_forward, name).weight.data *= factor
        of_gain(layer, factor)

    return change


def exchange(layer):
    first, second = layer.norm_1.weight, layer.norm_2.weight
    first.data, second.data = second.data, first.data


def add(step):
    def change(layer):
        layer.norm_1.weight.data += step

    return change


def into_w(layer, factor):
    layer.norm_2.weight.data /= factor


def into_gain(layer, factor):
    layer.norm_2.weight.data = (1 + layer.norm_2.weight.data) / factor - 1


def into_other(layer, factor):
    layer.norm_1.weight.data /= factor


def nowhere(layer, factor):
    pass


def another(layer):
    layer.feed_forward.down.weight.data *= 1.01


class Renamed(nn.Module):
    """The same computation, its parts called otherwise."""

    def __init__(self, model):
        super().__init__()
        self.tokens, self.blocks = model.embedding, model.layers
        self.last, self.out = model.norm, model.head

    def forward(self, tokens):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return self.out(self.last(x))


def renamed():
    return Renamed(original())


# What was done, the model, its original's norm, whether outputs agree, what is said.
DONE = {
    "nothing": (original, RMSNorm, True, None),
    "a right fold": (each(fold(("up", "gate"))), RMSNorm, True, "folded"),
    "a fold that left one out": (each(fold(("up",))), RMSNorm, False, "left-out"),
    "a right scale": (each(scale(into_gain), Offset), Offset, True, "folded"),
    "w scaled, not 1 + w": (
        each(scale(into_w), Offset),
        Offset,
        False,
        "offset-scaled",
    ),
    "the wrong norm scaled": (each(scale(into_other)), RMSNorm, False, "elsewhere"),
    "no norm scaled": (each(scale(nowhere)), RMSNorm, False, "unread-scale"),
    "one added twice": (each(add(1), Offset), Offset, False, "one-more"),
    "one forgotten": (each(add(-1), Offset), Offset, False, "one-less"),
    "the file of 1 + w in w": (lambda: original(Offset), RMSNorm, False, None),
    "gains exchanged": (each(exchange), RMSNorm, False, "exchanged"),
    "another gain": (each(add(0.01)), RMSNorm, False, "other-gain"),
    "another matrix": (each(another), RMSNorm, False, "values"),
    "other names": (renamed, RMSNorm, True, "mapped"),
}


def against(model, other) -> dict:
    made = {"a:b": model, "c:d": other}

    def load(name, _):
        random = torch.Generator().manual_seed(0)
        shape = (BATCH, TOKENS)
        tokens = torch.randint(3, VOCABULARY, shape, generator=random)
        return Loaded(name, made[name].eval(), {"tokens": tokens})

    request = {"target": "a:b", "against": "c:d", "transformers": None}
    return report.gathered(load, request)


@pytest.mark.parametrize("name", DONE)
def test_what_was_done_is_said(name):
    factory, norm, agree, key = DONE[name]
    if name.startswith("the file"):  # of one form, read as the other
        model = original(norm)
        model.load_state_dict(factory().state_dict())
        other, key = factory(), "one-less"
    else:
        model, other = factory(), original(norm)
    found = against(model, other)
    said = {entry[0] for entry in found["against"]["stored"]}
    assert ("own-agree" in said) == agree
    assert ("own-differ" in said) == (not agree)
    reasons = said - {"own-agree", "own-differ", "own-first", "own-behind"}
    assert reasons == ({key} if key else set())
    for language in ("en", "zh"):
        assert all("{" not in line for line in text.against_lines(found, language))


def test_a_model_that_does_not_take_the_input():
    tokens = torch.ones(2, 11).long()
    own = stored.as_stored(Loaded("a", original(), {"tokens": tokens}))
    other = nn.Sequential(nn.Linear(3, 3))
    assert compare._on_the_same(Loaded("b", other, {}), own) is None
