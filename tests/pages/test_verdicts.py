"""No page calls what it could not tell apart a tie: it says how little was seen.

'Not resolved' names the effect that the seeds would have detected; a difference of
times is 'within noise', with the noise floor. Tied embeddings and halves that are
rounded to even are no verdicts.
"""

import re

import pytest

from scripts.measure import records
from scripts.site.reading.source import ROOT, without_fences
from tests.pages.test_facts import texts

VERDICT = re.compile(
    r"\b(?:tie|ties|tied|would(?: most likely)? have shown)\b|平手|打平|真差|差到",
    re.IGNORECASE,
)
OTHER = re.compile(  # what else is tied, or ties
    r"""\btied\ (?:embeddings?|weights?|tensors?|(?:output\ )?head|to)
      | (?:stay|head,|then)\ tied
      | ties\ (?:the|them)\b | tie\ them\b
      | (?:near|nearly)[- ]ties? | ties?\ (?:go|goes|and\ goes)\ to\ the\ even
      | (?:up\ to|into|so)\ \[?ties\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
DATA = sorted(
    path
    for path in (ROOT / "docs/data").rglob("*.yml")
    if path.name != "terms.yml"  # it lists the words to avoid
)


def violations(text: str) -> list[str]:
    """'line: what' for each verdict that calls two things a tie."""
    return [
        f"{number}: {match[0]!r} as a verdict: say 'not resolved' or 'within noise'"
        for number, line in enumerate(text.splitlines(), 1)
        for match in VERDICT.finditer(OTHER.sub("", line))
    ]


def everything() -> dict[str, list[str]]:
    found = {}
    for path in (*sorted((ROOT / "docs").glob("[ez][nh]/pages/**/*.md")), *DATA):
        text = path.read_text(encoding="utf-8")
        text = without_fences(text) if path.suffix == ".md" else text
        found[path.relative_to(ROOT).as_posix()] = violations(text)
    for path in sorted((ROOT / "docs/labs").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        found[path.relative_to(ROOT).as_posix()] = violations(text)
    for name in records.experiments():
        module = records.load_experiment(name)
        words = dict(module.WORDS)
        if declared := getattr(module, "DESIGN", None):
            words |= {"design": dict(declared.words), "lacks": dict(declared.lacks)}
        said = "\n".join(texts(words).values())
        found[f"scripts/experiments/{name}.py"] = violations(said)
    return found


def test_no_verdict_is_a_tie(obeyed):
    found = everything()
    obeyed(f"{file}:{line}" for file, lines in found.items() for line in lines)


@pytest.mark.parametrize(
    "text",
    [
        "Tied embeddings, a head tied to the embedding; tied weights stay tied.",
        "The tie goes to the even one, and ties go to the even one.",
        "A near-tie flips; two logits nearly tie, up to ties in 16 bits.",
        "`register_autograd` ties the two together.",
        "Not resolved: a difference of 0.02 would most likely have been detected.",
    ],
)
def test_good(text):
    assert violations(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "At the end they tie.",
        "Its best cell ties with Pre-Norm's.",
        "The loss tied with Pre-Norm.",
        "A smaller difference is a tie.",
        "Ties: 4 of 6.",
        "三次都是平手。",
        "损失与 Pre-Norm 打平。",
        "打成平手。",
        "Not resolved: 0.02 would have shown.",
        "未分辨出差别：真差 0.02 的话多半看得出来。",
    ],
)
def test_bad(text):
    assert len(violations(f"First.\n\n{text}")) == 1
    assert violations(f"First.\n\n{text}")[0].startswith("3: ")
