"""A number that a reader sees was measured (a fact), is cited, or is named here.

numbers.py says what counts as a number, site_texts.py what readers see beside pages,
numbers.yml what is free and why.
"""

import re
from functools import cache

from scripts.site.data.facts import NAME
from scripts.site.reading import source
from scripts.site.reading.files import read_yaml
from scripts.site.reading.source import ROOT
from tests.pages import numbers, site_texts
from tests.pages.reading import (
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
INLINE = re.compile(r"(`+)(?!`)(?P<code>.+?)(?<!`)\1(?!`)|\$(?P<formula>[^$\n]+)\$")
TEMPLATE = re.compile(r"\[%|\[=#|\[\[.*?\]\]", re.DOTALL)
UNIT_OF_COLUMN = re.compile(
    r"[(（,，] ?(?:%|[mnµμ]?s|毫秒|微秒|秒|倍|×|x|"
    r"[KMGT]i?B(?:/s)?|T?FLOPS|tokens?/s) ?[)）]?$"
    r"|^(?:time|speed-?up|throughput|latency|memory|用时|耗时|加速比|吞吐|延迟|显存)\b",
    re.IGNORECASE,
)
# Computed from numbers that the page cites, as it says.
COMPUTED = {
    "snippets/memory_bound/crossover.out": [
        "kernel in a CUDA graph",
        "eager call of a",
    ],
    "snippets/qk_norm_rope/published.out": ["MI308X", "MI35XX", "H20 "],
    "snippets/speed/claims.py:34": ["'10 to 40% faster': norms must have taken"],
    "snippets/speed/claims.out": ["% of the sum", "its matrix products", "'10 to 40%"],
}
# What is printed or said in code about a device or a speed is no measurement of ours.
DEVICE = re.compile(
    r"\b(?:[AHBV][1-9]00|MI\d{3}X?|RTX ?\d+|TPU(?: ?v\d)?|GB?[12]00|[LT]4)\b", re.ASCII
)
SPEED = re.compile(
    r"\d(?:\.\d+)? ?(?:[x×]|times|倍|%) ?(?:as fast|faster|slower|quicker|快|慢)"
    r"|(?:speed-?up|faster|slower|加速|快|慢)\D{0,12}\d"
    r"|\d ?(?:ms|µs|us|ns)\b(?! at)|(?<![a-z]\d)\d ?(?:tokens?|GB|TB|FLOPs?)/s"
    r"|\bmeasured\b(?! in inches).*\d",
    re.IGNORECASE,
)


def violations(text: str, proof=frozenset(), whole: bool = False) -> list[str]:
    """'line: what' for each number that nobody measured or cited."""
    found = []
    for paragraph in paragraphs(text):
        for offset, number in numbers.found(
            numbers.visible(paragraph.text), proof, whole
        ):
            line = paragraph.line_of(offset)
            found.append(f"{line}: {number!r} is neither a fact nor cited")
    body = source.without_fences(text)
    for pattern in (TITLE, ATTRIBUTE):
        for match in pattern.finditer(body):
            words = next(filter(None, match.groups()), "")
            for _, number in numbers.found(numbers.visible(words)):
                found.append(f"{_line(body, match)}: {number!r} in a title")
    for match in INLINE.finditer(body):
        inside = match["code"] or match["formula"]
        multiple = match["formula"] and inside.endswith("x")  # of a vector x
        if numbers.is_bare(inside) and not multiple:
            found.append(f"{_line(body, match)}: {inside!r} is a number, not code")
    for match in TEMPLATE.finditer(body):
        if not NAME.fullmatch(match[0]):
            found.append(f"{_line(body, match)}: {match[0]!r} is no name")
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


def claims_about_the_world(text: str) -> list[str]:
    """Lines of code's words or output that tell of a device or a speed."""
    return [
        line.strip()
        for line in text.splitlines()
        if (DEVICE.search(line) and re.search(r"\d\.\d|\d ?[%x×]", line))
        or SPEED.search(line)
    ]


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


def test_pages(spoken, obeyed):
    left = unless_allowed(place_of(spoken), found_on(spoken))
    obeyed(f"{spoken.where}:{line}" for line in left)


def test_what_no_page_holds(obeyed):
    obeyed(
        f"{where}: {line}"
        for where, found in found_elsewhere()
        for line in unless_allowed(where, found)
    )


def test_what_code_says(obeyed):
    texts = [*site_texts.of_code(), *site_texts.of_outputs(), *site_texts.of_scripts()]
    obeyed(
        f"{one.where}: {line!r} is no measurement of ours"
        for one in texts
        for line in claims_about_the_world(one.text)
        if not any(
            one.where.endswith(file) and part in line
            for file, parts in COMPUTED.items()
            for part in parts
        )
    )


PLACE = re.compile(r"[\w-]+/[\w./#-]+|[\w-]+\.yml")


def test_each_exception_is_of_one_place(obeyed):
    """No folder, no kind of data, nothing at all: a number is free where it is said."""
    obeyed(
        f"{place!r} is no place of a number"
        for places in ALLOWED.values()
        for place in places
        if not PLACE.fullmatch(place)
    )


def test_every_exception_is_needed(obeyed):
    """A number that nothing says any more leaves numbers.yml."""
    found = [(place_of(page), found_on(page)) for page in PAGES] + found_elsewhere()
    obeyed(
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
