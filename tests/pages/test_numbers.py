"""A number that a reader sees was measured (a fact), is cited, or is named here.

numbers.py says what counts as a number, site_texts.py what readers see beside pages,
numbers.yml what is free and why.
"""

import re
from functools import cache

import pytest

from scripts.site.reading import source
from scripts.site.reading.files import read_yaml
from scripts.site.reading.source import ROOT
from tests.pages import numbers, site_texts
from tests.pages.page_prose import (
    CITE,
    CODE,
    EN,
    FACT,
    FORMULA,
    LABS,
    ZH,
    Page,
    paragraphs,
    plain,
)

PAGES = [*ZH.values(), *EN.values(), *LABS]
ALLOWED = read_yaml(ROOT / "tests/pages/numbers.yml")
TITLE = re.compile(r"\]\([^)\s]+ +[\"'](.+?)[\"']\)")
ATTRIBUTE = re.compile(
    r"<[^<>]*?\b(?:alt|title|aria-label|placeholder)=(?:\"([^\"]*)\"|'([^']*)')"
)
UNIT_OF_COLUMN = re.compile(
    r"[(（,，] ?(?:%|[mnµμ]?s|毫秒|微秒|秒|倍|×|x|"
    r"[KMGT]i?B(?:/s)?|T?FLOPS|tokens?/s) ?[)）]?$"
    r"|^(?:time|speed-?up|throughput|latency|memory|用时|耗时|加速比|吞吐|延迟|显存)\b",
    re.IGNORECASE,
)


def violations(text: str, proof=frozenset(), whole: bool = False) -> list[str]:
    """'line: what' for each number that nobody measured or cited."""
    found = [
        f"{paragraph.line_of(offset)}: {number!r} is neither a fact nor cited"
        for paragraph in paragraphs(text)
        for offset, number in numbers.unproved(paragraph.text, proof, whole)
    ]
    body = source.without_fences(text)
    found += [
        f"{_line(body, match)}: {number!r} in a title"
        for pattern in (TITLE, ATTRIBUTE)
        for match in pattern.finditer(body)
        for _, number in numbers.unproved(next(filter(None, match.groups()), ""))
    ]
    return found + columns(text)


def _line(text: str, match: re.Match) -> int:
    return text.count("\n", 0, match.start()) + 1


