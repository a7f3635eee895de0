"""Fixtures of all tests: laws hold, wrong variants are rejected, checks are counted.

What they count goes to the closing lines (tests/summary_line.py).
"""

import os
from collections.abc import Callable, Iterable

import pytest

pytest.register_assert_rewrite(
    "tests.experiment_checks"
)  # its checks say what they compared

# Before anything imports triton: kernels run on the CPU, in its interpreter.
os.environ["TRITON_INTERPRET"] = "1"


COLLECTED = pytest.StashKey[list]()  # all tests, those of the other lane too


@pytest.hookimpl(tryfirst=True)  # before what is marked slow is left out
def pytest_collection_modifyitems(session, items):
    session.stash[COLLECTED] = list(items)


class KnownWrong:
    """Proof that the checks of a method can fail: they reject wrong variants."""

    def __init__(self, properties: list[tuple[str, object]]):
        self._properties = properties

    def rejected_by(
        self, checks: Iterable[Callable], variant: Callable, name: str = ""
    ) -> None:
        """Fail unless one of ``checks`` rejects ``variant`` by an assertion.

        Any other exception propagates: a variant that crashes proves nothing.
        """
        name = name or getattr(variant, "__name__", repr(variant))
        for check in checks:
            try:
                check(variant)
            except (AssertionError, pytest.fail.Exception):
                self._properties.append(("known wrong", name))
                return
        pytest.fail(f"no check rejects the wrong variant {name}", pytrace=False)


class BrowserChecks:
    """Counts what the tests in a real browser looked at."""

    def __init__(self, properties: list[tuple[str, object]]):
        self._properties = properties

    def add(self, n: int = 1) -> None:
        self._properties.append(("browser checks", n))


@pytest.fixture
def known_wrong(request) -> KnownWrong:
    return KnownWrong(request.node.user_properties)


@pytest.fixture
def browser_checks(request) -> BrowserChecks:
    return BrowserChecks(request.node.user_properties)


@pytest.fixture
def no_violations():
    """Fail with the violations of a law, one a line, unless there are none."""

    def no_violations(violations: Iterable[str]) -> None:
        if lines := list(violations):
            pytest.fail("\n".join(lines), pytrace=False)

    return no_violations
