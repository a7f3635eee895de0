"""The interview section: docs/data/interview/<group>.yml, docs/data/quiz/<group>.yml.

A question has a level, a 30-second answer, the full answer, a weak answer and what is
wrong with it, a follow-up and its answer, and its evidence. A quiz item has options
with an explanation each; where it is about behaviour, a function of
tests/interview/quiz_<group>.py finds out which options hold.
"""

import re
from pathlib import Path

from scripts.site.data import bilingual
from scripts.site.reading.source import LANGUAGES, ROOT

QUESTIONS = ROOT / "docs" / "data" / "interview"
QUIZ = ROOT / "docs" / "data" / "quiz"
KEYS = ROOT / "tests" / "interview"
GROUPS = (  # in the order of the site
    "batch-and-layer-norm",
    "rms-norm",
    "placement-and-depth",
    "deep-recipes",
    "attention",
    "numerics",
    "kernels",
    "distributed",
    "model-families",
    "debugging",
    "frontier",
    "coding",
)
LEVELS = ("screening", "engineer", "researcher")
TEXTS = ("question", "short", "answer")
PAIRS = {"weak": ("said", "wrong"), "follow_up": ("question", "answer")}
FIELDS = {"id", "level", "evidence", *TEXTS, *PAIRS}
OPTIONAL = {"top", "asked", "opener"}  # what to say first: of those on the sheet
QUIZ_FIELDS = {"id", "level", "question", "options", "answer", "evidence"}
QUIZ_OPTIONAL = {"check"}
KINDS = ("claim", "cite", "record")  # of evidence besides a page's section
QUOTED = re.compile(r"""["“'‘「].*["”'’」]""", re.DOTALL)
# A text whose first sentence asks.
ASKS = re.compile(r"[^.?!。？！]*(?:[?](?=\s|$)|？)")


def questions(group: str) -> list[dict]:
    """The questions of a group. SourceError, one line, for one out of form."""
    return _rows(QUESTIONS / f"{group}.yml", problem_of_question)


def quiz(group: str) -> list[dict]:
    """The quiz items of a group. SourceError, one line, for one out of form."""
    return _rows(QUIZ / f"{group}.yml", problem_of_item)


def _rows(path: Path, problem_of) -> list[dict]:
    return bilingual.read(path, problem_of) if path.is_file() else []


def problem_of_question(row) -> str | None:
    """What is out of form in a question, None if nothing is."""
    return (
        _problem_of_fields(row, FIELDS, OPTIONAL)
        or next((p for t in TEXTS if (p := bilingual.problem_of_text(t, row[t]))), None)
        or next((p for name in PAIRS if (p := _problem_of_pair(name, row[name]))), None)
        or _problem_of_evidence(row["evidence"])
        or bilingual.problem_of_addresses("asked", row.get("asked"))
        or _problem_of_opener(row)
    )


def texts(row: dict) -> dict[str, dict]:
    """All that a question says, ``{"weak.said": {"en": ..., "zh": ...}}``."""
    pairs = {f"{name}.{of}": row[name][of] for name in PAIRS for of in PAIRS[name]}
    fields = (*TEXTS, "opener") if "opener" in row else TEXTS
    return {field: row[field] for field in fields} | pairs


def _problem_of_opener(row: dict) -> str | None:
    if bool(row.get("top")) != ("opener" in row):
        return "top and opener come together"
    return (
        bilingual.problem_of_text("opener", row["opener"]) if row.get("top") else None
    )


def _problem_of_pair(name: str, pair) -> str | None:
    """What is out of form in a weak answer or a follow-up, None if nothing is."""
    first, second = PAIRS[name]
    if not isinstance(pair, dict) or set(pair) != {first, second}:
        return f"{name} is not {first} and {second}"
    for field in (first, second):
        if problem := bilingual.problem_of_text(f"{name}.{field}", pair[field]):
            return problem
    for language in LANGUAGES:
        if QUOTED.match(pair[first][language]):
            return f"{name}.{first} stands in quotation marks ({language})"
        if name == "follow_up" and ASKS.match(pair[second][language]):
            return f"{name}.{second} begins with a question ({language})"
    return None


def problem_of_item(row) -> str | None:
    """What is out of form in a quiz item, None if nothing is."""
    if problem := _problem_of_fields(row, QUIZ_FIELDS, QUIZ_OPTIONAL):
        return problem
    if problem := bilingual.problem_of_text("question", row["question"]):
        return problem
    options = row["options"]
    if not isinstance(options, dict) or not 3 <= len(options) <= 5:
        return "has not three to five options"
    for name, option in options.items():
        if not bilingual.ID.fullmatch(str(name)):
            return f"option {name} is not lower-case words joined by hyphens"
        if not isinstance(option, dict) or set(option) != {"text", "why"}:
            return f"option {name} has not text and why"
        for field in ("text", "why"):
            if problem := bilingual.problem_of_text(
                f"option {name}: {field}", option[field]
            ):
                return problem
    if not isinstance(row["answer"], str) or row["answer"] not in options:
        return "answer is none of the options"
    return _problem_of_evidence(row["evidence"])


def _problem_of_fields(row, fields: set, optional: set) -> str | None:
    if problem := bilingual.problem_of_fields(row, fields, optional):
        return problem
    if row["level"] not in LEVELS:
        return f"level is none of {', '.join(LEVELS)}"
    return None


def _problem_of_evidence(evidence) -> str | None:
    if not isinstance(evidence, list) or not evidence:
        return "evidence is not a list of at least one"
    for entry in evidence:
        kind, colon, _ = str(entry).partition(":")
        if not (colon and kind in KINDS) and ".md" not in str(entry):
            return f"evidence {entry!r} is no page's section, claim:, cite: or record:"
    return None


def bank() -> list[tuple[str, dict]]:
    """(group, question) of the whole bank."""
    return [(group, row) for group in GROUPS for row in questions(group)]


def items() -> list[tuple[str, dict]]:
    """(group, item) of the whole quiz."""
    return [(group, row) for group in GROUPS for row in quiz(group)]
