"""The reader of prose that the laws about words stand on."""

from tests.pages.page_prose import CITE, CODE, FACT, FORMULA, lab_text, paragraphs

PAGE = """---
title: A title
description: What it is about.
---

# Head { #head }

One `code` and $x^2$ with
[a link](other.md#place) [[ cite.who2020what ]].
$$
\\frac{1}{2}
$$
After the formula.

- item one
  goes on
- item *two* [[ facts.a.b ]]

| a | b |
|---|---|
| **c** | d |

!!! note "Box"
    Inside the box[^1].

    ```python
    --8<-- "not/prose.py"
    ```

<!-- not
prose -->
Last.
"""


def test_paragraphs():
    assert [(p.line, p.text) for p in paragraphs(PAGE)] == [
        (2, "A title"),
        (3, "What it is about."),
        (6, "Head"),
        (8, f"One {CODE} and {FORMULA} with\na link {CITE}.\n{FORMULA}"),
        (13, "After the formula."),
        (15, "item one\ngoes on"),
        (17, f"item two {FACT}"),
        (19, "a | b"),
        (21, "c | d"),
        (23, "Box"),
        (24, "Inside the box."),
        (32, "Last."),
    ]
    assert [p.line for p in paragraphs(PAGE) if p.heading] == [2, 3, 6, 23]


def test_line_of_an_offset():
    paragraph = paragraphs(PAGE)[3]
    assert paragraph.line_of(paragraph.text.index("a link")) == 9


LAB = """# %% [markdown] lang="zh" id="start"
# ## 开始
#
# 文字。

# %% [markdown] lang="en" id="start"
# ## Start

# %% alt_zh="一条 \\"线\\"" alt_en="A line"
draw()  # %% not a cell
"""


def test_lab_text():
    assert lab_text(LAB, "zh").splitlines() == [
        *("", "## 开始", "", "文字。", "", "", "", "", '一条 \\"线\\"')
    ]
    assert lab_text(LAB, "en").splitlines()[6:] == ["## Start", "", "A line"]
