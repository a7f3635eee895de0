"""A figure and the sentences beside it name the same cells of the record.

Each number of a figure's record that stands in its section, outside folds, has to be a
point of the figure, to the digits that the page prints; else the one shows an average,
a step or a rate that the other does not speak of. What a section says beyond its figure
is declared here. So has each number of a figure's alternative text, and no line of a
figure lies unseen under another.
"""

import re

import pytest
from matplotlib import pyplot
from matplotlib.text import Text
from numpy import isfinite

from scripts.measure import records
from scripts.site.reading.source import ROOT
from tests.experiment_checks import draw
from tests.lanes import quick_among


def drawn(figure) -> set[float]:
    """All coordinates of points and lines."""
    found: list = []
    for axis in figure.axes:
        for line in axis.lines:
            found += [*line.get_xdata(), *line.get_ydata()]
        for marks in axis.collections:
            found += [each for pair in marks.get_offsets() for each in pair]
            found += [each for p in marks.get_paths() for each in p.vertices.flatten()]
    return {float(each) for each in found if each is not None}


def missing(points: set[float], facts: dict[str, str], names) -> list[str]:
    """'name: text' for each fact that is no point, to its own digits."""
    found = []
    for name in names:
        text = facts[name].replace("\u2212", "-").replace(",", "")
        digits = len(text.partition(".")[2]) or len(text.rstrip("0")) - len(text)
        near = 0.5 * 10**-digits * 1.001
        if not any(abs(point - float(text)) <= near for point in points):
            found.append(f"{name}: {facts[name]}")
    return found


ALONE = re.compile(r"[\u2212-]?[\d,]*\.?\d+")
PRINTED = re.compile(r"[\u2212-]?\d[\d,]*(?:\.\d+)?")
DERIVED = {  # what an alternative text counts, sums or derives from what is drawn
    "init_gradients": r"slope",
    "model_atlas": r"rms_norm|layer_norm|qk_norm",
    "norm_free_control": r"plain_lost|runs_per_arm",
    "token_similarity": r"cosine",  # one minus it is drawn
    "warmup_sensitivity": r"failed|runs_each",
}
# Beside a figure: what was set, and what a difference would have shown.
SET = (
    r"\w+_bound(_\w+)?|bytes|d|launches|layers|narrow|steps|(\w+_)?rate(_\d+)?|runs_\w+"
)
BEYOND = {  # beside a figure, of a quantity, an arm or a depth that it does not show
    "activation_drift": r"relu_\w+_spread_8",
    "attention_control": r"\w+_entropy_tenfold",
    "batch_norm_in_transformer": r"(own|running)_\w+",
    "model_atlas": r"resolved|\w+_norm|qk_l2|rms_norm_gain_first|eps_\w+",
    "norm_free_control": r"plain_lost",
    "norm_speed_cpu": r"\w+_over_\w+",
    "recipe_growth": r"\w+_(p|gradient)|(deepnorm|pre)_sgd_all",
    "running_maximum_loss": r"frozen_\w+|post_narrowest|post_6_16_003",
    "token_similarity": r"\w+_(cosine|first_token|ratio_last)_\w+",
    "warmup_causes": r"radam_factor",
    "warmup_sensitivity": r"\w+_failed",
}
PAGES = [p.read_text("utf-8") for p in sorted((ROOT / "docs/en/pages").rglob("*.md"))]
COVERED = {  # lines under others: what agrees by nature, and what is to be drawn apart
    "activation_drift": 4,
    "kernel_resources": 7,
    "norm_free_control": 1,
    "norm_prediction": 6,
}


def seen(figure) -> set[float]:
    """All coordinates, ticks, bars and printed numbers."""
    found = drawn(figure)
    for axis in figure.axes:
        found |= {float(tick) for tick in (*axis.get_xticks(), *axis.get_yticks())}
        for bar in axis.patches:
            sizes = (getattr(bar, f"get_{side}", None) for side in ("width", "height"))
            found |= {float(size()) for size in sizes if size}
    texts = " ".join(text.get_text() for text in figure.findobj(Text))
    numbers = PRINTED.findall(texts.replace("\u2212", "-").replace(",", ""))
    return found | {float(number) for number in numbers}


