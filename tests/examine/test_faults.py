"""Planted bugs are found, and a clean model raises no alarm."""

import pytest

pytest.importorskip("transformers")

import torch

from scripts.examine import faults
from scripts.examine.load import BATCH, TOKENS, Loaded
from scripts.examine.probe import probe
from tests.examine import planted


def judged(factory, causal: bool = False) -> dict:
    torch.manual_seed(0)
    shape = (BATCH, TOKENS)
    random = torch.Generator().manual_seed(0)
    tokens = torch.randint(3, planted.VOCABULARY, shape, generator=random)
    found = probe(Loaded("a model", factory().eval(), {"tokens": tokens}))
    return faults.judged(found, causal)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("name", planted.FOUND)
def test_planted_bugs_are_found(name):
    factory, rule = planted.FOUND[name]
    found = [entry[0] for entry in judged(factory)["faults"]]
    assert rule in found, found


def test_a_clean_model_raises_no_alarm():
    found = judged(planted.clean, causal=True)
    assert found == {"faults": [], "remarks": [], "reads": "past"}


@pytest.mark.parametrize("name", planted.NOT_FOUND)
def test_what_is_listed_as_not_detectable_is_not(name):
    factory, _ = planted.NOT_FOUND[name]
    assert judged(factory)["faults"] == []


def test_a_missing_mask_is_a_fault_where_the_reader_says_so():
    factory, _ = planted.NOT_FOUND["no causal mask in any layer"]
    found = judged(factory, causal=True)
    assert {entry[0] for entry in found["faults"]} == {"later-causal"}
