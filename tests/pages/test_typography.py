"""How Chinese pages are set: spaces, full-width punctuation, 你."""

import re

import pytest

from scripts.site.reading.source import without_fences
from tests.pages.reading import CITE, CODE, FACT, FORMULA, paragraphs

HAN = r"[\u3400-\u9fff]"
LATIN = rf"[A-Za-z0-9\u0370-\u03ff{CODE}{FORMULA}{FACT}]"
WIDE = "，。：；（）？！、“”《》"
RULES = {
    "no space between Chinese and Latin, a digit, code or a formula": (
        rf"{HAN}{LATIN}|{LATIN}{HAN}"
    ),
    "space beside full-width punctuation": (
        rf"(?<=[^\s|]) +[{WIDE}]|[{WIDE}] +(?=[^\s|])"
    ),
    "half-width punctuation": (
        rf"{HAN} ?[,;:?!(]|{HAN}[.)]|(?<=\S)[,;:?!] ?{HAN}|[()]{HAN}|\( {HAN}"
    ),
    "straight quotation mark": rf'{HAN}"|"{HAN}',
    "您, not 你": "您",
    "two spaces": r"(?<=[^\s|]) {2,}(?=[^\s|])",
    "line break inside Chinese text (shows as a space)": (
        rf"(?:{HAN}|[{WIDE}])\n(?={HAN}|[{WIDE}])"
    ),
}
RULES = {words: re.compile(pattern) for words, pattern in RULES.items()}
SHOWN = {CODE: "`…`", FORMULA: "$…$", FACT: "[[…]]", CITE: "[[…]]", "\n": "⏎"}


# CommonMark leaves such asterisks as they are: notebooks and labs show them.
BOLD = re.compile(rf"\*\*[^*\n]+[{WIDE}]\*\*(?=[^\s{WIDE}])")


def violations(text: str) -> list[str]:
    """'line: what' for each place that is set against the rules."""
    bold = [
        f"{number}: bold ends in punctuation: {match[0]}"
        for number, line in enumerate(without_fences(text).splitlines(), 1)
        for match in BOLD.finditer(line)
    ]
    return bold + [
        f"{paragraph.line_of(match.start())}: {words}: {around(paragraph.text, match)}"
        for paragraph in paragraphs(text)
        for words, pattern in RULES.items()
        for match in pattern.finditer(paragraph.text)
    ]


def around(text: str, match: re.Match) -> str:
    piece = text[max(0, match.start() - 5) : match.end() + 5]
    return "".join(SHOWN.get(character, character) for character in piece)


def test_pages(spoken, obeyed):
    if spoken.lang == "zh":
        obeyed(f"{spoken.where}:{v}" for v in violations(spoken.text))


@pytest.mark.parametrize(
    "text",
    [
        "用 RMSNorm 代替 LayerNorm，省下 `mean` 与 $\\mu$ 的计算。",
        "增益 γ 初始为 1，共 [[ facts.a.b ]] 个（见[这里](x.md#y)）。",
        "**归一化**（normalization）：除以 *均方根*。",
        "结论见 [[ cite.a2020b ]]。",
        "1. 第一项，",
        "| 名称 | （单位） | `f(x)` |\n|---|---|---|\n| 值 | 1.5 | 3:4 |",
        '!!! note "注意"\n    正文。',
        "这是 f(x) 的值，比例为 3:4，约 1,024 个。",
        "英文 a, b 与 c (d) 一起。",
        "## 公式（一） { #formula }",
        "他说“归一化”，她说《论文》。",
        "一行文字，用 RMSNorm\n代替 LayerNorm。",
        "[^1]: 脚注。",
        "**猜**：多少？\n\n**对。**",
    ],
)
def test_good(text):
    assert violations(text) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("用RMSNorm 代替。", "1: no space between"),
        ("用 RMSNorm代替。", "1: no space between"),
        ("共3 个。", "1: no space between"),
        ("用`mean` 计算。", "1: no space between"),
        ("均值$\\mu$ 为零。", "1: no space between"),
        ("共 [[ facts.a.b ]]个。", "1: no space between"),
        ("用**RMSNorm** 代替。", "1: no space between"),
        ("用[RMSNorm](x.md) 代替。", "1: no space between"),
        ("用 RMSNorm ，很快。", "1: space beside full-width"),
        ("很快， 很好。", "1: space beside full-width"),
        ("归一化 （见下）。", "1: space beside full-width"),
        ("很快,很好。", "1: half-width punctuation"),
        ("很快, 很好。", "1: half-width punctuation"),
        ("用 RMSNorm, 很快。", "1: half-width punctuation"),
        ("这样: 很快。", "1: half-width punctuation"),
        ("归一化(见下)。", "1: half-width punctuation"),
        ("归一化 (见下)。", "1: half-width punctuation"),
        ("很快.", "1: half-width punctuation"),
        ("快吗?", "1: half-width punctuation"),
        ('他说"归一化"。', "1: straight quotation mark"),
        ("第一行\n\n您好。", "3: 您, not 你"),
        ("**猜：**多少？", "1: bold ends in punctuation"),
        ("两个  空格。", "1: two spaces"),
        ("断在\n句中。", "1: line break inside"),
        ("断在，\n句中。", "1: line break inside"),
    ],
)
def test_bad(text, says):
    assert any(v.startswith(says) for v in violations(text)), violations(text)