def beside(text: str, experiment: str) -> list[str]:
    """The experiment's facts in the sections that show its figure, outside folds."""
    sections = re.split(r"^#+ ", text, flags=re.MULTILINE)
    shown = [each for each in sections if f"[[ figures.{experiment} ]]" in each]
    open_text = re.sub(r"^ {4}.*$", "", "".join(shown), flags=re.MULTILINE)
    names = re.findall(rf"\[\[ facts\.{experiment}\.(\w+) \]\]", open_text)
    spared = f"{SET}|{BEYOND.get(experiment, '(?!)')}"
    return [name for name in dict.fromkeys(names) if not re.fullmatch(spared, name)]


def covered(figure) -> int:
    """How many lines lie within a pixel of an earlier one, from end to end."""
    found = 0
    for axis in figure.axes:
        axis.get_xlim(), axis.get_ylim()  # they scale the axis
        lines: list = []
        for line in axis.lines:
            points = axis.transData.transform(line.get_xydata())
            alike = [each for each in lines if each.shape == points.shape]
            if len(points) > 2 and isfinite(points).all():
                found += any(abs(each - points).max() < 1 for each in alike)
                lines.append(points)
    return found


@pytest.mark.parametrize(
    "experiment",
    quick_among(
        [n for n in records.experiments() if records.find(n)],
        ("norm_prediction", "qk_update_loss", "running_maximum_loss"),
    ),
)
def test_figures(experiment, no_violations):
    """Its text and its section say what it shows, and each line can be seen."""
    module, record = records.load_experiment(experiment), records.find(experiment)[0]
    facts, spared = module.facts(record), DERIVED.get(experiment, r"(?!)")
    said = re.findall(r"\{(\w+)\}", module.WORDS["en"]["alt"])
    names = [name for name in dict.fromkeys(said) if not re.search(spared, name)]
    names += [name for text in PAGES for name in beside(text, experiment)]
    names = [name for name in names if ALONE.fullmatch(facts.get(name, ""))]
    figure = draw(module, record, "en")
    no_violations(missing(seen(figure), facts, names))
    assert covered(figure) <= COVERED.get(experiment, 0)
    pyplot.close(figure)


def test_a_line_under_another_and_a_number_that_is_not_drawn():
    """As LayerNorm's prediction lay on RMSNorm's."""
    figure, axis = pyplot.subplots()
    axis.plot([1, 2, 3], [30, 40, 50])
    axis.plot([1, 2, 3], [30, 40, 50.01])
    axis.set_title("24 layers")
    assert covered(figure) == 1
    facts = {"drawn": "30.0", "printed": "24", "neither": "5.0"}
    assert missing(seen(figure), facts, facts) == ["neither: 5.0"]
    pyplot.close(figure)


@pytest.mark.parametrize(
    ("experiment", "right", "wrong"),
    [  # a step on all parameters; the loss of an arm that the figure leaves out
        ("recipe_growth", "post_sgd", "post_sgd_all"),
        ("warmup_causes", "post_adam_highest", "post_frozen_highest"),
    ],
)
def test_a_section_that_says_another_cell(experiment, right, wrong):
    module, record = records.load_experiment(experiment), records.find(experiment)[0]
    facts, figure = module.facts(record), draw(module, record, "en")
    (text,) = (each for each in PAGES if f"[[ figures.{experiment} ]]" in each)
    planted = text.replace(f"{experiment}.{right} ]]", f"{experiment}.{wrong} ]]")
    assert right in beside(text, experiment)
    found = missing(seen(figure), facts, set(beside(planted, experiment)) & {wrong})
    assert found == [f"{wrong}: {facts[wrong]}"]
    pyplot.close(figure)
