"""The listings with their faulty lines replaced."""

import inspect
import linecache
import sys
import types

from tests.snippets.coding.cases import (
    close,
    expect,
    gains,
    numbers,
    with_parameters,
)

__all__ = ["close", "expect", "gains", "numbers", "repaired", "with_parameters"]


def repaired(listing, bug: str, fix: str):
    """The class or function of a listing, with the lines ``bug`` replaced by ``fix``.

    The indentation of the first line is added to all. ValueError unless ``bug``
    stands in the listing exactly once.
    """
    text = inspect.getsource(sys.modules[listing.__module__])
    old = bug.splitlines()
    here = [
        i
        for i, _ in enumerate(text.splitlines())
        if [s.strip() for s in text.splitlines()[i : i + len(old)]] == old
    ]
    if len(here) != 1:
        raise ValueError(f"{bug!r} stands {len(here)} times in {listing.__module__}")
    lines = text.splitlines()
    first = lines[here[0]]
    indent = first[: len(first) - len(first.lstrip())]
    lines[here[0] : here[0] + len(old)] = [indent + s for s in fix.splitlines()]
    name = f"repaired {listing.__module__}"
    module, code = types.ModuleType(name), "\n".join(lines) + "\n"
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    exec(compile(code, name, "exec"), vars(module))
    return getattr(module, listing.__name__)
