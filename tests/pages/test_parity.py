"""Both languages say the same thing: twins differ in prose only."""

import re
from collections import Counter
from dataclasses import dataclass
from itertools import zip_longest

import pytest

from scripts.measure import records
from scripts.site.pictures import diagram
from scripts.site.reading import source
from scripts.site.reading.files import ROOT, read_yaml
from tests.pages.page_prose import EN, ZH, nav, nav_files, paragraphs
from tests.pages.test_facts import texts

BOX = re.compile(r"^( *)(!!!|\?\?\?\+?) +(\w+)")
ITEM = re.compile(r"^( *)(?:[-*+]|(\d+)\.) +")
ROW = re.compile(r"^ *\|")
FIGURE = re.compile(r"^ *(\[\[ *(?:figures|designs|diagrams|explore)\.\w+ *\]\])")
CODE = re.compile(r"(?s)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
INLINE = {  # outside code; word order differs, so each is a multiset
    "formula": re.compile(r"(?s)\$\$(.+?)\$\$|(?<![\\$])\$(?! )([^$]+?)(?<! )\$"),
    "name": re.compile(r"\[\[ *(\w+\.[\w.]+) *\]\]"),
    "link": re.compile(r"\]\(([^)]*)\)|<\w[^>]*? (?:href|src)=\"([^\"]*)\""),
    "footnote": re.compile(r"(\[\^[^\]]+\]:?)"),
}
NUMBER = re.compile(
    r"(?<![\w.])(\d[\d,]*(?:\.\d+)?(?:e-?\d+)?)"
    r"(?:[ -]?(万亿|万|亿|(?:thousand|million|billion|trillion|[KMBT])(?!\w)))?"
)
TIMES = {"万": 1e4, "亿": 1e8, "万亿": 1e12, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
TIMES |= {"thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
WITH_DIGIT = re.compile(r"(?<![\w-])[A-Za-z]+\d\w*")  # float16, Qwen3
TERM = re.compile(  # RMSNorm, Pre-Norm
    r"(?<!\w)(?:[A-Za-z]+[A-Z][A-Za-z]*(?:-[A-Z]\w+)?|[A-Z][a-z]+-[A-Z][a-z]+)(?!\w)"
)
ANSWERS = {"是": "yes", "否": "no"}  # a cell's whole text
HAN = re.compile(r"[\u4e00-\u9fff]")
WORD = re.compile(r"(?<![\w.-])[a-z]{2,}(?![\w-])")
TAG = re.compile(r"</?\w[^>]*>")
SPOKEN = re.compile(r"(?:title|description):")  # of the front matter
LEGEND = 120  # characters
# Sections in which only the Chinese page has a line that says what the columns of a
# print are: what a block prints is English, and says it there. Twice for two lines.
LEGENDS = {
    "attention/qk-norm.md": "growth heads backward",
    "attention/soft-capping.md": "clamp attention bound precision",
    "foundations/batch-norm-vs-layer-norm.md": "causality",
    "foundations/scale-invariance.md": "scope",
    "frontier/normalized-transformer.md": "scales",
    "frontier/norms-beyond-the-decoder.md": "gated delta adaln",
    "frontier/without-normalization.md": "lacks",
    "frontier/zero-centred-and-mixed.md": "profile",
    "placement/curse-of-depth.md": "contribution remedies",
    "placement/deepnorm.md": "updates",
    "placement/pre-norm-vs-post-norm.md": "gradients",
    "placement/sandwich-norm.md": "growth reordered reordered",
    "placement/signal-propagation.md": "gram first-token queries-and-keys",
    "placement/warm-up.md": "first-step",
    "practice/transformer-block.md": "port",
    "rmsnorm/low-precision.md": "intuition",
}


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


@dataclass(frozen=True)
class Block:
    """A paragraph, item, row or heading: as written, and in words."""

    line: int
    raw: str
    text: str
    heading: bool
    legend: bool  # short, and beside something printed

    @property
    def cells(self) -> list[tuple[str, str]]:
        """(as written, in words) of each cell of a row; else of the whole."""
        if not ROW.match(self.raw):
            return [(self.raw, self.text)]
        row = CODE.sub(lambda code: code[0].replace("|", "¦"), self.raw)
        cells = row.replace(r"\|", "¦").strip().strip("|").split("|")
        return [(cell, "".join(p.text for p in paragraphs(cell))) for cell in cells]


def sections(text: str) -> dict[str, list[Block]]:
    """What stands below each heading, by the heading's id."""
    lines, heads = text.splitlines(), source.headings(text)
    front = source.FRONT_MATTER.match(text)
    begins = front[0].count("\n") if front else 0
    filled = [number for number, line in enumerate(lines, 1) if line.strip()]
    prints = [fence for fence in source.fences(text) if fence.info == "text"]
    found: dict[str, list[Block]] = {"": []} | {h.id or "?": [] for h in heads}
    for said in paragraphs(text):
        last = said.line + said.text.count("\n")
        raw = "\n".join(lines[said.line - 1 : last])
        if said.line <= begins and not SPOKEN.match(raw):
            continue
        above = max((n for n in filled if n < said.line), default=0)
        below = min((n for n in filled if n > last), default=0)
        beside = any(above == fence.end or below == fence.line for fence in prints)
        legend = beside and len(raw) <= LEGEND and not re.search(r"\[\[|\]\(", raw)
        name = ([h.id or "?" for h in heads if h.line <= said.line] or [""])[-1]
        found[name].append(Block(said.line, raw, said.text, said.heading, legend))
    return found


def without_legends(blocks: list[Block], count: int) -> list[Block]:
    """A section of a Chinese page without so many legends of prints."""
    for block in [block for block in blocks if block.legend][:count]:
        blocks = [other for other in blocks if other is not block]
    return blocks


def numbers(text: str) -> Counter:
    """Numbers but single digits, 125M and 1.25 亿 as the same."""
    found = ((m[1].replace(",", ""), TIMES.get(m[2], 1)) for m in NUMBER.finditer(text))
    return Counter(
        f"{float(n) * times:g}" for n, times in found if len(n) > 1 or times > 1
    )


def content(raw: str, text: str, heading: bool) -> dict[str, Counter]:
    """What a block or cell holds besides prose, by kind."""
    bare = CODE.sub("", raw)
    found = {
        kind: Counter(
            " ".join(next(filter(None, match.groups()), "").split())
            for match in pattern.finditer(bare)
        )
        for kind, pattern in INLINE.items()
    }
    found["code"] = Counter(" ".join(m[2].split()) for m in CODE.finditer(raw))
    found["number"] = numbers(text)
    found["term"] = Counter({*WITH_DIGIT.findall(text)})
    if heading:
        found["term"] |= Counter({*TERM.findall(text)})
    word = text.strip().lower()
    found["answer"] = Counter([word] if word in ANSWERS.values() else [])
    found["answer"] += Counter([ANSWERS[word]] if word in ANSWERS else [])
    return found


def untranslated(block: Block, lang: str) -> bool:
    """Whether a block is in the other language."""
    text = TAG.sub("", block.text)
    if lang == "en":  # which may name a Chinese word
        return len(HAN.findall(text)) > 4
    return not HAN.search(text) and len(WORD.findall(text)) > 2


def violations(zh: str, en: str, legends: str = "") -> list[str]:
    """How two pages differ in what is not prose; what is left untranslated.

    ``legends`` are the ids of sections, one for each legend in the Chinese page alone.
    """
    for a, b in zip_longest(skeleton(zh), skeleton(en), fillvalue=(0, "nothing more")):
        if a[1] != b[1]:
            return [f"zh line {a[0]}: {a[1]}, en line {b[0]}: {b[1]}"]
    ours, theirs, found = sections(zh), sections(en), []
    for name in ours:
        here = without_legends(ours[name], legends.split().count(name))
        there = theirs[name]
        for lang, blocks in (("zh", here), ("en", there)):
            lines = [block.line for block in blocks if untranslated(block, lang)]
            found += [f"#{name}: {lang} line {line}: not translated" for line in lines]
        if len(here) != len(there):
            found.append(f"#{name}: {len(here)} paragraphs in zh, {len(there)} in en")
            continue
        for a, b in zip(here, there, strict=True):
            if len(a.cells) != len(b.cells):
                found.append(f"#{name}: zh line {a.line} is not en line {b.line}")
                break
            for cell, twin in zip(a.cells, b.cells, strict=True):
                holds = content(*cell, a.heading)
                found += differences(name, holds, content(*twin, b.heading))
    return found


def differences(name: str, zh: dict[str, Counter], en: dict[str, Counter]) -> list[str]:
    return [
        f"#{name}: {kind} only in {lang}: {', '.join(sorted(extra.elements()))}"
        for kind in zh
        for lang, extra in (("zh", zh[kind] - en[kind]), ("en", en[kind] - zh[kind]))
        if extra
    ]


def test_twins(twins, no_violations):
    zh, en = twins
    no_violations(
        f"{zh.path}: {v}"
        for v in violations(zh.text, en.text, LEGENDS.get(zh.path, ""))
    )


def pairs(data: object, where: str = "") -> list[tuple[str, str, str]]:
    """(where, zh, en) of each text in both languages, however deep."""
    if isinstance(data, dict) and isinstance(data.get("zh"), str) and "en" in data:
        return [(where, data["zh"], data["en"])]
    rows = enumerate(data) if isinstance(data, list) else ()
    items = data.items() if isinstance(data, dict) else rows
    found = []
    for key, held in items:
        name = held.get("id", key) if isinstance(held, dict) else key
        found += pairs(held, f"{where}{name}: ")
    return found


DATA = ROOT / "docs" / "data"
FILES = sorted(path.relative_to(DATA).as_posix() for path in DATA.rglob("*.yml"))
FILES.remove("terms.yml")  # words, not texts


@pytest.mark.parametrize("file", FILES)
def test_data(file, no_violations):
    no_violations(
        f"{file}: {where}{v}"
        for where, zh, en in pairs(read_yaml(DATA / file))
        for v in violations(zh, en)
    )


PICTURES = {name: records.load_experiment(name) for name in records.experiments()}
PICTURES |= {name: diagram.load(name) for name in diagram.names()}


@pytest.mark.parametrize("name", PICTURES)
def test_words_of_pictures(name, no_violations):
    zh, en = (texts(PICTURES[name].WORDS[lang]) for lang in ("zh", "en"))
    assert zh.keys() == en.keys()
    no_violations(
        f"{name}.{key}: {v}" for key in zh for v in violations(zh[key], en[key])
    )


def test_legends_stand_in_sections_that_are():
    """One that is not needed any more is counted, and fails above."""
    for path, names in LEGENDS.items():
        assert set(names.split()) <= sections(ZH[path].text).keys()


def test_same_pages(no_violations):
    assert ZH or EN, "there are no pages"
    no_violations(
        f"{path}: only in one language" for path in sorted(ZH.keys() ^ EN.keys())
    )


def test_same_nav_and_every_page_in_it(no_violations):
    assert nav("zh") == nav("en")
    listed = {file for file in nav("en") if file.endswith(".md")}
    no_violations(
        f"{path}: in nav or pages only" for path in sorted(listed ^ EN.keys())
    )


GOOD_ZH = """---
title: 标题
description: 这一页说什么
also: [甲, 乙2]
script: a.js
---

# 标题 { #title }

用 $x$ 和 $y$，见[那里](b.md#c)与[这里](a.md)。1.25 亿个参数，`x` 是 float16。

!!! note "注"
    `$none$`

| 甲 | 乙 `a|b` |
|---|---|
| 是 | [[ facts.a.c ]] |

- 一：[[ facts.a.b ]] [[ cite.k ]]
- 二：<a href="d/">那边</a>

```python
--8<-- "a/b.py"
```

```text
--8<-- "a/b.out"
```

两列依次是：宽度、时间。

它用 32 位。

[[ figures.a ]]
"""
GOOD_EN = """---
title: Title
description: What this page says
also: [a]
script: a.js
---

# Title { #title }

Take $y$ and $x$: [here](a.md), [there](b.md#c). With 125M weights, `x` is float16.

!!! note "Note"
    `$none$`

| A | B `a|b` |
|---|---|
| yes | [[ facts.a.c ]] |

- One: [[ cite.k ]] [[facts.a.b]]
- Two: <a href="d/">over there</a>

```python
--8<-- "a/b.py"
```

```text
--8<-- "a/b.out"
```

It has 32 bits, and all of them count.

[[ figures.a ]]
"""


def test_good():
    assert violations(GOOD_ZH, GOOD_EN, "title") == []
    assert nav_files(["index.md", {"A": ["b.md", {"C": "c.md"}]}]) == [
        "index.md",
        "b.md",
        "c.md",
    ]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("# Title", "## Title", "zh line 8: heading 1 #title, en line 8: heading 2"),
        ("#title", "#heading", "zh line 8: heading 1 #title, en line 8"),
        ("!!! note", "!!! warning", "zh line 12: box !!! note, en line 12: box !!! wa"),
        ("!!! note", "??? note", "zh line 12: box !!! note, en line 12: box ???"),
        ("| B", "| B | C", "zh line 15: table row of 2 cells, en line 15"),
        ("- One", "- One\n- Three", "zh line 22: fence python"),
        ("- One", "1. One", "zh line 19: item -, en line 19: item 1."),
        ("a/b.py", "a/c.py", "zh line 22: fence python ('a/b.py', None), en line 22"),
        ("[[ figures.a ]]", "", "zh line 34: [[ figures.a ]], en line 0: nothing more"),
        ("$y$", "$z$", "#title: formula only in zh: y"),
        ("$y$ and", "", "#title: formula only in zh: y"),
        ("facts.a.b", "facts.a.c", "#title: name only in zh: facts.a.b"),
        ("[[ cite.k ]] ", "", "#title: name only in zh: cite.k"),
        ("b.md#c", "b.md", "#title: link only in zh: b.md#c"),
        ("there", "there[^1]", "#title: footnote only in en: [^1]"),
        ("d/", "e/", "#title: link only in en: e/"),
        ("`x` is", "It is", "#title: code only in zh: x"),
        ("125M", "125B", "#title: number only in en: 1.25e+11"),
        ("32 bits", "64 bits", "#title: number only in en: 64"),
        ("is float16", "is bfloat16", "#title: term only in en: bfloat16"),
        ("# Title", "# LayerNorm", "#title: term only in en: LayerNorm"),
        ("title: Title", "title: QK-Norm", "#: term only in en: QK-Norm"),
        ("| yes", "| no", "#title: answer only in zh: yes"),
        ("125M", "125M\n\nof", "#title: 10 paragraphs in zh, 11 in en"),
        ("125M", "125M\n\nmany\n\nof", "#title: 10 paragraphs in zh, 12 in en"),
        ("It has", "Two.\n\nIt has", "#title: 10 paragraphs in zh, 11 in en"),
        ("It has 32", "它是三十二位的 32", "#title: en line 30: not translated"),
    ],
)
def test_bad(old, new, says):
    assert old in GOOD_EN
    found = violations(GOOD_ZH, GOOD_EN.replace(old, new, 1), "title")
    assert any(v.startswith(says) for v in found), found


ENGLISH = "It has 32 bits, and all of them count."


def test_bad_in_chinese():
    """A paragraph left in English, one missing, a long one that is no legend."""
    bad = GOOD_ZH.replace("它用 32 位。", ENGLISH)
    assert violations(bad, GOOD_EN, "title") == ["#title: zh line 32: not translated"]
    bad = GOOD_ZH.replace("1.25 亿", "1.25 亿\n\n")
    assert violations(bad, GOOD_EN, "title") == [
        "#title: 11 paragraphs in zh, 10 in en"
    ]
    for legend in ("两列。" * 50, "两列：[[ cite.k ]]", "两列：[这](a.md)"):
        bad = GOOD_ZH.replace("两列依次是：宽度、时间。", legend)
        assert violations(bad, GOOD_EN, "title") == [
            "#title: 11 paragraphs in zh, 10 in en"
        ]


def test_a_legend_is_no_counterpart():
    """Without the line that both pages need, and where none is due."""
    bad = GOOD_ZH.replace("它用 32 位。\n\n", "")
    assert violations(bad, GOOD_EN, "title") == ["#title: 9 paragraphs in zh, 10 in en"]
    assert violations(GOOD_ZH, GOOD_EN) == ["#title: 11 paragraphs in zh, 10 in en"]


def test_facts_in_other_rows_or_cells():
    """A section holds the same, and its table says something else."""
    zh = "| 甲 | [[ facts.a.b ]] | [[ facts.a.c ]] |\n| 乙 | [[ facts.a.d ]] | 1 |\n"
    en = zh.replace("甲", "A").replace("乙", "B")
    assert violations(zh, en) == []
    for one, two in (("b", "c"), ("b", "d")):
        bad = en.translate(str.maketrans({one: two, two: one})).replace(
            "[[ fa", "[[ fa"
        )
        assert any("name only in" in v for v in violations(zh, bad))


def test_numbers_are_the_same_in_both_counts():
    assert numbers("125M, 2.7 billion, 1.5 million") == numbers(
        "1.25 亿、27 亿、150 万"
    )
    assert numbers("4,096 and 1e-6; GPT-2, 3 of 4") == {"4096": 1, "1e-06": 1}


def test_pairs_are_found_however_deep():
    text = {"zh": "甲", "en": "A"}
    data = [{"id": "a", "claim": text, "options": {"b": {"why": text}}}, "c", None]
    assert [where for where, *_ in pairs(data)] == [
        "a: claim: ",
        "a: options: b: why: ",
    ]
