"""The interview section: docs/data/interview/<group>.yml, docs/data/quiz/<group>.yml.

A question has a level, a 30-second answer, the full answer, a weak answer and what
makes it weak, the follow-up, and its evidence. A quiz item has options with an
explanation each; where it is about behaviour, a function of
tests/interview/quiz_<group>.py finds out which options hold.
"""

from pathlib import Path

from scripts.site import rows
from scripts.site.source import ROOT

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
TEXTS = ("question", "short", "answer", "weak", "follow_up")
FIELDS = {"id", "level", "evidence", *TEXTS}
OPTIONAL = {"top", "asked"}
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
    return rows.read(path, problem_of) if path.is_file() else []


def problem_of_question(row) -> str | None:
    """What is out of form in a question, None if nothing is."""
    return (
        _problem_of_fields(row, FIELDS, OPTIONAL)
        or next((p for t in TEXTS if (p := rows.problem_of_text(t, row[t]))), None)
        or _problem_of_evidence(row["evidence"])
        or rows.problem_of_addresses("asked", row.get("asked"))
    )


def problem_of_item(row) -> str | None:
    """What is out of form in a quiz item, None if nothing is."""
    if problem := _problem_of_fields(row, QUIZ_FIELDS, QUIZ_OPTIONAL):
        return problem
    if problem := rows.problem_of_text("question", row["question"]):
        return problem
    options = row["options"]
    if not isinstance(options, dict) or not 3 <= len(options) <= 5:
        return "has not three to five options"
    for name, option in options.items():
        if not rows.ID.fullmatch(str(name)):
            return f"option {name} is not lower-case words joined by hyphens"
        if not isinstance(option, dict) or set(option) != {"text", "why"}:
            return f"option {name} has not text and why"
        for field in ("text", "why"):
            if problem := rows.problem_of_text(
                f"option {name}: {field}", option[field]
            ):
                return problem
    if row["answer"] not in options:
        return "answer is none of the options"
    return _problem_of_evidence(row["evidence"])


def _problem_of_fields(row, fields: set, optional: set) -> str | None:
    if problem := rows.problem_of_fields(row, fields, optional):
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
