"""A verdict on a mechanism has its trivial rival beside it.

'Consistent' in a table's cell says that a run speaks for an explanation. A lower rate
or a longer run may do the same: the page prints that comparison, and it is named here.
"""

import re

import pytest

from scripts.site.reading.source import ROOT

VERDICTS = {
    "en": {"consistent", "confirmed", "refuted", "as predicted", "not as predicted"},
    "zh": {"相符", "证实", "被推翻", "与预测相同", "与预测不同"},
}
RIVALS = {  # page: the fact that holds the mechanism against the trivial rival
    "placement/warm-up": "warmup_causes.lower_rate_less_warm_up",
}


def violations(text: str, lang: str, page: str) -> list[str]:
    """'line: cell' for each verdict on a page that prints no rival."""
    rival = RIVALS.get(page)
    if rival and f"facts.{rival} ]]" in text:
        return []
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("|"):
            cells = {cell.strip().lower() for cell in re.split(r"(?<!\\)\|", line)}
            found += [f"{number}: {cell}" for cell in cells & VERDICTS[lang]]
    return found


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_pages(lang, obeyed):
    folder = ROOT / "docs" / lang / "pages"
    for path in sorted(folder.rglob("*.md")):
        name = path.relative_to(folder).with_suffix("").as_posix()
        text = path.read_text(encoding="utf-8")
        obeyed(f"{lang} {name}:{each}" for each in violations(text, lang, name))
        if name in RIVALS:
            assert f"facts.{RIVALS[name]} ]]" in text


def test_bad():
    row = "| Curvature | the Hessian | measure | not as predicted |"
    assert violations(row, "en", "placement/warm-up") == ["1: not as predicted"]
    assert violations("| 曲率 | 相符 |", "zh", "frontier/any") == ["1: 相符"]


def test_good():
    row = (
        "| Curvature | consistent |\n[[ facts.warmup_causes.lower_rate_less_warm_up ]]"
    )
    assert violations(row, "en", "placement/warm-up") == []
    assert violations("This is consistent with it.", "en", "frontier/any") == []
