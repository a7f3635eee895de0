"""Planted bugs are found, and a clean model raises no alarm."""

from functools import cache
from itertools import product

import pytest

pytest.importorskip("transformers")

import torch

from scripts.examine import faults, text
from scripts.examine.load import BATCH, TOKENS, Loaded
from scripts.examine.probe import probe
from tests.examine import faulty
from tests.lanes import first_quick, quick_among


@cache
def judged(factory, causal: bool = False) -> dict:
    return faults.judged(seen(factory), causal)


def seen(factory):
    torch.manual_seed(0)
    shape = (BATCH, TOKENS)
    random = torch.Generator().manual_seed(0)
    tokens = torch.randint(3, faulty.VOCABULARY, shape, generator=random)
    return probe(Loaded("a model", factory().eval(), {"tokens": tokens}))


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", faulty.FOUND)
def test_planted_bugs_are_found(name):
    factory, rule = faulty.FOUND[name]
    found = [entry[0] for entry in judged(factory)["faults"]]
    assert rule in found, found


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("a statistic is detached in forward", {"detached": 6}),
        (
            "a norm in forward under no_grad",
            {"detached": 3, "gradient-input-none": 3},
        ),
    ],
)
def test_norms_in_forward_are_found_one_by_one(name, rules):
    factory, _ = faulty.FOUND[name]
    found = judged(factory)["faults"]
    assert {rule: len(places) for rule, places, _ in found} == rules


def test_a_clean_model_raises_no_alarm():
    found = judged(faulty.clean, causal=True)
    assert found == {"faults": [], "remarks": [], "reads": "past"}


@pytest.mark.parametrize("name", faulty.NOT_FOUND)
def test_what_is_listed_as_not_detectable_is_not(name):
    factory, _ = faulty.NOT_FOUND[name]
    assert judged(factory)["faults"] == []


def test_a_missing_mask_is_a_fault_where_the_reader_says_so():
    factory, _ = faulty.NOT_FOUND["no causal mask in any layer"]
    found = judged(factory, causal=True)
    assert {entry[0] for entry in found["faults"]} == {"later-causal"}


class OneSide(faulty.Block):
    """The residual of the attention is taken behind the norm."""

    def forward(self, x):
        h = self.norm_1(x)
        x = h + self.attention(h)
        return x + self.feed_forward(self.norm_2(x))


class BothSides(OneSide):
    def forward(self, x):
        h = self.norm_1(x)
        x = h + self.attention(h)
        h = self.norm_2(x)
        return h + self.feed_forward(h)


def idle(block):
    class Idle(block):
        def __init__(self, norm, attention):
            super().__init__(norm, attention)
            self.unused = norm(faulty.D)

    return Idle


class Bare(faulty.Decoder):
    """No final norm."""

    def forward(self, tokens):
        return self.head(self.stream(tokens))


@pytest.mark.parametrize(
    ("block", "placement"),
    [
        (faulty.Block, "Placement: pre."),
        (OneSide, "Attention residual after the norm, FFN pre."),
        (BothSides, "Placement: residual after the norm."),
    ],
)
def test_a_norm_that_never_runs_does_not_hide_the_placement(block, placement):
    (row,) = seen(faulty.block(idle(block))).rows
    english = text.row_lines(row, "en")
    assert english[0].endswith(placement)
    assert english[1] == "resolved in part: norms that never ran: unused."
    assert sum("unused" in line for line in english) == 1
    chinese = text.row_lines(row, "zh")
    assert chinese[0].startswith("位置：") and "unused" not in chinese[0]


class Shared(faulty.Decoder):
    """The blocks' second norms are one module, which is the final norm as well."""

    def __init__(self):
        super().__init__()
        for layer in self.layers:
            layer.norm_2 = self.norm


def test_a_norm_of_several_names_is_called_under_one():
    assert judged(Shared)["faults"] == []
    assert "idle" in {
        rule for rule, *_ in judged(faulty.block(idle(faulty.Block)))["faults"]
    }


def test_two_reasons_are_both_in_words():
    (row,) = seen(faulty.block(idle(faulty.Block))).rows
    row["reason"] += "; roots that no probe tells: sqrt in attention (a.py:1)"
    said = text.row_lines(row, "zh")[1]
    assert said.startswith("只解出一部分：有归一化层没有跑到：unused；有按行开方")
    assert "roots" not in said


@pytest.mark.parametrize("block", first_quick(faulty.Block, OneSide, BothSides))
def test_no_final_norm_whatever_the_placement(block):
    found = judged(lambda: Bare(block=block))
    assert ["no-final", ["layers"], []] in found["faults"]
    assert "no-final" not in [r for r, *_ in judged(faulty.block(block))["faults"]]


def test_a_residual_behind_the_norm():
    rules = {entry[0]: entry for entry in judged(faulty.block(OneSide))["faults"]}
    assert rules["branches-differ"][1] == [f"layers.{i}" for i in range(3)]
    found = judged(faulty.block(BothSides))
    assert found["faults"] == []
    assert [entry[0] for entry in found["remarks"]] == ["residual-normed"]


def test_post_norm_needs_no_final_norm():
    found = judged(lambda: Bare(block=faulty.PostNorm))
    assert {entry[0] for entry in found["faults"]} == {"idle"}  # Bare's own norm


def test_a_finding_is_said_once_and_of_the_first_layer_too():
    found = judged(faulty.block(faulty.NormOnStream))
    places = [f"layers.{i}" for i in range(faulty.LAYERS)]
    assert ["stream-normed", places, []] in found["faults"]
    assert found["remarks"] == []


@pytest.mark.parametrize(
    ("kind", "eps"),
    quick_among(
        product([torch.nn.RMSNorm, torch.nn.LayerNorm], [1e-2, 3e-2, 1e-1]),
        [(torch.nn.RMSNorm, 1e-2), (torch.nn.LayerNorm, 1e-1)],
    ),
)
def test_a_large_epsilon_of_small_heads(kind, eps):
    found = seen(lambda: faulty.Decoder(lambda d: kind(d, eps=eps)))
    (row,) = found.rows
    said = {norm[1]: (norm[6], norm[7].partition(" ")[0]) for norm in row["norms"]}
    assert set(said.values()) == {(eps, "gain")}
    judgement = faults.judged(found, False)
    assert judgement["faults"] == []
    assert [entry[0] for entry in judgement["remarks"]] == ["eps-large"]


def test_batchnorm_is_said_to_be_unread_and_all_of_them_are_named():
    found = seen(lambda: faulty.Decoder(faulty.Running))
    line = text.row_lines(found.rows[0], "en")[0]
    assert line.startswith("Placement: not read where BatchNorm stands (`norm_1`")
    places = [e[1] for e in faults.judged(found, False)["faults"] if e[0] == "train"]
    norms = ("norm_1", "attention.q_norm", "attention.k_norm", "norm_2")
    held = {f"layers.{i}.{name}" for i in range(faulty.LAYERS) for name in norms}
    assert {p for some in places for p in some} == held | {"norm"}
