"""The home page's card shows what its record holds."""

import re

import pytest

from scripts.site.data import facts
from scripts.site.pictures import gradient_bet
from scripts.site.pictures.gradient_bet import LEVELS, gradient_map, shade
from scripts.site.reading.source import LANGUAGES, SourceError


@pytest.mark.parametrize(
    ("value", "wanted"),
    [(None, 0), (0.0, 0), (1e-12, 0), (1e-7, 0), (1e-5, LEVELS // 2), (1e-3, LEVELS)],
)
def test_shades_follow_the_exponent(value, wanted):
    assert shade(value) == wanted
    assert shade(10.0) == LEVELS


def test_the_first_layer_is_at_the_bottom():
    drawn = gradient_map([[1e-3, None], [1e-5, 1e-5]])
    assert '<path fill-opacity="1" d="M0 1h1v1h-1z"/>' in drawn
    assert '<path fill-opacity="0.5" d="M0 0h1v1h-1zM1 0h1v1h-1z"/>' in drawn
    assert 'viewBox="0 0 2 2"' in drawn and drawn.count("<path") == 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_card_holds_both_runs(language):
    card = gradient_bet.make("gradient", language, "../")
    said = facts.facts()[gradient_bet.EXPERIMENT]
    for arm in gradient_bet.ARMS:
        assert said[f"{arm}_opening"] in card
    assert card.count("<svg") == 2 and "{" not in card
    assert 'href="../placement/pre-norm-vs-post-norm.md#gradient-dies"' in card
    assert 'href="../playground/index.md"' in card
    assert "\n" not in card  # Markdown leaves one block of HTML as it is
    assert set(gradient_bet.WORDS["zh"]) == set(gradient_bet.WORDS["en"])


def test_the_verdict_is_what_the_record_says():
    """In every seed, not in the one that is drawn alone."""
    record = facts.recorded()[gradient_bet.EXPERIMENT][0]
    said = facts.facts()[gradient_bet.EXPERIMENT]
    layers, d = int(said["opening_layers"]), int(said["opening_d"])

    def ends(arm, rate, layers=layers):
        chosen = {"arm": arm, "rate": rate, "layers": layers, "d": d}
        return [r["values"][-1] for r in record.select(quantity="held_out", **chosen)]

    rate = float(said["opening_rate"])
    bare = ends("no_layers", rate, 0)
    assert max(ends("pre", rate)) < 0.1 < max(bare) < min(ends("post", rate))
    assert max(ends("post", 0.003)) < min(bare)
    for seed in {row["seed"] for row in record.rows}:
        seen = {"arm": "post", "seed": seed}
        sizes = [r["values"][-1] for r in record.select(quantity="gradient", **seen)]
        assert min(sizes[:-1]) < 0.05 * sizes[-1]
        (last,) = record.select(quantity="cosine", depth=layers, **seen)
        assert last["values"][-1] > 0.8


def test_an_unknown_bet_is_one_line():
    with pytest.raises(SourceError, match="unknown bet 'other'; known: gradient"):
        gradient_bet.make("other", "en", "")
    assert not re.search(r"<", gradient_bet.text("gradient", "en"))
