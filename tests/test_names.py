"""One name everywhere: a page, its snippets, an experiment and all that it makes."""

import re

import pytest

from scripts.site.reading.source import ROOT

WORD = r"[a-z][a-z0-9]*"
NUMBERED = r"(?!.*(?:part|step|example|listing|tutorial|snippet|block|demo)[_-]?\d)"
KEBAB, SNAKE = rf"{WORD}(-{WORD})*", rf"{WORD}(_{WORD})*"
SUBJECT_QUANTITY = rf"{WORD}(_{WORD})+"
MACHINE = r"[a-z0-9]+(-[a-z0-9]+)*"
FORMS = {  # by folder: what a file's path below it looks like
    "docs/zh/pages": rf"({KEBAB}/)?{KEBAB}\.(md|ipynb)",
    "docs/en/pages": rf"({KEBAB}/)?{KEBAB}\.(md|ipynb)",
    "docs/labs": rf"{SNAKE}\.py",
    "docs/records": rf"{MACHINE}/{SUBJECT_QUANTITY}\.json",
    "snippets": rf"({SNAKE}/{SNAKE}\.(py|out)|outputs\.json|ruff\.toml)",
    "scripts/experiments": rf"(({SUBJECT_QUANTITY}|{SNAKE}/{SNAKE})\.py"
    rf"|journals/{MACHINE}/{SUBJECT_QUANTITY}\.(small|medium|full)\.jsonl)",
    "tests/experiments": rf"(conftest|test_{SUBJECT_QUANTITY})\.py",
}


def misnamed(folder: str, paths: list[str]) -> list[str]:
    """Paths that are not of their folder's form, or carry a number for a name."""
    form = re.compile(NUMBERED + FORMS[folder])
    return [f"{folder}/{path}: misnamed" for path in paths if not form.fullmatch(path)]


def strangers(experiments: set[str], tests: set[str], records: set[str]) -> list[str]:
    """Experiments without a test; tests and records without an experiment."""
    found = [f"{name}: experiment without a test" for name in experiments - tests]
    found += [f"{name}: test without an experiment" for name in tests - experiments]
    found += [f"{name}: record without an experiment" for name in records - experiments]
    return sorted(found)


def files(folder: str) -> list[str]:
    found = (p.relative_to(ROOT / folder) for p in (ROOT / folder).rglob("*.*"))
    return sorted(p.as_posix() for p in found if "__pycache__" not in p.parts)


def stems(folder: str) -> set[str]:
    """Names of experiments; in a folder of its own, an experiment keeps its parts."""
    own = {"docs/records": files(folder)}
    paths = own.get(folder, [path for path in files(folder) if "/" not in path])
    found = {re.split(r"[/.]", path)[-2].removeprefix("test_") for path in paths}
    return found - {"conftest"}


@pytest.mark.parametrize("folder", FORMS)
def test_forms(folder, no_violations):
    no_violations(misnamed(folder, files(folder)))


def test_one_stem_for_an_experiment(no_violations):
    folders = ("scripts/experiments", "tests/experiments", "docs/records")
    no_violations(strangers(*map(stems, folders)))


def test_good():
    assert misnamed("snippets", ["rms_norm/reference.py", "a/float32_sum.out"]) == []
    assert misnamed("docs/zh/pages", ["index.md", "rmsnorm/rms-norm.md"]) == []
    assert misnamed("docs/records", ["nvidia-h200/init_gradients.json"]) == []
    assert misnamed("scripts/experiments", ["journals/m-1/a_b.full.jsonl"]) == []
    assert strangers({"a_b"}, {"a_b"}, set()) == []


@pytest.mark.parametrize(
    ("folder", "path"),
    [
        ("snippets", "rms-norm/reference.py"),
        ("snippets", "rms_norm/part2.py"),
        ("snippets", "rms_norm/01_reference.py"),
        ("snippets", "rms_norm/example_1.py"),
        ("snippets", "rms_norm/Reference.py"),
        ("snippets", "rms_norm/__init__.py"),
        ("snippets", "rms_norm/data.json"),
        ("docs/en/pages", "rmsnorm/rms_norm.md"),
        ("docs/en/pages", "a/b/c.md"),
        ("docs/records", "NVIDIA-H200/init_gradients.json"),
        ("docs/records", "nvidia-h200/gradients.json"),
        ("scripts/experiments", "gradients.py"),
        ("scripts/experiments", "journals/amd-epyc/init_gradients.jsonl"),
        ("scripts/experiments", "part_2/init.py"),
        ("tests/experiments", "init_gradients.py"),
    ],
)
def test_bad(folder, path):
    assert misnamed(folder, [path])


def test_strangers():
    assert strangers({"a_b"}, {"c_d"}, {"e_f"}) == [
        "a_b: experiment without a test",
        "c_d: test without an experiment",
        "e_f: record without an experiment",
    ]
