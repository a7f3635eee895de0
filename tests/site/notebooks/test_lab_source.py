"""Labs: pairs of text cells, alternative texts, one executed notebook a language."""

import json
import re

import pytest

from scripts.measure import figures
from scripts.site.notebooks import lab_source

GOOD = """\
# %% [markdown] lang="zh" id="top"
# # 标题

# %% [markdown] lang="en" id="top"
# # Title

# %%
print("ran")

# %% alt_zh="一条线" alt_en="a line"
import matplotlib.pyplot as plt
plt.plot([1, 2])
plt.show()
"""


@pytest.fixture
def lab(tmp_path, monkeypatch):
    monkeypatch.setattr(lab_source, "LABS", tmp_path / "labs")
    monkeypatch.setattr(lab_source, "EXECUTED", tmp_path / "executed")
    (tmp_path / "labs").mkdir()

    def write(text):
        path = tmp_path / "labs" / "small_lab.py"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_each_language_gets_its_text_and_all_code(lab):
    source = lab(GOOD)
    for language, title in (("zh", "# 标题"), ("en", "# Title")):
        cells = lab_source.notebook(source, language).cells
        assert [c.cell_type for c in cells] == ["markdown", "code", "code"]
        assert cells[0].source == title
        assert cells[0].metadata["heading"] == "top"
    assert cells[2].metadata["alt"] == "a line"


MORE = GOOD.replace("# Title", "# Title\n# ## more").replace(
    "# 标题", "# 标题\n# ## 再"
)
PAIR = GOOD[: GOOD.index("# %%\n")]
BAD = {
    "two headings in both": (MORE, "one heading"),
    "second pair": (GOOD + PAIR.replace('lang="en"', 'lang="zh"'), "without a twin"),
    "second pair's order": (
        GOOD + PAIR.replace('"zh"', '"xx"').replace('"en"', '"zh"'),
        "without a twin",
    ),
    "code between": (
        GOOD.replace(
            '# %% [markdown] lang="en"', '# %%\n1\n\n# %% [markdown] lang="en"'
        ),
        "without a twin",
    ),
    "unpaired": (GOOD.replace('lang="en"', 'lang="zh"'), "without a twin"),
    "twin missing": (
        GOOD.replace('# %% [markdown] lang="en" id="top"\n# # Title\n', ""),
        "without a twin",
    ),
    "order": (GOOD.replace('"zh"', '"xx"').replace('"en"', '"zh"'), "without a twin"),
    "no id": (GOOD.replace(' id="top"', ""), "one heading a text cell"),
    "ids differ": (GOOD.replace('"en" id="top"', '"en" id="other"'), "one heading"),
    "two headings": (GOOD.replace("# # Title", "# # Title\n# ## More"), "one heading"),
    "one alt": (GOOD.replace(' alt_en="a line"', ""), "one alternative text"),
}


def test_pairs_follow_each_other(lab):
    cells = lab_source.notebook(lab(GOOD + PAIR + PAIR), "en").cells
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    assert texts == ["# Title"] * 3


@pytest.mark.parametrize("name", BAD)
def test_badly_written_labs_are_named(name, lab):
    text, words = BAD[name]
    with pytest.raises(lab_source.LabError, match=words) as caught:
        lab_source.notebook(lab(text), "en")
    assert str(caught.value).startswith("small_lab.py: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD.replace('print("ran")', "1 / 0"), "ZeroDivisionError"),
        (
            GOOD.replace(' alt_zh="一条线" alt_en="a line"', ""),
            "1 pictures in the cell",
        ),
        (GOOD.replace("plt.plot([1, 2])\nplt.show()", "pass"), "0 pictures"),
        (GOOD.replace('print("ran")', "import warnings; warnings.warn('x')"), "stderr"),
    ],
)
def test_labs_that_fail_write_nothing(text, words, lab, tmp_path):
    with pytest.raises(lab_source.LabError, match=words):
        lab_source.execute(lab(text))
    assert not list((tmp_path / "executed").rglob("*.ipynb"))


def test_execution_is_kept_and_reproducible(lab):
    source = lab(GOOD)
    before = lab_source.digest(source)
    lab_source.execute(source)
    paths = [lab_source.executed_path(source, language) for language in ("zh", "en")]
    first = [path.read_bytes() for path in paths]
    zh, en = (json.loads(text) for text in first)
    outputs = [[c.get("outputs") for c in book["cells"]] for book in (zh, en)]
    assert outputs[0] == outputs[1]
    assert "".join(outputs[0][1][0]["text"]) == "ran\n"
    assert "image/svg+xml" in outputs[0][2][0]["data"]
    lab_source.execute(source)
    assert [path.read_bytes() for path in paths] == first
    source.write_text(GOOD.replace('"ran"', '"ran again"'), encoding="utf-8")
    assert lab_source.digest(source) != before


def test_labs_draw_in_the_colours_of_the_figures():
    """A colour outside the palette would not follow the colour scheme."""
    style = lab_source.STYLE.read_text(encoding="utf-8")
    colours = {f"#{c}" for c in re.findall(r"\b[0-9a-f]{6}\b", style)}
    assert colours and colours <= set(figures.COLOURS)


def test_the_light_scheme_is_the_palette():
    css = (lab_source.STYLE.parent / "overrides/assets/site.css").read_text("utf-8")
    light = css[css.index(":root") :]
    light = light[: light.index("}")]
    value = r"light-dark\((#[0-9a-f]{6}), #[0-9a-f]{6}\)"
    shared = re.findall(rf"--(ink|muted): {value}", light)
    found = [*shared, *re.findall(rf"--figure-([\w-]+): {value}", light)]
    assert {colour: name for name, colour in found} == figures.COLOURS
