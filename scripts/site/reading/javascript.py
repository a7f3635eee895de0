"""JavaScript run during the build, in V8."""

import atexit
from functools import cache


@cache
def running(code: str):
    """A context in which the code has run, closed when the build ends."""
    from py_mini_racer import MiniRacer

    context = MiniRacer()
    # Left to the interpreter's teardown, its thread now and then never ends.
    atexit.register(context.close)
    context.eval(code)
    return context


# The last to run: a context that a cache keeps until teardown complains there.
atexit.register(running.cache_clear)
