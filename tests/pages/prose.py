"""What no sentence of the site says: the rules of prose.yml, and the Chinese terms."""

import re
from dataclasses import dataclass
from pathlib import Path

from scripts.site.reading.files import read_yaml
from tests.pages.page_prose import CODE, FACT, FORMULA, paragraphs

PARTS = {
    "HAN": r"[\u3400-\u9fff]",
    "LATIN": rf"[A-Za-z0-9\u0370-\u03ff{CODE}{FORMULA}{FACT}]",
    "WIDE": "，。：；（）？！、“”《》",
    "FACT": FACT,
}

Parts = list[tuple[int, str]]


@dataclass(frozen=True)
class Rule:
    """A pattern that is refused, and sentences that show what it refuses."""

    rule: str
    find: re.Pattern
    without: re.Pattern
    language: str
    raw: bool
    bad: list[str]
    good: list[str]

    def violations(self, text: str, prose: Parts | None = None) -> list[str]:
        """'line: rule: what' for each place of a text, whose prose may be given."""
        prose = prose_of(text) if prose is None else prose
        return [
            f"{first + words.count(chr(10), 0, hit.start())}: {self.rule}: {hit[0]!r}"
            for first, part in ([(1, text)] if self.raw else prose)
            for words in [self.without.sub("", part)]
            for hit in self.find.finditer(words)
        ]


def prose_of(text: str) -> Parts:
    """(line, text) of each paragraph, without code and formulas."""
    return [(paragraph.line, paragraph.text) for paragraph in paragraphs(text)]


def _pattern(pieces: str | list[str]) -> re.Pattern:
    text = "".join(pieces)
    return re.compile(re.sub(r"\{(\w+)\}", lambda part: PARTS[part[1]], text))


RULES = [
    Rule(
        row["rule"],
        _pattern(row["find"]),
        _pattern(row.get("except", "(?!)")),
        row.get("in", ""),
        row.get("raw", False),
        row["bad"],
        row.get("good", []),
    )
    for row in read_yaml(Path(__file__).with_name("prose.yml"))
]


def violations(text: str, language: str) -> list[str]:
    """'line: rule: what' for each place that a rule of the language refuses."""
    prose = prose_of(text)
    return [
        line
        for rule in RULES
        if rule.language in ("", language)
        for line in rule.violations(text, prose)
    ]
