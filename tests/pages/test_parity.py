"""Both languages say the same thing: twins differ in prose only."""

import re
from collections import Counter
from itertools import zip_longest

import pytest

from scripts.site.reading import source
from tests.pages.reading import EN, ZH, nav, nav_files

BOX = re.compile(r"^( *)(!!!|\?\?\?\+?) +(\w+)")
ITEM = re.compile(r"^( *)(?:[-*+]|(\d+)\.) +")
ROW = re.compile(r"^ *\|")
FIGURE = re.compile(r"^ *(\[\[ *(?:figures|designs|diagrams|explore)\.\w+ *\]\])")
INLINE = {  # compared as multisets within a section: word order differs
    "formula": re.compile(r"(?s)\$\$(.+?)\$\$|(?<![\\$])\$(?! )([^$]+?)(?<! )\$"),
    "name": re.compile(r"\[\[ *(\w+\.[\w.]+) *\]\]"),
    "link": re.compile(r"\]\(([^)]*)\)"),
    "footnote": re.compile(r"(\[\^[^\]]+\]:?)"),
}
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")


def skeleton(text: str) -> list[tuple[int, str]]:
    """What stands on a page in order, (line, description): headings, fences,
    boxes, list items, table rows, figures."""
    found = [(h.line, f"heading {h.level} #{h.id}") for h in source.headings(text)]
    for f in source.fences(text):
        found.append((f.line, f"{' ' * f.indent}fence {f.info} {f.embed}"))
    for number, line in enumerate(source.without_fences(text).splitlines(), 1):
        if box := BOX.match(line):
            found.append((number, f"{box[1]}box {box[2]} {box[3]}"))
        elif item := ITEM.match(line):
            found.append((number, f"{item[1]}item {'1.' if item[2] else '-'}"))
        elif ROW.match(line):
            cells = CODE.sub("", line).replace(r"\|", "").count("|") - 1
            found.append((number, f"table row of {cells} cells"))
        elif figure := FIGURE.match(line):
            found.append((number, figure[1]))
    return sorted(found)


def inline(text: str) -> dict[tuple[str, str], Counter]:
    """Formulas, facts, citations, links, footnotes by (section id, kind)."""
    lines = source.without_fences(text).splitlines()
    heads = source.headings(text)
    bounds = [0, *(h.line for h in heads), len(lines) + 1]
    found = {}
    for start, end, name in zip(
        bounds, bounds[1:], ["", *(h.id or "?" for h in heads)], strict=False
    ):
        body = CODE.sub("", "\n".join(lines[start : end - 1]))
        for kind, pattern in INLINE.items():
            matches = pattern.finditer(body)
            groups = (next(filter(None, match.groups()), "") for match in matches)
            found[name, kind] = Counter(" ".join(group.split()) for group in groups)
    return found


def violations(zh: str, en: str) -> list[str]:
    """How two pages differ in what is not prose."""
    for a, b in zip_longest(skeleton(zh), skeleton(en), fillvalue=(0, "nothing more")):
        if a[1] != b[1]:
            return [f"zh line {a[0]}: {a[1]}, en line {b[0]}: {b[1]}"]
    ours, theirs = inline(zh), inline(en)
    return [
        f"#{name}: {kind} only in {lang}: {', '.join(extra.elements())}"
        for (name, kind), here in ours.items()
        for lang, extra in (
            ("zh", here - theirs[name, kind]),
            ("en", theirs[name, kind] - here),
        )
        if extra
    ]


def test_twins(twins, obeyed):
    zh, en = twins
    obeyed(f"{zh.path}: {v}" for v in violations(zh.text, en.text))


def test_same_pages(obeyed):
    assert ZH or EN, "there are no pages"
    obeyed(f"{path}: only in one language" for path in sorted(ZH.keys() ^ EN.keys()))


def test_same_nav_and_every_page_in_it(obeyed):
    assert nav("zh") == nav("en")
    listed = {file for file in nav("en") if file.endswith(".md")}
    obeyed(f"{path}: in nav or pages only" for path in sorted(listed ^ EN.keys()))


GOOD_ZH = """# 标题 { #title }

用 $x$ 和 $y$，见[那里](b.md#c)与[这里](a.md)。

!!! note "注"
    `$不算$`

| 甲 | 乙 `a|b` |
|---|---|

- 一：[[ facts.a.b ]] [[ cite.k ]]

```python
--8<-- "a/b.py"
```

[[ figures.a ]]
"""
GOOD_EN = """# Title { #title }

Take $y$ and $x$: [here](a.md), [there](b.md#c).

!!! note "Note"
    `$not this$`

| A | B `a|b` |
|---|---|

- One: [[ cite.k ]] [[facts.a.b]]

```python
--8<-- "a/b.py"
```

[[ figures.a ]]
"""


def test_good():
    assert violations(GOOD_ZH, GOOD_EN) == []
    assert nav_files(["index.md", {"A": ["b.md", {"C": "c.md"}]}]) == [
        "index.md",
        "b.md",
        "c.md",
    ]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("# Title", "## Title", "zh line 1: heading 1 #title, en line 1: heading 2"),
        ("#title", "#heading", "zh line 1: heading 1 #title, en line 1"),
        ("!!! note", "!!! warning", "zh line 5: box !!! note, en line 5: box !!! warn"),
        ("!!! note", "??? note", "zh line 5: box !!! note, en line 5: box ???"),
        ("| B", "| B | C", "zh line 8: table row of 2 cells, en line 8"),
        ("- One", "- One\n- Two", "zh line 13: fence python"),
        ("- One", "1. One", "zh line 11: item -, en line 11: item 1."),
        ("a/b.py", "a/c.py", "zh line 13: fence python ('a/b.py', None), en line 13"),
        ("[[ figures.a ]]", "", "zh line 17: [[ figures.a ]], en line 0: nothing more"),
        ("$y$", "$z$", "#title: formula only in zh: y"),
        ("$y$ and", "", "#title: formula only in zh: y"),
        ("facts.a.b", "facts.a.c", "#title: name only in zh: facts.a.b"),
        ("[[ cite.k ]] ", "", "#title: name only in zh: cite.k"),
        ("b.md#c", "b.md", "#title: link only in zh: b.md#c"),
        ("there", "there[^1]", "#title: footnote only in en: [^1]"),
    ],
)
def test_bad(old, new, says):
    assert old in GOOD_EN
    found = violations(GOOD_ZH, GOOD_EN.replace(old, new, 1))
    assert any(v.startswith(says) for v in found), found
