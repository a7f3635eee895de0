"""Code runs once, and its context is closed when the process ends."""

import atexit

import pytest
from py_mini_racer import JSEvalException

from scripts.site.reading import javascript


def test_a_context_keeps_what_ran_in_it(monkeypatch):
    closed = []
    monkeypatch.setattr(atexit, "register", closed.append)
    javascript.running.cache_clear()
    context = javascript.running("var runs = 0; function ran() { return ++runs; }")
    assert context.eval("ran()") == 1
    again = javascript.running("var runs = 0; function ran() { return ++runs; }")
    assert again is context and again.eval("ran()") == 2
    assert closed == [context.close]
    closed[0]()
    javascript.running.cache_clear()
    with pytest.raises(JSEvalException):
        javascript.running("no such thing here")
