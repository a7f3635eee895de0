"""The CPU timing runs tiny, says what its rows say, and can be drawn."""

import re
from dataclasses import replace

import pytest

from scripts.measure import digest, figures, records, runner, spread
from scripts.measure.records import load_experiment

NAME = "norm_speed_cpu"


@pytest.fixture(scope="module")
def module():
    return load_experiment(NAME)


@pytest.fixture(scope="module")
def tiny():
    return runner.trial(NAME)


def test_every_provider_in_every_cell(tiny, module):
    cells = {}
    for row in tiny.rows:
        cell = (row["mode"], row["case"], row["dtype"], row["freed"])
        cells.setdefault(cell, []).append(row["provider"])
    assert len(cells) == len(module.measure("small")) == len(module.measure("full"))
    every = {
        *(module.HAND_LN, module.HAND_LN_2, module.HAND_RMS, module.CONTROL),
        *(module.NN_LN, module.NN_RMS, module.MEAN, module.VAR),
    }
    for (mode, *_), providers in cells.items():
        parts = {module.MEAN, module.VAR} if mode == module.BOTH else set()
        assert set(providers) == every - parts
        assert len(providers) == len(set(providers))


def test_rows_are_raw_and_complete(tiny):
    for row in tiny.rows:
        assert len(row["seconds"]) == 3
        assert all(0 < seconds < 10 for seconds in row["seconds"])
        assert row["threads"] == 1
        assert row["inner"] >= 1
    assert records.loads(records.dumps(tiny), "x").rows[0]["width"] == 64


def test_it_measures_the_cpu_everywhere(module, tiny):
    assert module.DEVICE == "cpu"
    assert tiny.kind == "cpu"
    assert "torch" in tiny.provenance["versions"]


def test_memory_is_returned_before_any_is_kept(module):
    freed = [step.cell["freed"] for step in module.measure("small")]
    assert freed == sorted(freed, key=lambda f: f != module.RETURNED)


def test_providers_compute_the_same_norms(module):
    torch = pytest.importorskip("torch", reason="the providers are torch's")
    for dtype in module.DTYPES:
        calls = module._providers(5, 64, dtype)
        bound = dict(rtol=0.02, atol=0.05) if dtype == "bfloat16" else {}
        for one, other in (
            (module.HAND_LN, module.NN_LN),
            (module.HAND_LN_2, module.NN_LN),
            (module.HAND_RMS, module.NN_RMS),
            (module.CONTROL, module.NN_RMS),
        ):
            torch.testing.assert_close(calls[one](), calls[other](), **bound)
        assert calls[module.MEAN]().shape == calls[module.VAR]().shape == (5, 1)


def test_backward_gives_the_gradients_of_input_and_parameters(module):
    torch = pytest.importorskip("torch", reason="the providers are torch's")
    calls = module._with_backward(module._providers(5, 64, "float32"))
    assert module.VAR not in calls
    assert [len(calls[n]()) for n in (module.HAND_LN, module.HAND_RMS)] == [3, 2]
    for one, other in (
        (module.HAND_LN, module.NN_LN),
        (module.HAND_RMS, module.NN_RMS),
    ):
        for got, want in zip(calls[one](), calls[other](), strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


MILLISECONDS = {
    "layer norm by hand": 9.0,
    "layer norm by hand, no var": 2.0,
    "rms norm by hand": 1.0,
    "rms norm by hand, again": 1.02,
    "nn.LayerNorm": 0.5,
    "nn.RMSNorm": 0.75,
    "x.mean": 0.05,
    "x.var": 7.2,
}


@pytest.fixture
def record(tiny):
    """The tiny record with times whose facts can be worked out by hand."""
    rows = [
        {
            **row,
            "seconds": [
                MILLISECONDS[row["provider"]] * k / 1000 for k in (0.9, 1, 1.1)
            ],
            "faults": 1234.0,
        }
        for row in tiny.rows
    ]
    return replace(tiny, rows=rows)


def test_facts_are_what_the_rows_say(module, record):
    facts = module.facts(record)
    for name, value in {
        "hand_ln_over_rms_tutorial_float32": "9",
        "hand_ln_over_rms_tutorial_float32_interval": "8.82–9.18",
        "hand_ln_no_var_over_rms_large_bfloat16": "2",
        "nn_rms_over_ln_batch_float32": "1.5",
        "hand_ln_over_nn_ln_token_float32": "18",
        "var_over_mean_tutorial_float32": "144",
        "var_share_tutorial_float32": "80%",
        "hand_ln_tutorial_float32": "9 ms",
        "nn_ln_large_float32": "500 µs",
        "hand_ln_over_rms_batch_float32_backward": "9",
        "hand_ln_over_rms_tutorial_float32_returned": "9",
        "hand_ln_faults_tutorial": "1234",
        "hand_ln_over_rms_least": "9",
        "noise": "2%",
        "threads": "1",
        "date": record.date,
    }.items():
        assert facts[name] == value, name
    assert "var_share_batch_float32_backward" not in facts


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (3.1e-9, "3.1 ns"),
        (0.000175, "175 µs"),
        (0.00999, "9.99 ms"),
        (0.9994e-3, "999 µs"),
        (0.9996e-3, "1 ms"),
        (2.5, "2.5 s"),
    ],
)
def test_durations(seconds, words):
    assert spread.duration(seconds) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.4234, "0.42"), (1.66, "1.7"), (9.96, "10"), (17.6, "18"), (123, "120")],
)
def test_factors_have_two_digits(module, value, words):
    assert module._factor(value) == words


def test_word_tables_have_equal_keys_and_known_facts(module, record):
    assert module.WORDS["zh"].keys() == module.WORDS["en"].keys()
    facts = module.facts(record)
    for lang in ("zh", "en"):
        filled = figures.fill(module.WORDS[lang], facts)
        for key in ("title", "caption", "alt", "band"):
            assert not re.search(r"[{}]", filled[key])
        assert filled["panel"].format(rows=1, width=2)


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_plot(module, record, lang, monkeypatch, tmp_path):
    monkeypatch.setattr(figures, "FONT_FILE", tmp_path / "none.ttf")
    words = {**figures.fill(module.WORDS[lang], module.facts(record)), "lang": lang}
    figure = module.plot(record, words)
    svg = figures.svg_text(figure, "x")
    for provider, _ in module.ORDER:
        assert svg.count(words[provider]) >= 2  # both panels
        middle = MILLISECONDS[provider] / 1000
        assert spread.duration(middle) in svg
    assert words[module.KEPT] in svg and words[module.RETURNED] in svg
    assert record.device in svg


def test_words_and_plot_do_not_age_a_record(tiny):
    assert not digest.is_stale(tiny)
