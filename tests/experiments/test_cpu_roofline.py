"""The CPU roofline runs tiny, predicts before it measures, says what its rows say."""

import re
import shutil
from dataclasses import replace

import pytest

from scripts.measure import digest, figures, runner
from scripts.measure.records import load_experiment

NAME = "cpu_roofline"
pytestmark = [
    pytest.mark.skipif(
        not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler"
    ),
    # torch.compile's own import
    pytest.mark.filterwarnings("ignore:.*script_method:DeprecationWarning"),
]


@pytest.fixture(scope="module")
def module():
    return load_experiment(NAME)


@pytest.fixture(scope="module")
def tiny():
    return runner.trial(NAME)


def test_every_provider_in_every_cell(tiny, module):
    cells = module._cells(tiny)
    assert len(cells) == len(module.measure("tiny")) == 8
    every = {(norm, p) for norm in (module.RMS, module.LN) for p in module.PROVIDERS}
    every |= {(None, module.STREAM), (None, module.STREAM_PAST)}
    for (_, direction, _), cell in cells.items():
        assert set(cell) == every
        for (norm, provider), row in cell.items():
            assert len(row["seconds"]) == 3 and min(row["seconds"]) > 0
            unknown = direction == module.BACKWARD and (
                provider == module.HAND
                or (norm, provider) == (module.RMS, module.TORCH)
            )
            assert (row["predicted"] is None) == (norm is None or unknown)
    assert not digest.is_stale(tiny)


def test_providers_agree(module):
    import torch

    x, gain, bias = module._tensors(5, 64)
    norms = module._norms(past=False, backend="eager")
    for direction in (module.FORWARD, module.BACKWARD):
        calls = module._calls(norms, direction, x, gain, bias)
        for norm in (module.RMS, module.LN):
            want = calls[norm, module.TORCH]()
            for provider in module.PROVIDERS:
                found = calls[norm, provider]()
                torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-4)


def test_the_prediction_is_start_and_bytes(module):
    assert module._predicted(7, 2, 4e-3, 1e-3) == pytest.approx(15e-3)
    assert module._predicted(None, 2, 4e-3, 1e-3) is None


MILLISECONDS = {"stream": 12, "stream past the caches": 9, "kernel": 10}
MILLISECONDS |= {"kernel, again": 10, "compiled": 15, "torch": 40, "by hand": 44}


@pytest.fixture(scope="module")
def record(tiny):
    """The tiny record with times whose facts can be worked out by hand."""
    rows = []
    for row in tiny.rows:
        middle = MILLISECONDS[row["provider"]] * (
            1.1 if row["norm"] == "LayerNorm" else 1
        )
        seconds = [middle * k / 1000 for k in (0.99, 1, 1.01)]
        predicted = None if row["predicted"] is None else 0.02
        rows.append({**row, "seconds": seconds, "predicted": predicted, "start": 2e-5})
    return replace(tiny, rows=rows)


def test_facts_are_what_the_rows_say(module, record):
    facts = module.facts(record)
    for name, value in {
        "share_rms_forward_all": "90%",
        "torch_over_kernel_rms_backward_one": "4.00",
        "compiled_over_kernel_ln_forward_all": "1.50",
        "ln_over_rms_forward_all": "1.10",
        "time_kernel_rms_forward_all": "10 ms",
        "start_kernel_rms_forward_all": "20 µs",
        "predicted_kernel_rms_forward_all": "20 ms",
        "off_kernel_rms_forward_all": "0.50",
        "ahead_rms_forward_all": "512 B",
        "far_backward_all": "3 KiB",
    }.items():
        assert facts[name] == value, name
    assert "predicted_hand_rms_backward_all" not in facts


def test_the_kernel_is_not_ahead_where_another_is_faster(module, record):
    rows = [
        {**row, "seconds": [1e-3] * 3}
        if row["provider"] == "compiled" and row["rows"] == 4
        else row
        for row in record.rows
    ]
    facts = module.facts(replace(record, rows=rows))
    assert facts["ahead_rms_forward_all"] == "—"


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_plot(module, record, lang, monkeypatch, tmp_path):
    monkeypatch.setattr(figures, "FONT_FILE", tmp_path / "none.ttf")
    words = {**figures.fill(module.WORDS[lang], module.facts(record)), "lang": lang}
    svg = figures.svg_text(module.plot(record, words), "x")
    for key in ("stream", *module.DRAWN):
        assert words[key] in svg
    for key in ("title", "caption", "alt", "band"):
        assert not re.search(r"[{}]", words[key])
