"""The interview section: docs/data/interview/<group>.yml, docs/data/quiz/<group>.yml.

A question has a level, a 30-second answer, the full answer, a weak answer and what
makes it weak, the follow-up, and its evidence. A quiz item has options with an
explanation each; where it is about behaviour, a function of
tests/interview/quiz_<group>.py finds out which options hold.
"""

import re
from functools import cache
from pathlib import Path

from scripts.site.source import LANGUAGES, ROOT, SourceError, read_yaml

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
ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
TEXTS = ("question", "short", "answer", "weak", "follow_up")
FIELDS = {"id", "level", "evidence", *TEXTS}
OPTIONAL = {"top"}
QUIZ_FIELDS = {"id", "level", "question", "options", "answer", "evidence"}
QUIZ_OPTIONAL = {"check"}
KINDS = ("claim", "cite", "record")  # of evidence besides a page's section


def questions(group: str) -> list[dict]:
    """The questions of a group. SourceError, one line, for one out of form."""
    return _rows(QUESTIONS / f"{group}.yml", problem_of_question)


def quiz(group: str) -> list[dict]:
    """The quiz items of a group. SourceError, one line, for one out of form."""
    return _rows(QUIZ / f"{group}.yml", problem_of_item)


def _rows(path: Path, problem_of) -> list[dict]:
    stamp = path.stat().st_mtime_ns if path.is_file() else None
    return [] if stamp is None else _read(path, stamp, problem_of)


@cache
def _read(path: Path, stamp: int, problem_of) -> list[dict]:
    found = read_yaml(path) or []
    for row in found:
        if problem := problem_of(row):
            name = row.get("id", "?") if isinstance(row, dict) else "?"
            raise SourceError(f"{path.relative_to(ROOT)}: {name}: {problem}")
    return found


def problem_of_question(row) -> str | None:
    """What is out of form in a question, None if nothing is."""
    return (
        _problem_of_fields(row, FIELDS, OPTIONAL)
        or next((p for t in TEXTS if (p := _problem_of_text(t, row[t]))), None)
        or _problem_of_evidence(row["evidence"])
    )


def problem_of_item(row) -> str | None:
    """What is out of form in a quiz item, None if nothing is."""
    if problem := _problem_of_fields(row, QUIZ_FIELDS, QUIZ_OPTIONAL):
        return problem
    if problem := _problem_of_text("question", row["question"]):
        return problem
    options = row["options"]
    if not isinstance(options, dict) or not 3 <= len(options) <= 5:
        return "has not three to five options"
    for name, option in options.items():
        if not ID.fullmatch(str(name)):
            return f"option {name} is not lower-case words joined by hyphens"
        if not isinstance(option, dict) or set(option) != {"text", "why"}:
            return f"option {name} has not text and why"
        for field in ("text", "why"):
            if problem := _problem_of_text(f"option {name}: {field}", option[field]):
                return problem
    if row["answer"] not in options:
        return "answer is none of the options"
    return _problem_of_evidence(row["evidence"])


def _problem_of_fields(row, fields: set, optional: set) -> str | None:
    if not isinstance(row, dict):
        return "is no mapping"
    if missing := fields - set(row):
        return f"no {', '.join(sorted(missing))}"
    if unknown := set(row) - fields - optional:
        return f"unknown field {', '.join(sorted(unknown))}"
    if not ID.fullmatch(str(row["id"])):
        return "id is not lower-case words joined by hyphens"
    if row["level"] not in LEVELS:
        return f"level is none of {', '.join(LEVELS)}"
    return None


def _problem_of_text(field: str, text) -> str | None:
    if not isinstance(text, dict) or set(text) != set(LANGUAGES):
        return f"{field} is not one text a language"
    if not all(isinstance(words, str) and words.strip() for words in text.values()):
        return f"{field} is empty or no text"
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
