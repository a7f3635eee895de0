"""``--attempt my_file.py``: the reader's function takes the place of the site's.

A suite that judges attempts names what it tests, ``JUDGED = layer_norm``, and its
tests take the fixture ``judge``: ``judge(check)`` runs a check on the function or
class of that name. With the option, only such tests run, and only for the names
that the reader's file defines.
"""

import pytest

from tests.snippets import judging

STORED = pytest.StashKey[object]()


def pytest_addoption(parser):
    parser.addoption("--attempt", metavar="FILE", help="judge this file's functions")


def pytest_configure(config):
    if attempt := config.getoption("attempt", None):
        path = config.invocation_params.dir / attempt
        config.stash[STORED] = load(path, attempt)


def load(path, shown: str):
    """The reader's file as a module. UsageError, one line, if it cannot be."""
    try:
        return judging.load(path, shown)
    except judging.AttemptError as error:
        raise pytest.UsageError(f"--attempt: {error}") from None


@pytest.hookimpl(trylast=True)  # after -k
def pytest_collection_modifyitems(config, items):
    if (attempt := config.stash.get(STORED, None)) is not None:
        shown = config.getoption("attempt")
        chosen = select(items, attempt, shown)
        left_out = [item for item in items if item not in chosen]
        config.hook.pytest_deselected(items=left_out)
        items[:] = chosen


def select(items, attempt, shown: str) -> list:
    """The tests that judge what the file defines. UsageError if there are none."""
    able = [item for item in items if "judge" in getattr(item, "fixturenames", ())]
    names = sorted({_judged(item) for item in able})
    if not names:
        raise pytest.UsageError("--attempt: no selected test judges an attempt")
    chosen = [item for item in able if judging.found(attempt, _judged(item))]
    if not chosen:
        raise pytest.UsageError(f"--attempt: {shown} defines no {' or '.join(names)}")
    return chosen


def _judged(item) -> str:
    return item.module.JUDGED.__name__


@pytest.fixture
def judge(request):
    """Runs a check on the site's implementation, or on the reader's."""
    attempt = request.config.stash.get(STORED, None)
    name = request.module.JUDGED.__name__

    def judge(check) -> None:
        if attempt is None:
            check(request.module.JUDGED)
            return
        if wrong := judging.problems(attempt, name, check):
            lines = [line for line, _ in wrong]
            pytest.fail("\n".join(lines), pytrace=False)

    return judge
