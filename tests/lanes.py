"""What `make test` leaves to `make test-all`: see CONTRIBUTING, 'Tests'."""

import pytest


def first_quick(*cases) -> list:
    """The cases of a test: the first runs in both lanes, the others are slow."""
    first, *others = cases
    return [
        first,
        *(
            pytest.param(
                *(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow
            )
            for case in others
        ),
    ]
