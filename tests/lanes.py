"""What `make test` leaves to `make test-all`: see CONTRIBUTING, 'Tests'."""

from collections.abc import Collection, Iterable

import pytest


def quick_among(cases: Iterable, quick: Collection) -> list:
    """The cases of a test: those in ``quick`` run in both lanes, others are slow."""
    return [
        case
        if case in quick
        else pytest.param(
            *(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow
        )
        for case in cases
    ]


def first_quick(*cases) -> list:
    """The first case runs in both lanes, the others are slow."""
    return quick_among(cases, cases[:1])
