"""The listings with their faulty lines replaced."""

from tests.snippets.coding.cases import (
    close,
    expect,
    gains,
    numbers,
    with_parameters,
)
from tests.wrong import variant

__all__ = ["close", "expect", "gains", "numbers", "repaired", "with_parameters"]


def repaired(listing, bug: str, fix: str):
    """The class or function of a listing, with ``fix`` for the lines ``bug``."""
    return variant(listing, "repaired", f"{bug} => {fix}")
