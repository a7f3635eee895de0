"""What was predicted of the kernels, dated, and held against what was measured."""

from dataclasses import replace

import pytest

from scripts.experiments import norm_prediction as prediction
from scripts.measure import digest, figures, records
from scripts.measure.experiment_words import LANGUAGES
from scripts.measure.kernels import cards, report, rows
from scripts.measure.kernels.cells import moved
from scripts.measure.records import rows_problem
from tests.experiment_checks import draw, select, tiny_record

COMMAND = "python scripts/build.py measure norm_prediction"
H100 = cards.CARDS["h100"]
PAGES = [
    records.ROOT / f"docs/{lang}/pages/kernels/memory-bound.md" for lang in LANGUAGES
]
UNMEASURED = ("No GPU has measured it yet", "还没有任何 GPU 测过")


@pytest.fixture(scope="module")
def made() -> list[dict]:
    return [row for step in prediction.measure("small") for row in step.run()]


@pytest.fixture
def record(made):
    return tiny_record("norm_prediction", made, (), date="2026-11-28T06:30:00Z")


def on_gpus() -> list[records.Record]:
    return [r for card in cards.CARDS.values() for r in cards.of(card)]


# The record -------------------------------------------------------------------


def test_the_record_comes_out_again(made):
    """Of the compiled facts that it names; a GPU's record makes it final."""
    (found, *_) = records.find("norm_prediction")
    if on_gpus():
        dates = [each.provenance["date"] for each in on_gpus()]
        assert found.provenance["date"] <= min(dates), "predicted after it was measured"
        for page in PAGES:
            assert not any(said in page.read_text("utf-8") for said in UNMEASURED)
        return
    facts = [[row["compiled"] for row in each] for each in (found.rows, made)]
    assert facts[0] == facts[1], f"the kernels have changed: {COMMAND}"
    assert found.rows == [records._rounded(row) for row in made]
    assert not digest.is_stale(found)


def test_rows(made):
    assert rows_problem(list(made[0]), made) is None
    assert {row["card"] for row in made} == set(cards.CARDS)
    for row in made:
        assert 0 < row["worst"] <= row["share"] <= row["best"] <= 1
        assert row["seconds"] == pytest.approx(row["floor_seconds"] / row["share"])


# The model --------------------------------------------------------------------

FORWARD = {
    "kernel": "rms_norm_forward", "constants": "ROWS=1 COLUMNS=4096", "grid": 16_384,
    "warps": 4, "stack": 0, "shared": 16, "async_copies": 0, "programs": 8,
}  # fmt: skip
WALK = FORWARD | {
    "kernel": "rms_norm_backward", "constants": "ROWS=1 COLUMNS=16384 STAGES=3",
    "grid": 132, "warps": 16, "shared": 131_144, "async_copies": 26, "programs": 1,
}  # fmt: skip


def overhead(kernel: dict, operation: str, width: int, *others: dict) -> float:
    """Middle seconds above the floor, without the start and the streaming rate."""
    cell, rate = prediction.cell(operation, width), 3e12
    time = prediction.seconds(cell, [kernel, *others], H100, rate, 1)
    time -= prediction.START[1] * (1 + len(others))
    return time * prediction.STREAMED[1] - moved(cell) / rate


def test_tiles_on_their_way():
    assert prediction.flight(FORWARD, 1, 132) == (8, 8192)
    assert prediction.flight(WALK, 2, 132) == (2, 65_536)
    one = WALK | {"shared": 98_372}  # room for one and a half
    assert prediction.flight(one, 2, 132) == (1, 65_536)
    assert prediction.flight(one | {"buffers": 3}, 2, 132)[0] == 3  # as counted
    assert prediction.flight(FORWARD | {"grid": 132}, 1, 132)[0] == 1


def test_other_tiles_hide_the_latency_and_one_alone_does_not():
    assert overhead(FORWARD, "rms_norm", 4096) == pytest.approx(0, abs=1e-9)
    alone = FORWARD | {"programs": 1}
    tile = 2 * 8192 / (3e12 / 132)
    wanted = prediction.LATENCY[1] / tile * moved(prediction.cell("rms_norm", 4096))
    assert overhead(alone, "rms_norm", 4096) == pytest.approx(wanted / 3e12)


