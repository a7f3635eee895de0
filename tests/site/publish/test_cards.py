"""Cards of pages that are linked to elsewhere: their size, their words, when."""

import io
from types import SimpleNamespace

import pytest
from PIL import Image

from scripts.measure import figures
from scripts.site.data import reference_lists
from scripts.site.publish import cards
from scripts.site.reading.source import LANGUAGES


def page(uri="rmsnorm/rms-norm.md", text=""):
    file = SimpleNamespace(src_uri=uri, abs_src_path=f"/{uri}")
    return SimpleNamespace(file=file, meta={"description": "What it is."}, title="T")


def config(site_url, language="en"):
    theme = {"language": language}
    return SimpleNamespace(site_url=site_url, theme=theme, site_name="Norms, Measured")


@pytest.mark.parametrize("drawing", [None, "placement_blocks", "qk_cells"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_card_has_its_size_and_more_than_one_colour(language, drawing):
    png = cards.draw("RMSNorm", "", "Norms, Measured", drawing, language)
    image = Image.open(io.BytesIO(png))
    assert image.size == (1200, 630)
    assert len(image.getcolors()) > 4
    assert len(png) < 60_000


def test_a_drawing_changes_the_card():
    plain = cards.draw("RMSNorm", "", "Norms, Measured", None, "en")
    assert plain != cards.draw("RMSNorm", "", "Norms, Measured", "qk_cells", "en")


@pytest.mark.parametrize(
    "site_url, address",
    [
        ("https://norms.example.org/en/", "https://norms.example.org/en/assets/cards/"),
        ("http://localhost:8000/en/", None),
        ("http://127.0.0.1:8000/", None),
        (None, None),
    ],
)
def test_only_a_published_site_has_cards(site_url, address):
    found = cards.address(page(), config(site_url))
    assert found == (address and f"{address}rmsnorm-rms-norm.png")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_title_fits(language):
    for title in reference_lists.pages(language).values():
        assert cards.drawable(title), title
        lines = figures.wrap(title, 4.9, 24, weight="bold")
        assert len(lines) <= 5, title
        assert all(figures._width(line, 24, weight="bold") <= 5.2 for line in lines), (
            title
        )


def test_a_description_with_a_character_that_no_font_has_stays_out():
    assert cards.drawable("归一化") and not cards.drawable("浏")
    site = "Norms, Measured"
    assert cards.draw("T", "浏", site, None, "zh") == cards.draw(
        "T", "", site, None, "zh"
    )
