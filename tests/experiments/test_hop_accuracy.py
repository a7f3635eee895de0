"""The experiment measures what its page says, and says it in both languages."""

from dataclasses import replace
from math import log

import pytest
import torch

from scripts.experiments import depth_limit, hop_accuracy
from scripts.experiments.hop_accuracy import ARMS, CONTROLS, FROZEN, RATES, SEEDS
from scripts.measure.records import Record, rows_problem
from tests.tiny import check_facts_and_words, draw, select, tiny_record, tiny_rows

TINY = hop_accuracy.SIZES["tiny"]


@pytest.fixture(scope="module")
def rows():
    return tiny_rows(hop_accuracy)


@pytest.fixture(scope="module")
def record(rows):
    return tiny_record("hop_accuracy", rows, SEEDS)


def stacks():
    return [("no_layers", 0)] + [
        (arm, n) for arm in (*ARMS, *CONTROLS[1:]) for n in TINY["depths"]
    ]


def test_rows(rows):
    assert rows_problem(list(rows[0]), rows) is None
    for arm, layers in stacks():
        for rate in RATES:
            for quantity, count in (("loss", 1), ("hop_loss", 2), ("hop_accuracy", 2)):
                found = select(
                    rows, arm=arm, layers=layers, rate=rate, quantity=quantity
                )
                assert [row["seed"] for row in found] == list(SEEDS)
                assert {len(row["values"]) for row in found} == {count}
    (asked,) = select(rows, quantity="asked")
    assert asked["values"][0] == pytest.approx(5 / 6)
    assert len(rows) == 1 + 17 * 3 * 3 * 3


def followed(entries, hops):
    """The values after each hop, one entry after the other; None outside."""
    names = [int(name) for name in entries[:, 0]]
    found = []
    for t in range(len(names)):
        at, values = t, []
        for _ in range(hops):
            if at is not None:
                before = names.index(int(entries[at, 1]))
                at = before if before != at else None
            values.append(None if at is None else int(entries[at, 2]))
        found.append(values)
    return found


def test_answers_are_where_the_pointers_lead():
    size = {**TINY, "context": 12, "reach": 3, "hops": 5}
    generator = torch.Generator().manual_seed(3)
    entries, answers = hop_accuracy.sequences(20, size, generator)
    assert entries.shape == (20, 12, 3) and answers.shape == (20, 12, 5)
    for one, wanted in zip(entries, answers, strict=True):
        assert sorted(one[:, 0].tolist()) == list(range(12))
        plain = [
            [None if v == hop_accuracy.IGNORED else v for v in each]
            for each in wanted.tolist()
        ]
        assert followed(one, 5) == plain
        names = one[:, 0].tolist()
        steps = [t - names.index(p) for t, p in enumerate(one[:, 1].tolist())]
        assert steps[0] == 0 and set(steps[1:]) <= {1, 2, 3}
    again = hop_accuracy.sequences(20, size, torch.Generator().manual_seed(3))
    assert torch.equal(again[0], entries)


def test_an_entry_alone_says_nothing_about_the_answer():
    """Own name, pointer and value are independent of every hop's value."""
    size = {**TINY, "context": 8, "kinds": 4, "hops": 3}
    entries, answers = hop_accuracy.sequences(
        4000, size, torch.Generator().manual_seed(0)
    )
    for hop in range(3):
        asked = answers[:, 7, hop] != hop_accuracy.IGNORED
        for part in range(3):
            own, wanted = entries[asked, 7, part], answers[asked, 7, hop]
            counts = torch.zeros(8, 4).index_put(
                (own, wanted), torch.ones(()), accumulate=True
            )
            counts = counts[counts.sum(1) > 0]
            expected = counts.sum(1, keepdim=True) * counts.sum(0) / counts.sum()
            chi = float(((counts - expected) ** 2 / expected).sum())
            assert chi < 60  # at most 21 degrees of freedom


