"""What a run with a GPU does first: the headlines, all of them in four minutes."""

import pytest

from scripts.measure.kernels import rows, steps
from scripts.measure.records import load_experiment
from scripts.measure.runner import simulate
from tests.measure.kernels.given import cell

KERNELS = ("norm_bandwidth", "norm_backward", "qk_norm_bandwidth", "launch_bound")
ALL = (*KERNELS, "norm_share_of_step")
WIDTHS = (1024, 2048, 4096, 8192, 16384)
BOTH_NORMS = [
    f"{norm}_norm{way}" for norm in ("rms", "layer") for way in ("", "_backward")
]
HEADLINES = {  # (operation, width), of thousands of rows
    *((name, width) for name in BOTH_NORMS for width in WIDTHS),
    *(("add_rms_norm", width) for width in (4096, 16384)),
    *((name, 128) for name in ("rms_norm", "rms_norm_backward", "qk_norm_rope")),
    ("rms_norm_forward_backward", 4096),
}
FEW = {1, 512}  # rows of RMSNorm that are headlines too
SECONDS = 240


def ran(seconds: float, names=ALL) -> list[dict]:
    """The cells, each with its experiment, of a run of so many seconds."""
    found = simulate(names, deadline=seconds - steps.START)
    assert found[-1][0] + steps.START <= seconds
    return [{"name": name, **cell} for _, name, cell in found]


def test_all_headlines_lie_in_the_first_four_minutes():
    """By the seconds that a step is assumed to take."""
    done = [cell for cell in ran(SECONDS) if "step" not in cell]
    many = [c for c in done if c.get("rows", 0) > 2048]
    assert {(c["operation"], c["width"]) for c in many} >= HEADLINES
    few = [c for c in done if c["name"] == "launch_bound"]
    assert {c["operation"] for c in few} >= {"empty", "rms_norm"}
    assert {c["rows"] for c in few if c["operation"] == "rms_norm"} >= FEW


@pytest.mark.parametrize("seconds", [330, 500])
def test_after_the_headlines_come_whole_models(seconds):
    """In eager mode, of every implementation; the compiled ones come last."""
    done = ran(seconds)
    found = [n for n, cell in enumerate(done) if cell["name"] == ALL[-1]]
    assert {done[n]["mode"] for n in found[:6]} == {"eager"}
    assert found[:6] == list(range(found[0], found[0] + 6))
    assert done[: found[0]] == ran(SECONDS)[: found[0]]


@pytest.mark.parametrize("seconds", [120, 330, 500])
def test_at_any_end_there_is_what_is_worth_most(seconds):
    """4096 features and QK-Norm before the other widths."""
    done = ran(seconds, KERNELS)
    assert {c["name"] for c in done} == set(KERNELS)
    backward = [c for c in done if c["name"] == "norm_backward"]
    widths = [c["width"] for c in backward if c["operation"] != "copy"]
    known = list(steps.WIDTHS)
    assert list(dict.fromkeys(widths))[:5] == known[: len(set(widths))]


def test_no_cell_twice_and_every_headline_has_every_provider(monkeypatch):
    asked = []
    monkeypatch.setattr(
        rows, "measured", lambda cell, names, *_: asked.append(names) or []
    )
    for name in KERNELS:
        made = load_experiment(name).measure("full")
        shown = [repr(step.cell) for step in made]
        assert len(set(shown)) == len(shown)
        for step in made:
            if step.turn in steps.HEADLINE and "norm" in step.cell["operation"]:
                step.run()
                stream = [] if "forward_back" in step.cell["operation"] else ["stream"]
                assert asked.pop() == [*steps.PROVIDERS, *stream]


def test_a_lost_device_ends_the_process_after_its_cell(monkeypatch):
    (step,) = steps.of([cell("rms_norm")], "tiny", 0, ["ours"])
    assert step.run()
    monkeypatch.setattr(steps.timing, "alive", lambda: False)
    with pytest.raises(SystemExit) as ended:
        step.run()
    assert ended.value.code == steps.LOST