def test_spills_uneven_rounds_and_second_readings_cost():
    two = overhead(WALK, "rms_norm_backward", 16_384)
    tail = 63 / (8192 / 132) - 1  # rounds of 132 rows
    partial = 8 * 132 * 16_384
    cell = prediction.cell("rms_norm_backward", 16_384)
    wanted = (moved(cell) + partial) * (1 + tail) - moved(cell)
    assert two == pytest.approx(wanted / 3e12)
    spilled = overhead(WALK | {"stack": 264}, "rms_norm_backward", 16_384)
    assert spilled > 1.3 * two + moved(cell) / 3e12 / 2
    wide = FORWARD | {"kernel": "rms_norm_forward_wide"}
    again = overhead(wide, "rms_norm", 4096) * 3e12
    assert again == pytest.approx(16_384 * 4096 * 2 * prediction.FROM_MEMORY[1])
    gain = FORWARD | {"kernel": "gain_gradient"}
    both = overhead(FORWARD, "rms_norm_backward", 4096, gain)
    once = overhead(FORWARD, "rms_norm_backward", 4096)
    assert (both - once) * 3e12 == pytest.approx(2 * 16_384 * 4096 * 2)


def test_versions_of_a_kernel_are_held_against_the_same_floor(record):
    found = prediction.facts(record)
    assert found["one_row_65536_per_element"] == "4.0"
    assert found["in_pieces_65536_per_element"] == "4.0–6.0"  # read again, or not
    assert found["rms_norm_backward_16384_per_element"] == "6.1"  # partial sums
    for name in prediction.VERSIONS:
        (row,) = select(record.rows, operation=name, width=65_536, card="h100")
        (used,) = select(record.rows, operation="rms_norm", width=65_536, card="h100")
        assert row["floor_seconds"] == used["floor_seconds"]


# Beside a measurement ---------------------------------------------------------


def gpu_record(copy: float, share: float) -> records.Record:
    """As if an H100 had copied at a rate, and every kernel of ours at a share of it."""
    from scripts.measure.kernels.steps import copy as large_copy

    found = []
    (large,) = large_copy("full")
    for operation in ("rms_norm", "layer_norm"):
        cell = prediction.cell(operation, 4096)
        seconds = moved(cell) / (share * copy)
        found.append(rows.row(cell, "ours", device_seconds=[seconds], method="graph"))
    cell = type(cell)(**large.cell)
    row = rows.row(cell, "torch", method="graph")
    found.append(row | {"device_seconds": [row["bytes"] / copy]})
    made = tiny_record("norm_bandwidth", found, ())
    told = made.provenance | {
        "device": {"name": H100.driver, "kind": "gpu"}, "os": "Linux", "python": "3.12",
        "commit": "abc1234", "method": "made", "digest": "0" * 16,
    }  # fmt: skip
    return replace(made, machine="nvidia-h100", size="full", provenance=told)


def test_a_card_s_own_copy_and_shares_stand_beside_the_prediction(
    record, tmp_path, monkeypatch
):
    monkeypatch.setattr(records, "RECORDS", tmp_path)
    assert cards.copy_rate(H100) == cards.COPY * H100.bandwidth
    before = prediction.facts(record)
    assert before["h100_rms_norm_4096_measured"] == report.NOTHING
    ridges = {(before[f"{c}_ridge"], before[f"{c}_copies"]) for c in cards.CARDS}
    assert ridges == {("20", "0"), ("14", "0")}  # by the datasheets
    records.save(gpu_record(2.5e12, 0.94), tmp_path)
    assert cards.copy_rate(H100) == pytest.approx(2.5e12, rel=1e-4)  # five digits
    after = prediction.facts(record)
    assert after["h100_copy"] == "2.50 TB/s" and after["h100_ridge"] == "27"
    assert (after["h100_copies"], after["h200_copies"]) == ("1", "0")
    assert after["h100_rms_norm_4096_measured"] == "94"
    assert after["h100_measured"] == "2" and after["h200_measured"] == "0"
    assert after["h100_rms_norm_4096_floor"] != before["h100_rms_norm_4096_floor"]
    for name in ("share", "predicted"):
        name = f"h100_rms_norm_4096_{name}"
        assert after[name] == before[name]
    (row,) = select(record.rows, card="h100", operation="rms_norm", width=4096)
    inside = row["worst"] <= 0.94 <= row["best"]
    assert after["h100_within"] == ("2" if inside else "0")
    figure = draw(prediction, record, "en")
    crosses = [line for line in figure.axes[0].lines if line.get_marker() == "x"]
    heights = [float(line.get_ydata()[0]) for line in crosses]
    assert [round(each) for each in heights if each == each] == [94, 94]


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_plot(record, lang):
    figure = draw(prediction, record, lang)
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert len(figure.axes) == 2 and len(labels) == 3  # forward both norms are one line
    footer = " ".join(text.get_text() for text in figure.texts)
    dated = figures.FOOTER[lang]["date"].format(record.date)
    assert record.date in footer and dated not in footer  # nothing was measured
    apart = [
        row | {"share": row["share"] - (row["operation"] == "layer_norm") / 50}
        for row in record.rows
    ]
    figure = draw(prediction, replace(record, rows=apart), lang)
    assert len(figure.axes[0].containers) == 4