@pytest.mark.parametrize(("arm", "layers"), stacks())
def test_what_trains_and_what_does_not(arm, layers):
    trained = dict(hop_accuracy.train(arm, layers, 1e-2, 0, TINY).named_parameters())
    drawn = dict(hop_accuracy.fresh(arm, layers, TINY, 0).named_parameters())
    moved = {n for n in drawn if not torch.equal(trained[n], drawn[n])}
    frozen = {
        n
        for n in drawn
        if n.startswith("blocks.") and int(n.split(".")[1]) < 2 * layers
    }
    assert moved == drawn.keys() - (frozen if arm in FROZEN.values() else set())


def test_arms_are_those_of_the_depth_limit():
    size = {**TINY, "heads": 2}
    for arm in ARMS:
        ours = hop_accuracy.fresh(arm, 2, size, 1)
        theirs = depth_limit.fresh(arm, 2, {"d": size["d"]}, 1)
        x = torch.randn(2, 5, size["d"])
        weights = theirs[1:-1].state_dict().values()
        load = dict(zip(ours.blocks.state_dict(), weights, strict=True))
        ours.blocks.load_state_dict(load)
        assert torch.allclose(ours.blocks(x), theirs[1:-1](x), atol=1e-6)
    twin = hop_accuracy.fresh("frozen_post", 2, size, 1).state_dict()
    own = hop_accuracy.fresh("post", 2, size, 1).state_dict()
    assert all(torch.equal(twin[name], own[name]) for name in own)


def test_a_model_without_layers_stays_at_chance(rows):
    for rate in RATES:
        for row in select(rows, arm="no_layers", rate=rate, quantity="loss"):
            assert row["values"][0] > log(TINY["kinds"]) - 0.4


def test_steps_repeat_exactly_and_seeds_come_one_after_the_other():
    steps = hop_accuracy.measure("tiny")
    assert len({repr(each.cell) for each in steps}) == len(steps) == 1 + 17 * 9
    seeds = [each.cell["seed"] for each in steps if "seed" in each.cell]
    assert seeds == sorted(seeds)
    assert steps[-1].run() == steps[-1].run()
    medium = hop_accuracy.SIZES["medium"]
    tokens = medium["batch"] * medium["context"] * medium["steps"]
    assert medium["d"] >= 64 and tokens >= 1_500_000


def test_facts_and_words(record):
    check_facts_and_words(hop_accuracy, record)


def made(record, loss, accuracy=lambda row: 0.5):
    """The record with losses and accuracies made up."""

    def values(row):
        if row["quantity"] == "asked":
            return row["values"]
        if row["quantity"] == "hop_accuracy":
            return [accuracy(row)] * len(row["values"])
        return [loss(row)] * len(row["values"])

    rows = [{**row, "values": values(row)} for row in record.rows]
    return Record(
        record.experiment, "m", "tiny", record.provenance, record.columns, rows
    )


def test_facts_say_what_the_rows_say(record):
    def loss(row):
        if row["rate"] == RATES[0]:
            return None
        base = {"no_layers": 1.3, "pre": 0.5, "post": 1.3, "deepnorm": 0.9}
        value = base.get(row["arm"], 1.2 if row["arm"] in CONTROLS else 0.5)
        return value + 0.01 * row["seed"] * (row["arm"] in ARMS) + row["rate"]

    facts = hop_accuracy.facts(made(record, loss))
    expected = {
        "pre_2": "0.51",
        "pre_2_rate": "0.004",
        "pre_2_less_frozen": "−0.69 ± 0.01",
        "pre_2_less_no_layers": "−0.79 ± 0.01",
        "pre_2_learns": "✓",
        "post_2_learns": "✗",
        "no_layers_hop_1": "50 %",
        "tokens": "48",
    }
    assert {name: facts[name] for name in expected} == expected
    lost = hop_accuracy.facts(made(record, lambda row: None))
    assert lost["pre_2"] == "∞" and lost["pre_2_learns"] == "✗"


def test_a_partial_record_leaves_out_what_is_not_there(record):
    rows = [r for r in record.rows if r["arm"] != "pre" or r["seed"] != 2]
    facts = hop_accuracy.facts(replace(record, rows=rows))
    assert "pre_2" not in facts and "post_2_learns" in facts


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_plot(record, lang):
    figure = draw(hop_accuracy, record, lang)
    assert len(figure.axes) == 2
    assert all(len(axis.lines) == 9 + 1 for axis in figure.axes)