def columns(text: str) -> list[str]:
    """Numbers in a table's column or row whose head names their unit."""
    found, head = [], None
    for number, line in enumerate(plain(text).splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.lstrip().startswith("|"):
            head = None
        elif head is None:
            head = [bool(UNIT_OF_COLUMN.search(cell)) for cell in cells]
        elif CITE not in line:
            of_row = bool(UNIT_OF_COLUMN.search(cells[0]))
            found += [
                f"{number}: {cell!r} in a column with a unit"
                for has_unit, cell in zip(head, cells, strict=False)
                if (has_unit or (of_row and cell != cells[0]))
                and re.search(r"\d", cell)
                and FACT not in cell
                and CODE not in cell
                and FORMULA not in cell
            ]
    return found


@cache
def shown(text: str) -> frozenset[float]:
    """The numbers in the code and the outputs that a page shows."""
    embeds = (fence.embed for fence in source.fences(text))
    return numbers.numbers_of(*(source.embedded(*embed) for embed in embeds if embed))


def unless_allowed(where: str, found: list[str]) -> list[str]:
    """What numbers.yml does not free in this place."""
    free = {
        str(number)
        for places in ALLOWED.values()
        for place, of in places.items()
        if where.startswith(place)
        for number in of
    }
    return [line for line in found if not any(repr(n) in line for n in free)]


@cache
def found_on(page: Page) -> list[str]:
    """What a page or a lab says without proof; its own code bears out decimals."""
    is_lab = page.path.endswith(".py")
    return violations(page.text, frozenset() if is_lab else shown(page.text))


def place_of(page: Page) -> str:
    return page.path.removesuffix(".md").removesuffix(".py")


@cache
def found_elsewhere() -> list[tuple[str, list[str]]]:
    """(place, what) of every text that no page holds."""
    everything = site_texts.everything()
    assert len(everything) > 3000
    return [
        (one.where, violations(one.text, numbers.numbers_of(one.proof), whole=True))
        for one in everything
        if not one.cited
    ]


def test_pages(spoken, no_violations):
    left = unless_allowed(place_of(spoken), found_on(spoken))
    no_violations(f"{spoken.where}:{line}" for line in left)


def test_what_no_page_holds(no_violations):
    no_violations(
        f"{where}: {line}"
        for where, found in found_elsewhere()
        for line in unless_allowed(where, found)
    )


def test_every_exception_is_needed(no_violations):
    """A number that nothing says any more leaves numbers.yml."""
    found = [(place_of(page), found_on(page)) for page in PAGES] + found_elsewhere()
    no_violations(
        f"{place}: nothing says {number}"
        for places in ALLOWED.values()
        for place, of in places.items()
        for number in of
        if not any(
            repr(number) in line
            for where, lines in found
            if where.startswith(place)
            for line in lines
        )
    )


REFUSED = [
    "It is 3x faster.",
    "It is 1.5× faster.",
    "It is 3 times as fast.",
    "It saves 12.5 % of the time.",
    "It saves 12 per cent.",
    "It takes 5 ms.",
    "It takes 17µs.",
    "It takes 3 seconds.",
    "It reads at 4.8 TB/s.",
    "It makes 120 tokens/s.",
    "It is faster by a factor of 7.8.",
    "The loss falls from 3.41 to 2.17.",
    "p < 0.01.",
    "| kernel | 5 ms |",
    "## Why 2x { #why }",
    '[see](page.md "3x faster, 40 %")',
    '<img src="a.png" alt="3x faster">',
    "One source says so [[ cite.a2020b ]]. It is 3x faster.",
    "One source says so [[ cite.a2020b ]]; ours takes 5 ms.",
    "它快 3 倍。",
    "它快3倍。",
    "省下 12.5% 的时间。",
    "高出 3 个百分点。",
    "用时 5 毫秒。",
    "显存 141 GB，带宽 4.8 TB/s。",
    "损失从 3.41 降到 2.17。",
    "百分之 5 的显存。",
]
FREE = [
    "float32 and bfloat16 are formats; fp8 has 8 bits.",
    "A 7B model with 4096 features, 32 layers and 1e-6 inside the root.",
    "Python 3.11 in 2026, torch 2.13.0, in the 1990s and the 2020s.",
    "It takes [[ facts.speed.ln ]] µs, [[ facts.speed.ratio ]] times as long.",
    "The paper reports 7 % to 64 % less time [[ cite.zhang2019rms ]].",
    "The code says `x * 2`, the formula $2x + 1$.",
    "A 3x3 kernel, 4096 × 4096 weights, a vector of 0s and 1s.",
    "An A100-80GB, an H100-SXM5-80GB and eq. 4 of section 3.",
    "Bars are the 95 % interval of the median.",
    "Section 4.2, Llama 3.1, Qwen2.5, SD 3.5 and Table 2.",
    "AdamW with weight decay 0.1 and a learning rate of 0.002.",
    "A model of 2.7 billion parameters.",
    "It doubles the traffic; half of the features are zero.",
    "横线是中位数的 95% 区间。",
    "占一步的 [[ facts.speed.share ]]%，快 [[ facts.speed.x ]] 倍。",
    "学习率为 0.002，权重衰减 0.1。",
    "27 亿参数，1.25 亿参数。",
    "见 4.2 节、表 2。四的倍数，成倍增长，整数倍。",
]


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text):
    assert violations(text)


@pytest.mark.parametrize("text", FREE)
def test_free(text):
    assert violations(text) == []


@pytest.mark.parametrize("head", ["time (ms)", "bandwidth, GB/s", "用时（毫秒）"])
def test_a_unit_in_the_head_of_a_table(head):
    table = f"| norm | {head} |\n|---|---|\n| LayerNorm | 5 |\n"
    assert violations(table) == ["3: '5' in a column with a unit"]
    assert not violations(table.replace("5", "[[ facts.a.b ]]"))
    assert not violations(table.replace("5", "5 [[ cite.a2020b ]]"))
    assert not violations(table.replace(head, "layers"))


@pytest.mark.parametrize(
    ("text", "proof", "whole", "free"),
    [
        ("It is 0.71.", "x == 0.7071", False, True),
        ("It is 0.72.", "x == 0.7071", False, False),
        ("It is 0.004 %.", "3.9e-5 < share", False, True),
        ("It saves 40 %.", "share == 0.4", False, True),
        ("It saves 40 %.", "features = 40", False, False),
        ("A mean of 6.7 billion.", "6_738_415_616", False, True),
        ("It is 3 times as large.", "3", False, False),
        ("It is 3 times as large.", "assert y == 3 * x", True, True),
    ],
)
def test_what_code_bears_out(text, proof, whole, free):
    assert (violations(text, numbers.numbers_of(proof), whole) == []) == free


def test_the_line_is_that_of_the_number():
    text = "---\ntitle: T\n---\n\nFirst line,\nthen 3x\nfaster.\n"
    assert violations(text) == ["6: '3x' is neither a fact nor cited"]
