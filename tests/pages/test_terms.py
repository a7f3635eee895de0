"""Chinese pages use the terms of docs/data/terms.yml, and gloss them once."""

import re

import pytest

from scripts.site.data import terms
from tests.pages.page_prose import paragraphs

TERMS = terms.terms()


def refused(text: str, terms: list[dict]) -> list[str]:
    """Variants that the list refuses.

    A variant that is itself the term for something else (正则化, regularization)
    is free on a page that introduces it as such: 正则化（regularization）.
    """
    prose = paragraphs(text)
    everything = "\n".join(paragraph.text for paragraph in prose)
    introduced = {t["zh"] for t in terms if introduces(t).search(everything)}
    return [
        f"{paragraph.line_of(match.start())}: {variant}, not {term['zh']}, {term['en']}"
        for term in terms
        for variant in term["avoid"]
        if variant not in introduced
        for paragraph in prose
        for match in re.finditer(re.escape(variant), paragraph.text)
    ]


def introduces(term: dict) -> re.Pattern:
    """中文（English ...）, in any case."""
    return re.compile(rf"{term['zh']}（[^）]*{re.escape(term['en'])}", re.IGNORECASE)


def unglossed(text: str, terms: list[dict]) -> list[str]:
    """Terms flagged ``gloss`` whose first use does not give the English."""
    longest_first = sorted((t["zh"] for t in terms), key=len, reverse=True)
    any_term = re.compile("|".join(map(re.escape, longest_first)))
    first = {}
    for paragraph in paragraphs(text):
        if not paragraph.heading:
            for match in any_term.finditer(paragraph.text):
                first.setdefault(match[0], (paragraph, match.start()))
    return [
        f"{paragraph.line_of(start)}: first {term['zh']} lacks （{term['en']}）"
        for term in terms
        if term.get("gloss") and term["zh"] in first
        for paragraph, start in [first[term["zh"]]]
        if not introduces(term).match(paragraph.text, start)
    ]


def unspoken(text: str, terms: list[dict]) -> list[str]:
    """Short names of the field whose first use is not 中文（short）.

    A letter in italics is a quantity; Pre-LN and its like are names of their own.
    """
    prose = [p for p in paragraphs(re.sub(r"\*[A-Z]\*", "", text)) if not p.heading]
    found = []
    for term in terms:
        if short := term.get("short"):
            bare = rf"(?<![A-Za-z0-9_-]){short}(?![A-Za-z0-9_-])"
            use = f"{bare}|{term['zh']}" if term.get("said") else bare
            first = re.compile(
                rf"({term['zh']}[^（，。；、]{{0,2}}（[^）]*{bare})|{use}"
            )
            uses = ((p, m) for p in prose for m in first.finditer(p.text))
            paragraph, match = next(uses, (None, None))
            if match and not match[1]:
                line = paragraph.line_of(match.start())
                found.append(f"{line}: first use lacks {term['zh']}（{short}）")
    return found


def test_pages(spoken, no_violations):
    if spoken.lang == "zh":
        found = refused(spoken.text, TERMS) + unspoken(spoken.text, TERMS)
        found += unglossed(spoken.text, TERMS) if spoken.topical else []
        no_violations(f"{spoken.where}:{v}" for v in found)


def test_the_list_is_consistent():
    for term in TERMS:
        assert set(term) <= {"en", "zh", "avoid", "gloss", "short", "said"}, term
    for key in ("en", "zh"):
        words = [term[key] for term in TERMS]
        assert len(words) == len(set(words)), f"an {key} word twice"
    words = {term["zh"] for term in TERMS}
    for term in TERMS:
        for variant in term["avoid"]:
            inside = {word for word in words if variant in word and variant != word}
            assert not inside, f"{variant} is refused and a part of {inside}"


SMALL = [
    {"en": "normalization", "zh": "归一化", "avoid": ["规范化", "正则化"]},
    {"en": "layer normalization", "zh": "层归一化", "avoid": []},
    {"en": "regularization", "zh": "正则化", "avoid": []},
    {"en": "Transformer", "zh": "Transformer", "avoid": ["变压器"]},
    {"en": "residual stream", "zh": "残差流", "avoid": [], "gloss": True},
    {"en": "LayerNorm", "zh": "LayerNorm", "avoid": [], "short": "LN"},
    {"en": "key", "zh": "键", "avoid": [], "short": "K"},
    {"en": "warm-up", "zh": "预热", "avoid": [], "short": "warmup", "said": True},
]


def violations(text: str, terms: list[dict]) -> list[str]:
    return refused(text, terms) + unglossed(text, terms) + unspoken(text, terms)


@pytest.mark.parametrize(
    "text",
    [
        "归一化写成 `规范化` 也没人管代码。",
        "权重衰减是一种正则化（regularization），正则化不是归一化。",
        "残差流（residual stream）很宽，残差流不归一化。",
        "---\ntitle: 归一化\nalso: [规范化, 残差流, 正则化]\n---\n",
        "# 残差流 { #stream }\n\n残差流（即 Residual Stream）很宽。",
        "# 预热与 LN { #n }\n\n预热步数（warmup）很短，`LN` 与 Pre-LN 不同。",
        "LayerNorm（LN）有 *K* 个，LN 有查询和键（Q、K）两处，K 在后。",
        "$LN$ 与 [论文](https://example.org/LN) 说的 LayerNorm。",
    ],
)
def test_good(text):
    assert violations(text, SMALL) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("层规范化。", "1: 规范化, not 归一化"),
        ("第一行\n用正则化。", "2: 正则化, not 归一化"),
        ("变压器模型。", "1: 变压器, not Transformer"),
        (
            "残差流很宽。残差流（residual stream）。",
            "1: first 残差流 lacks （residual stream）",
        ),
        ("| 残差流 |", "1: first 残差流 lacks （residual stream）"),
        ("先看 LN。\n\nLayerNorm（LN）。", "1: first use lacks LayerNorm（LN）"),
        ("LayerNorm\n有 LN。", "2: first use lacks LayerNorm（LN）"),
        ("Q 和 K 都要。", "1: first use lacks 键（K）"),
        ("要预热。预热（warmup）。", "1: first use lacks 预热（warmup）"),
        ("| warmup |", "1: first use lacks 预热（warmup）"),
        ("---\ntitle: 规范化\n---\n", "2: 规范化, not 归一化"),
    ],
)
def test_bad(text, says):
    found = violations(text, SMALL)
    assert any(v.startswith(says) for v in found)
