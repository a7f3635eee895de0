"""What the laws say of a tree: ``python -m tests.attacks.laws`` prints it as JSON.

Run in a copy of the tree it asks the copy's laws about the files named on its input.
"""

import json
import sys
from collections.abc import Callable, Iterable

import pytest

from scripts.site.reading import generated
from scripts.site.reading.source import ROOT
from tests import test_layers, test_length, test_names, test_policy
from tests.claims import test_ledger
from tests.measure import test_accept
from tests.pages import (
    test_blocks,
    test_facts,
    test_numbers,
    test_parity,
    test_references,
    test_snippets,
    test_structure,
    test_terms,
    test_typography,
    test_verdicts,
    test_words,
)
from tests.pages.reading import EN, LABS, ZH

Files = frozenset[str]


def ask(test: Callable, *given) -> list[str]:
    """What a test finds wrong, one a line; its last argument collects violations."""
    found: list[str] = []
    takes = test.__code__.co_varnames[: test.__code__.co_argcount]
    try:
        test(*given, *([found.extend] if takes[-1:] == ("obeyed",) else ()))
    except (Exception, pytest.fail.Exception) as error:
        found += [f"{type(error).__name__}: {error} {[str(g)[:90] for g in given]}"]
    return found


def pages(files: Files, labs: bool = False) -> list:
    found = [*ZH.values(), *EN.values(), *(LABS if labs else ())]
    return [page for page in found if page.where in files]


def within(files: Files, folder: str) -> list[str]:
    return sorted(file for file in files if file.startswith(folder))


def of_pages(*tests: Callable, labs: bool = True) -> Callable[[Files], list[str]]:
    return lambda files: [
        line for test in tests for p in pages(files, labs) for line in ask(test, p)
    ]


def numbers(files: Files) -> list[str]:
    found = of_pages(test_numbers.test_pages)(files)
    found += ask(test_numbers.test_what_no_page_holds)
    found += ask(test_numbers.test_each_exception_is_of_one_place)
    return found + ask(test_numbers.test_what_code_says)


def parity(files: Files) -> list[str]:
    found = ask(test_parity.test_same_pages)
    found += ask(test_parity.test_same_nav_and_every_page_in_it)
    for path in sorted(ZH.keys() & EN.keys()):
        if {ZH[path].where, EN[path].where} & files:
            found += ask(test_parity.test_twins, (ZH[path], EN[path]))
    for file in within(files, "docs/data/"):
        if (name := file.removeprefix("docs/data/")) in test_parity.FILES:
            found += ask(test_parity.test_data, name)
    return found


def facts(files: Files) -> list[str]:
    found = of_pages(test_facts.test_pages, labs=False)(files)
    for file in within(files, "docs/records/"):
        found += ask(test_facts.test_record, ROOT / file)
    return found


def filed(files: Files) -> list[str]:
    paths = [ROOT / file for file in within(files, "docs/records/")]
    return [line for path in paths for line in ask(test_accept.test_filed, path)]


def ledger(files: Files) -> list[str]:
    found = []
    of_row = [
        getattr(test_ledger, name)
        for name in (
            "test_numbers_of_a_verdict_are_checked_or_cited",
            "test_row_leads_somewhere",
            "test_row_reads_well",
        )
    ]
    of_check = [
        test_ledger.test_a_check_decides_its_verdict,
        test_ledger.test_a_check_is_what_its_label_says,
        test_ledger.test_what_a_reader_copies_is_complete,
    ]
    for topic, row in test_ledger.ROWS:
        test = f"tests/claims/test_{topic.replace('-', '_')}.py"
        if {f"docs/data/claims/{topic}.yml", test} & files:
            tests = of_row + (of_check if row.get("check") else [])
            found += [line for t in tests for line in ask(t, topic, row)]
    for topic in test_ledger.TOPICS:
        found += ask(test_ledger.test_rows_and_checks_belong_together, topic)
    return found


def words(files: Files) -> list[str]:
    found = of_pages(test_words.test_pages, test_words.test_plain_english)(files)
    found += ask(test_words.test_plain_english_in_data)
    return found + ask(test_words.test_other_files_that_readers_see)


def snippets(files: Files) -> list[str]:
    found, all_pages = [], [*ZH.values(), *EN.values()]
    for file in within(files, "snippets/"):
        name = file.removeprefix("snippets/")
        if name in test_snippets.PROGRAMS:
            found += ask(test_snippets.test_markers, name)
            found += [
                f"{file}: {line}"
                for line in asked_with(
                    test_snippets.test_shown_whole_and_in_order, name, all_pages
                )
            ]
    return found


def asked_with(test: Callable, *given) -> list[str]:
    """Of a test whose last argument is ``obeyed`` and others are fixtures."""
    return ask(lambda obeyed: test(*given, obeyed))


def policy(files: Files) -> list[str]:
    paths = [p for p in test_policy.WORKFLOWS if f".github/workflows/{p.name}" in files]
    found = [
        f"{p.name}: {line}"
        for p in paths
        for line in ask(test_policy.test_workflows, p)
    ]
    of_all = [
        test for name, test in vars(test_policy).items() if "versions_are" in name
    ]
    return [*found, *(line for test in of_all for line in ask(test))]


def layers(files: Files) -> list[str]:
    tests = (
        test_layers.test_arrows,
        test_layers.test_rooms,
        test_layers.test_snippets_import_what_was_shown_before,
    )
    return [line for test in tests for line in ask(test)]


LAWS: dict[str, Callable[[Files], list[str]]] = {
    "pages/test_numbers.py": numbers,
    "pages/test_parity.py": parity,
    "pages/test_blocks.py": of_pages(test_blocks.test_pages, labs=False),
    "pages/test_facts.py": facts,
    "pages/test_snippets.py": snippets,
    "pages/test_structure.py": of_pages(test_structure.test_pages, labs=False),
    "pages/test_terms.py": of_pages(test_terms.test_pages),
    "pages/test_typography.py": of_pages(test_typography.test_pages),
    "pages/test_verdicts.py": lambda _: ask(test_verdicts.test_no_verdict_is_a_tie),
    "pages/test_words.py": words,
    "pages/test_references.py": lambda _: ask(test_references.test_bibliography),
    "site/reading/test_generated.py": lambda _: generated.edited(),
    "measure/test_accept.py": filed,
    "claims/test_ledger.py": ledger,
    "test_policy.py": policy,
    "test_layers.py": layers,
    "test_length.py": lambda _: ask(
        test_length.test_each_experiment_is_short_and_holds_no_words
    ),
    "test_names.py": lambda _: [
        line
        for folder in test_names.FORMS
        for line in ask(test_names.test_forms, folder)
    ],
}


def problems(files: Iterable[str]) -> dict[str, list[str]]:
    """What each law finds wrong with these files, or with what it reads as a whole."""
    return {law: of(frozenset(files)) for law, of in LAWS.items()}


if __name__ == "__main__":
    print(json.dumps(problems(json.load(sys.stdin))))
