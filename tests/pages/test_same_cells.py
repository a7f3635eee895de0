"""A figure and the sentences beside it name the same cells of the record.

A page says numbers of a figure. Each of those declared here has to be a point of the
figure, to the digits that the page prints; else the one shows an average, a step or a
rate that the other does not speak of.
"""

import pytest

from scripts.measure import records
from scripts.site.reading.source import ROOT
from tests.tiny import draw

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
        digits = len(text.partition(".")[2])
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
