"""Each check of the ledger, run: the verdict of a row is what its cases come to."""

from importlib import import_module

import pytest

from scripts.site.data import claims

MODULES = {t: f"tests.claims.{claims.check_file(t).stem}" for t in claims.topics()}
pytest.register_assert_rewrite(*MODULES.values())
CHECKED = [(topic, row) for topic, row in claims.everything() if row.get("check")]


def verdict(cases: dict[str, bool]) -> str:
    """What a claim that holds in some cases and not in others comes to."""
    holds = {bool(each) for each in cases.values()}
    return {(True,): "holds", (False,): "wrong"}.get((*holds,), "holds-when")


def run(topic: str, row: dict) -> dict[str, bool]:
    return getattr(import_module(MODULES[topic]), claims.check_name(row))()


@pytest.mark.parametrize(
    ("topic", "row"), CHECKED, ids=[row["id"] for _, row in CHECKED]
)
def test_verdict(topic, row):
    cases = run(topic, row)
    assert cases
    if row["verdict"] != "open":
        assert verdict(cases) == row["verdict"], cases


@pytest.mark.parametrize(
    ("cases", "says"),
    [
        ({"a": True, "b": True}, "holds"),
        ({"a": False}, "wrong"),
        ({"a": True, "b": False}, "holds-when"),
    ],
)
def test_what_cases_come_to(cases, says):
    assert verdict(cases) == says
