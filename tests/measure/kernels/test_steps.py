"""Steps: streams stand around the cells, providers where they are wanted."""

from scripts.measure.kernels import ceilings, rows, steps
from tests.measure.kernels.given import cell


def test_a_stream_has_rows_of_its_own_size():
    beside = cell("rms_norm_backward")
    (found,) = steps.streams(100_000, ["2R1W"], 2, "own size", beside)
    assert found["bytes"] == ceilings.bytes_of("2R1W", 100_000)
    assert found["beside"] == "rms_norm_backward" and found["width"] == beside.width


def test_large_streams_stand_around_every_ten_cells_of_a_process(monkeypatch):
    cells_ = [cell("rms_norm_backward", rows=n) for n in range(1, 13)]
    monkeypatch.setattr(rows, "measured", lambda *_: [rows.row(cells_[0], "ours")])
    large = [("large", mix) for mix in ("1R1W", "1R1W_copy", "2R1W")]

    def ran(first):
        """What each step of a process that begins with this one gives."""
        made = steps.of(cells_, ["ours"], "tiny")[first:]
        return [[(r["why"], r["provider"]) for r in step.run()] for step in made]

    whole, later = ran(0), ran(5)
    own = [(None, "ours"), ("own size", "2R1W")]
    assert whole[1] == whole[9] == later[1] == own
    assert whole[10] == later[0] == later[5] == large + own
    swept = [("sweep", way) for way in ("1R1W", "1R1W_copy")] * 2
    assert whole[0] == large + swept + own
    assert whole[11] == later[-1] == own + large + swept


def test_providers_are_timed_where_they_are_wanted(monkeypatch):
    asked = []
    monkeypatch.setattr(
        rows, "measured", lambda cell, names, *_: asked.append(names) or []
    )
    monkeypatch.setattr(steps, "streams", lambda *_: [])
    made = [cell("rms_norm"), cell("layer_norm")]
    only = {"compile": {made[1]}, "quack": set()}
    for step in steps.of(made, ["ours", "compile", "quack"], "tiny", only=only):
        step.run()
    assert asked == [["ours"], ["ours", "compile"]]
