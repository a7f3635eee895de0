"""Words that no page holds: filler, and what leaks from the workshop."""

import re

import pytest

from scripts.site.reading.files import read_yaml
from scripts.site.reading.source import ROOT
from tests.pages.reading import FACT, paragraphs

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

# A norm is before, after or on something; a vector is large or small. A score may be
# behind another, a letter may stand for a number, and layers may stand in for others.
HOUSE = re.compile(
    r"\b(?:loud(?:er|est|ness)?|quiet(?:er|est)?)\b"
    r"|(?<!as it )(?<!as they )\b(?:stands?|stood)\b"
    r"(?! (?:in )?for\b| in elsewhere| out\b| still\b| upright| side by side)"
    rf"|(?<!{FACT} )(?<!\bis )(?<!\bwas )(?<!\bends )(?<!\bended )(?<!\bstays )"
    r"(?<!\bstayed )(?<!\blag )(?<!\blags )(?<!\bbyte )(?<!comes out )"
    r"\bbehind\b(?! it is\b|[.,;:]| at | with | in the )",
    re.IGNORECASE,
)


def house_words(text: str) -> list[str]:
    """'line: what' for our own figures of speech where English has plain words."""
    return [
        f"{paragraph.line_of(match.start())}: house word {match[0]!r}"
        for paragraph in paragraphs(text)
        for match in HOUSE.finditer(paragraph.text)
    ]


def english(part: object, key: str = "") -> list[str]:
    """Every text under a key ``en`` of a data file."""
    if isinstance(part, dict):
        return [text for name, inner in part.items() for text in english(inner, name)]
    if isinstance(part, list):
        return [text for inner in part for text in english(inner)]
    return [part] if key == "en" and isinstance(part, str) else []


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


def test_plain_english(spoken, obeyed):
    if spoken.lang == "en":
        obeyed(f"{spoken.where}:{v}" for v in house_words(spoken.text))


def test_plain_english_in_data(obeyed):
    texts = {
        (path, text)
        for path in (ROOT / "docs" / "data").rglob("*.yml")
        for text in english(read_yaml(path))
    }
    assert len(texts) > 1000
    obeyed(
        f"{path.relative_to(ROOT)}: {v.partition(': ')[2]} in {text[:60]!r}"
        for path, text in sorted(texts)
        for v in house_words(text)
    )


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


@pytest.mark.parametrize(
    "text",
    [
        "The argument holds as it stands: linear layers stand in for attention.",
        "*L* stands for depth. DyT ends behind RMSNorm, by little, and nGPT is behind.",
        "With [[ facts.a.b ]] nats per byte behind, averages lag behind the weights.",
        "`stands` and [this](behind.md#stands) are no prose.",
    ],
)
def test_plain(text):
    assert house_words(text) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("The norm stands after the sum.", "1: house word 'stands'"),
        ("Where does\nit stand?", "2: house word 'stand'"),
        ("A layer behind the norm.", "1: house word 'behind'"),
        ("Behind a ReLU it fails.", "1: house word 'Behind'"),
        ("| one loud feature |", "1: house word 'loud'"),
        ("The quieter head.", "1: house word 'quieter'"),
    ],
)
def test_house_words(text, says):
    assert says in house_words(text)


def test_english_of_data():
    rows = [{"id": "a", "en": "A."}, {"q": {"en": "B.", "zh": "乙。"}, "to": ["C."]}]
    assert english(rows) == ["A.", "B."]
