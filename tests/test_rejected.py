"""The page 'what our tests reject' lists exactly what they reject."""

from pathlib import Path

import pytest

from scripts.site.data import known_wrong, reference_lists
from scripts.site.reading.source import LANGUAGES, ROOT, SourceError
from tests.conftest import COLLECTED

SNIPPETS = ROOT / "tests" / "snippets"
LEAST = 120


def collected(items) -> dict[tuple[str, str], set[str]]:
    """{(page's folder, suite): variants} of the collected tests."""
    found: dict[tuple[str, str], set[str]] = {}
    for item in items:
        path = Path(item.path)
        if path.is_relative_to(SNIPPETS):
            found.setdefault((path.parent.name, path.stem), set())
            if "known_wrong" in item.fixturenames:
                (variant,) = item.callspec.params.values()
                suite = getattr(variant, "suite", path.stem)
                found.setdefault((path.parent.name, suite), set()).add(variant.__name__)
    return found


def is_whole(page: str, suites) -> bool:
    """Whether all test modules of a page are among the collected ones."""
    modules = (SNIPPETS / page).glob("test_*.py")
    return all((page, path.stem) in suites for path in modules)


def violations(data: dict, suites: dict[tuple[str, str], set[str]]) -> list[str]:
    found = []
    whole = {
        page: set(data.get(page, {})) for page, _ in suites if is_whole(page, suites)
    }
    listed = {(page, suite) for page in whole for suite in whole[page]}
    for page, suite in sorted(listed | set(suites)):
        variants = suites.get((page, suite), set())
        listed = set(data.get(page, {}).get(suite, {}))
        where = f"docs/data/rejected/{page}.yml: {suite}"
        found += [f"{where}: {v} is not described" for v in sorted(variants - listed)]
        found += [f"{where}: no test rejects {v}" for v in sorted(listed - variants)]
    return found


def test_every_variant_is_described(request, no_violations):
    suites = collected(request.session.stash[COLLECTED])
    if not suites:
        pytest.skip("tests/snippets is not part of this run")
    no_violations(violations(reference_lists.rejected_data(), suites))


def test_described_suites_exist(no_violations):
    found = []
    for page, suites in reference_lists.rejected_data().items():
        for suite in suites:
            path = SNIPPETS / page / f"{suite}.py"
            if not suite.startswith("test_"):
                path = ROOT.joinpath("snippets", page, *suite.split(".")[:-1])
                path = path.with_suffix(".py")
            if not path.exists():
                found.append(f"{path.relative_to(ROOT)} does not exist")
    no_violations(found)


def test_changes_apply(no_violations):
    """Each stands exactly once in the snippet's text, and shows as changed lines."""
    found = []
    for page, suites in reference_lists.rejected_data().items():
        for suite, variants in suites.items():
            for name, change in reference_lists.changes(variants).items():
                try:
                    lines = known_wrong.difference(
                        *reference_lists.place(page, suite), change
                    )
                except SourceError as error:
                    found.append(f"{page}.yml: {suite}: {name}: {error}")
                else:
                    if not lines:
                        found.append(f"{page}.yml: {suite}: {name}: changes nothing")
    no_violations(found)


def test_descriptions_are_in_both_languages(no_violations):
    found = []
    for page, suites in reference_lists.rejected_data().items():
        for module, variants in suites.items():
            for name, text in variants.items():
                problems = []
                if set(text) - {"change"} != set(LANGUAGES) or not all(text.values()):
                    problems = [": not one text a language"]
                where = f"{page}.yml: {module}: {name}"
                found += [f"{where}: {p.partition(': ')[2] or p}" for p in problems]
    no_violations(found)


def test_enough():
    assert int(reference_lists.rejected_count()) >= LEAST


SUITES = {("rms_norm", "test_a"): {"one", "two"}}


def test_good():
    text = {"en": "x", "zh": "x"}
    assert not violations({"rms_norm": {"test_a": {"one": text, "two": text}}}, SUITES)


@pytest.mark.parametrize(
    ("listed", "says"),
    [(["one"], "two is not described"), (["one", "two", "3"], "no test rejects 3")],
)
def test_bad(listed, says):
    data = {"rms_norm": {"test_a": {name: {} for name in listed}}}
    (found,) = violations(data, SUITES)
    assert found.endswith(says)
