"""Live figures: modules joined into one script, and the state that they open in."""

import pytest

from scripts.site.pictures import explore
from scripts.site.reading.source import SourceError

ELEMENT = """export const shared = 2;
"""
SUM = """import { shared } from "../figures/element.js";

/**
 * Two * x.
 */
export function twice(x) { return shared * x; } // twice
  // An inner line.
export function* once(x) { yield x; }
"""
FIGURE = """import { twice } from "../engine/sum.js";
import { shared } from "./element.js";

const explore = {};
explore.small = {
  words: { en: { caption: "A < B" }, zh: { caption: "甲" } },
  page: (language) => `<p>${language} ${twice(3)}</p>`,
  opening: shared,
  says: (opening, words) => `${words.caption}: ${opening}`,
};
globalThis.explore = explore;
"""


@pytest.fixture
def figures(tmp_path, monkeypatch):
    for name, text in {
        "engine/sum.js": SUM,
        "figures/element.js": ELEMENT,
        "figures/small.js": FIGURE,
        "figures/explore.css": "",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(explore, "FIGURES", tmp_path / "figures")
    return tmp_path


def test_modules_stand_after_what_they_need_and_once(figures):
    found = explore.modules(figures / "figures/small.js")
    names = [path.name for path in found]
    assert names == ["element.js", "sum.js", "small.js"]
    code = explore.joined(figures / "figures/small.js", figures / "engine/sum.js")
    assert "import" not in code and "export" not in code
    assert "Two" not in code and "inner" not in code
    assert code.startswith("const shared = 2;\nfunction twice(x)")
    assert code.count("const shared") == 1
    assert "\nfunction* once(x)" in code
    assert explore.names() == ["small"]


def test_a_figure_opens_in_its_state(figures):
    assert explore.page("small", "en", "../") == (
        '<figure class="explore" data-search-exclude id="explore-small">'
        '<link rel="stylesheet" href="../assets/explore/explore.css">'
        "<figcaption>A &lt; B</figcaption>"
        "<explore-small><p>en 6</p></explore-small>"
        '<script src="../assets/explore/small.js" defer></script></figure>'
    )
    assert explore.text("small", "zh") == "*甲* 甲: 2"
    script = explore.script("small")
    assert script.startswith('(() => {\n"use strict";\nconst shared')
    assert script.endswith("globalThis.explore = explore;\n})();\n")
    with pytest.raises(SourceError, match="live figure 'none'; known: small"):
        explore.ask("none", "figure")


def test_scripts_and_style_are_published(figures, monkeypatch):
    made = []

    class File:
        @staticmethod
        def generated(config, uri, *, content=None, abs_src_path=None):
            made.append((config, uri, content or abs_src_path))
            return uri

    monkeypatch.setattr(explore, "File", File)
    monkeypatch.setattr(explore, "STYLE", figures / "figures/explore.css")
    files = []
    explore.add(files, "config")
    assert sorted(files) == [
        "assets/explore/explore.css",
        "assets/explore/small.js",
        "assets/home.js",
    ]
    assert {config for config, *_ in made} == {"config"}
    assert explore.script("small") in [content for *_, content in made]
