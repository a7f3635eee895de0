"""A figure and the sentences beside it name the same cells of the record.

A page says numbers of a figure. Each of those declared here has to be a point of the
figure, to the digits that the page prints; else the one shows an average, a step or a
rate that the other does not speak of. So has each number of a figure's alternative
text, and no line of a figure lies unseen under another.
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

RECORDS = ROOT / "docs" / "records" / "amd-epyc"
LINKS = {  # experiment: a page that shows its figure, and what it says of it
    "recipe_growth": (
        "placement/residual-recipes.md",
        ("deepnorm_sgd", "pangu_sgd", "complete_p_signs", "post_sgd", "pre_signs"),
    ),
    "warmup_causes": (
        "placement/warm-up.md",
        tuple(
            f"post_{arm}_{rate}"
            for arm in ("adam", "warm_up", "radam", "admin", "capped")
            for rate in ("least", "lower", "highest")
        ),
    ),
}


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


@pytest.fixture(scope="module", params=LINKS)
def shown(request):
    experiment = request.param
    module = records.load_experiment(experiment)
    record = records.load(RECORDS / f"{experiment}.json")
    return experiment, module.facts(record), drawn(draw(module, record, "en"))


def test_figures(shown, obeyed):
    experiment, facts, points = shown
    page, names = LINKS[experiment]
    obeyed(f"{experiment}: {each}" for each in missing(points, facts, names))
    for lang in ("zh", "en"):
        text = (ROOT / "docs" / lang / "pages" / page).read_text(encoding="utf-8")
        assert f"[[ figures.{experiment} ]]" in text
        said = [n for n in names if f"facts.{experiment}.{n} ]]" not in text]
        obeyed(f"{page} ({lang}) does not say {name}" for name in said)


BAD = {  # a step on all parameters; a loss of an arm that the figure leaves out
    "recipe_growth": ("deepnorm_sgd_all", "post_sgd_all"),
    "warmup_causes": ("post_frozen_least", "post_frozen_highest"),
}


def test_bad(shown):
    """What the figure does not show is found."""
    experiment, facts, points = shown
    assert len(missing(points, facts, BAD[experiment])) == len(BAD[experiment])


ALONE = re.compile(r"[\u2212-]?[\d,]*\.?\d+")
PRINTED = re.compile(r"[\u2212-]?\d[\d,]*(?:\.\d+)?")
DERIVED = {  # what an alternative text counts, sums or derives from what is drawn
    "init_gradients": r"slope",
    "model_atlas": r"rms_norm|layer_norm|qk_norm",
    "norm_free_control": r"plain_lost|runs_per_arm",
    "token_similarity": r"cosine",  # one minus it is drawn
    "warmup_sensitivity": r"failed|runs_each",
}
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
def test_alternative_texts(experiment, obeyed):
    """It says what its figure shows, and each line of the figure can be seen."""
    module, record = records.load_experiment(experiment), records.find(experiment)[0]
    facts, spared = module.facts(record), DERIVED.get(experiment, r"(?!)")
    said = re.findall(r"\{(\w+)\}", module.WORDS["en"]["alt"])
    names = [
        name
        for name in dict.fromkeys(said)
        if ALONE.fullmatch(facts.get(name, "")) and not re.search(spared, name)
    ]
    figure = draw(module, record, "en")
    obeyed(missing(seen(figure), facts, names))
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
