"""V8 for tests: a context that is gone when its block ends, whoever still names it."""

import contextlib
import weakref


@contextlib.contextmanager
def context(code: str, old: str = "", new: str = ""):
    """A context in which the code has run, the one place of ``old`` reading ``new``."""
    from py_mini_racer import MiniRacer

    assert not old or code.count(old) == 1, code.count(old)
    with MiniRacer() as made:
        made.eval(code.replace(old, new) if old else code)
        # One that lives on until the interpreter ends complains there.
        yield weakref.proxy(made)
