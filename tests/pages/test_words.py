"""Words that no page holds: filler, and what leaks from the workshop."""

import re

import pytest

from scripts.site.source import ROOT
from tests.pages.reading import paragraphs

SHOWN = ("snippets/*/*", "docs/data/*", "docs/labs/*.py", "docs/portal/*.html")

FILLER = re.compile(
    r"\b(?:it is worth (?:noting|mentioning)|it should be noted|note that|obviously"
    r"|needless to say|of course|simply|basically|as we all know|in conclusion|let us"
    r"|let's|delve|game.changer|cutting.edge|seamless(?:ly)?|powerful)\b"
    r"|值得注意的是|值得一提的是|需要注意的是|需要指出的是|众所周知|不难发现|不难看出"
    r"|显而易见|毫无疑问|不言而喻|总而言之|综上所述|让我们|赋能|遥遥领先",
    re.IGNORECASE,
)
LEAK = re.compile(
    r"(?<![\w.])/(?:work|root|tmp|home|usr|mnt)/|\b(?:TODO|FIXME|XXX|TBD|WIP)\b"
    r"|\blorem\b|待补充|待办|\blocalhost\b|\b127\.0\.0\.1\b|\bas an AI\b"
)


def violations(text: str) -> list[str]:
    """'line: what' for filler in the prose and leaks anywhere."""
    found = [
        f"{paragraph.line_of(match.start())}: filler {match[0]!r}"
        for paragraph in paragraphs(text)
        for match in FILLER.finditer(paragraph.text)
    ]
    return found + leaks(text)


def leaks(text: str) -> list[str]:
    return [
        f"{number}: {match[0]!r} leaks"
        for number, line in enumerate(text.splitlines(), 1)
        for match in LEAK.finditer(line)
    ]


def test_pages(spoken, obeyed):
    obeyed(f"{spoken.where}:{v}" for v in violations(spoken.text))


def test_other_files_that_readers_see(obeyed):
    files = [p for glob in SHOWN for p in sorted(ROOT.glob(glob)) if p.is_file()]
    obeyed(
        f"{path.relative_to(ROOT)}:{v}"
        for path in files
        for v in leaks(path.read_text(encoding="utf-8"))
    )


@pytest.mark.parametrize(
    "text",
    [
        "Note the axis: the mean is over features. The method is simple.",
        "Read [this](https://example.org/home/work/) and `torch.utils`.",
        "注意轴的方向。",
        "A course on norms; a note on that.",
    ],
)
def test_good(text):
    assert violations(text) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("First.\n\nNote that it is fast.", "3: filler 'Note that'"),
        ("It is worth noting.", "1: filler 'It is worth noting'"),
        ("You simply divide.", "1: filler 'simply'"),
        ("值得注意的是，它很快。", "1: filler '值得注意的是'"),
        ("众所周知。", "1: filler '众所周知'"),
        ("TODO", "1: 'TODO' leaks"),
        ("See /tmp/x.", "1: '/tmp/' leaks"),
        ("```text\n/root/x\n```", "2: '/root/' leaks"),
        ("Lorem ipsum, lorem.", "1: 'lorem' leaks"),
    ],
)
def test_bad(text, says):
    assert says in violations(text)
