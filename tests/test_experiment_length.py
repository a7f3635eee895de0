"""An experiment is one file that is read from top to bottom: at most 400 lines.

Its words are in docs/data/experiments, what several share in scripts/measure. Code
that a record measured cannot move without ageing it, so these files keep their
length until they are measured again, and get no longer.
"""

from pathlib import Path

import pytest

from scripts.measure.records import EXPERIMENTS, experiments

MOST = 400
LONGER = {
    "batch_norm_in_transformer": 847,
    "centring_ablation": 488,
    "depth_limit": 534,
    "norm_free": 527,
    "normformer_speed": 568,
    "qk_norm_stability": 475,
    "recipe_growth": 450,
    "residual_growth": 596,
    "token_similarity": 513,
    "warmup_causes": 592,
    "warmup_sensitivity": 479,
}


def violations(path: Path) -> list[str]:
    found, text = [], path.read_text(encoding="utf-8")
    lines, most = len(text.splitlines()), LONGER.get(path.stem, MOST)
    if lines > most:
        found.append(f"{lines} lines; at most {most}")
    if path.stem in LONGER and lines <= MOST:
        found.append(f"{lines} lines: it is no longer one of the longer ones")
    if "WORDS = figure_words(__file__)" not in text:
        found.append("its words belong into docs/data/experiments")
    return [f"{path.name}: {each}" for each in found]


def test_each_experiment_is_short_and_holds_no_words(no_violations):
    no_violations(
        v for name in experiments() for v in violations(EXPERIMENTS / f"{name}.py")
    )
    assert set(experiments()) >= LONGER.keys()


@pytest.mark.parametrize(
    ("name", "lines", "text", "says"),
    [
        ("toy_loss", MOST, "WORDS = figure_words(__file__)", []),
        ("toy_loss", MOST + 1, "WORDS = figure_words(__file__)", ["at most 400"]),
        ("toy_loss", 9, "WORDS = {'en': {}}", ["docs/data/experiments"]),
        ("norm_free", MOST, "WORDS = figure_words(__file__)", ["no longer one"]),
        (
            "norm_free",
            999,
            "WORDS = figure_words(__file__)",
            [f"at most {LONGER['norm_free']}"],
        ),
    ],
)
def test_a_planted_one(tmp_path, name, lines, text, says):
    path = tmp_path / f"{name}.py"
    path.write_text("\n" * (lines - 1) + text, encoding="utf-8")
    found = violations(path)
    assert len(found) == len(says)
    assert all(what in text for what, text in zip(says, found, strict=True))
