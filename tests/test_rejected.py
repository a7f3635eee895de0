"""The page 'what our tests reject' lists exactly what they reject."""

from pathlib import Path

import pytest

from scripts.site.data import reference_lists
from scripts.site.reading.source import LANGUAGES, ROOT

SNIPPETS = ROOT / "tests" / "snippets"
LEAST = 120


def collected(items) -> dict[tuple[str, str], set[str]]:
    """{(page's folder, test module): variants} of the collected tests."""
    found: dict[tuple[str, str], set[str]] = {}
    for item in items:
        path = Path(item.path)
        if path.is_relative_to(SNIPPETS):
            suite = found.setdefault((path.parent.name, path.stem), set())
            if "known_wrong" in item.fixturenames:
                (variant,) = item.callspec.params.values()
                suite.add(variant.__name__)
    return found


def violations(data: dict, suites: dict[tuple[str, str], set[str]]) -> list[str]:
    found = []
    for (page, module), variants in sorted(suites.items()):
        listed = set(data.get(page, {}).get(module, {}))
        where = f"docs/data/rejected/{page}.yml: {module}"
        found += [f"{where}: {v} is not described" for v in sorted(variants - listed)]
        found += [f"{where}: no test rejects {v}" for v in sorted(listed - variants)]
    return found


def test_every_variant_is_described(request, obeyed):
    suites = collected(request.session.items)
    if not suites:
        pytest.skip("tests/snippets is not part of this run")
    obeyed(violations(reference_lists.rejected_data(), suites))


def test_described_suites_exist(obeyed):
    found = []
    for page, suites in reference_lists.rejected_data().items():
        paths = [SNIPPETS / page / f"{module}.py" for module in suites]
        found += [
            f"{p.relative_to(ROOT)} does not exist" for p in paths if not p.exists()
        ]
    obeyed(found)


def test_descriptions_are_in_both_languages(obeyed):
    found = []
    for page, suites in reference_lists.rejected_data().items():
        for module, variants in suites.items():
            for name, text in variants.items():
                problems = []
                if set(text) != set(LANGUAGES) or not all(text.values()):
                    problems = [": not one text a language"]
                where = f"{page}.yml: {module}: {name}"
                found += [f"{where}: {p.partition(': ')[2] or p}" for p in problems]
    obeyed(found)


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
