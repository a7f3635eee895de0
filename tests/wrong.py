"""Suites of known-wrong variants: the right code with a piece of its text changed."""

import ast
import linecache
import sys
import types
from collections.abc import Callable
from functools import cache, partial

import pytest

from scripts.site.data import known_wrong as changes_of_text
from scripts.site.data.reference_lists import REJECTED, changes, rejected_suites
from scripts.site.reading.source import ROOT
from tests.lanes import first_quick


def variant(right, name: str, changes: str | list[str]):
    """What ``right`` is when its snippet's text is changed.

    Snippets that import a changed one are compiled again with it, each under its own
    name, so that imports stay within the changed code.
    """
    right = _named(right)
    home = right.__module__.removeprefix("snippets.")
    title = f"{home.replace('.', '_')}_{name}"
    new = changes_of_text.changed(home, right.__name__, changes)
    copies: dict[str, types.ModuleType] = {}
    texts = changes_of_text.sources(home)
    for module in sorted(texts, key=lambda m: len(changes_of_text.sources(m))):
        text, full = new.get(module, texts[module]), f"snippets.{module}"
        used = {f"snippets.{m}" for m in changes_of_text.imports(text)}
        if module in new or used & copies.keys():
            copies[full] = _compiled(full, text, title, copies)
    return getattr(copies[right.__module__], right.__name__)


def _named(judged):
    """What has the module and the name: the function of a kernel."""
    return getattr(judged, "fn", judged)


def _compiled(module: str, text: str, title: str, copies: dict) -> types.ModuleType:
    text = text.replace('"norms::', f'"wrong_{title}::')  # operators of its own
    file, tree = f"<{module}: {title}>", ast.parse(text)
    if ROOT.joinpath(*module.split(".")).with_suffix(".out").exists():
        while not isinstance(tree.body[-1], ast.FunctionDef | ast.ClassDef):
            tree.body.pop()  # what the page shows of its use
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    sys.modules[file] = found = types.ModuleType(module)
    theirs = {each: sys.modules.get(each) for each in (*copies, module)}
    sys.modules.update({**copies, module: found})
    try:
        exec(compile(tree, file, "exec"), vars(found))
    finally:
        sys.modules.update(theirs)
    return found


_listed = cache(rejected_suites)


def variants(right, made: Callable | None = None, functions=()) -> list:
    """The wrong versions of ``right``, each with __name__, suite and make().

    They are the changes that docs/data/rejected has for it, and functions for what a
    change cannot say. ``made`` turns what is judged, unless it is one of the functions,
    into what the checks take.
    """
    named = _named(right)
    _, page, *rest = named.__module__.split(".")
    key = ".".join([*rest, named.__name__])
    listed = _listed(REJECTED / f"{page}.yml")
    makers = {function.__name__: lambda f=function: f for function in functions}
    for name, change in changes(listed.get(key, {})).items():
        wrong = partial(variant, right, name, change)
        makers[name] = (lambda w=wrong: made(w())) if made else wrong
    if not makers:
        raise ValueError(f"docs/data/rejected/{page}.yml has no changes for {key}")
    return [
        types.SimpleNamespace(__name__=name, suite=key, make=make)
        for name, make in makers.items()
    ]


def suite(right, checks: list[Callable], made=None, **kinds) -> tuple:
    """Two tests: ``right`` passes all checks, each of its wrong versions fails one.

    ``made`` turns what is judged into what the checks take; for the rest see
    ``variants``.
    """

    @pytest.mark.parametrize(
        "check", checks, ids=lambda c: getattr(c, "func", c).__name__
    )
    def test_right(check):
        check(made(right) if made else right)

    return test_right, rejects(right, checks, made, **kinds)


def rejects(right, checks: list[Callable], made=None, slow=False, **kinds) -> Callable:
    """A test of each wrong version of ``right``: one of the checks fails on it.

    ``slow``, for kernels, which take seconds each: `make test` judges the first alone.
    """
    known = variants(right, made, **kinds)
    known = first_quick(*known) if slow else known

    @pytest.mark.parametrize("wrong", known, ids=lambda wrong: wrong.__name__)
    def test_known_wrong(wrong, known_wrong):
        known_wrong.rejected_by(checks, wrong.make(), wrong.__name__)

    return test_known_wrong
