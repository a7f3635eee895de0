"""``--attempt my_file.py``: the reader's function takes the place of the site's.

A suite that judges attempts names what it tests, ``JUDGED = layer_norm``, and its
tests take the fixture ``judge``: ``judge(check)`` runs a check on the function or
class of that name. With the option, only such tests run, and only for the names
that the reader's file defines.
"""

import importlib.util
import sys
import traceback
from pathlib import Path

import pytest

STORED = pytest.StashKey[object]()


def pytest_addoption(parser):
    parser.addoption("--attempt", metavar="FILE", help="judge this file's functions")


def pytest_configure(config):
    if attempt := config.getoption("attempt", None):
        path = config.invocation_params.dir / attempt
        config.stash[STORED] = load(path, attempt)


def load(path: Path, shown: str):
    """The reader's file as a module. UsageError, one line, if it cannot be."""
    if not path.is_file():
        raise pytest.UsageError(f"--attempt: no such file: {shown}")
    spec = importlib.util.spec_from_file_location("attempt", path)
    if spec is None or spec.loader is None:
        raise pytest.UsageError(f"--attempt: {shown} is no Python file")
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise pytest.UsageError(
            f"--attempt: {shown} does not import: {reason}"
        ) from None
    finally:
        sys.dont_write_bytecode = before
    return module


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
    judging = [item for item in items if "judge" in getattr(item, "fixturenames", ())]
    names = sorted({item.module.JUDGED.__name__ for item in judging})
    if not names:
        raise pytest.UsageError("--attempt: no selected test judges an attempt")
    chosen = [i for i in judging if callable(found(attempt, i.module.JUDGED.__name__))]
    if not chosen:
        raise pytest.UsageError(f"--attempt: {shown} defines no {' or '.join(names)}")
    return chosen


def found(attempt, name: str):
    """What the reader's file itself defines under a name; imports do not count."""
    value = getattr(attempt, name, None)
    return value if getattr(value, "__module__", "") == attempt.__name__ else None


def raised(error: Exception, file: str) -> str:
    """What went wrong, and the reader's lines that led to it."""
    said = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [f"  line {f.lineno}: {f.line}" for f in frames if f.filename == file]
    if not lines:
        return f"does not take or return what the stub says: {said}"
    return "\n".join([said, *lines])


@pytest.fixture
def judge(request):
    """Runs a check on the site's implementation, or on the reader's."""
    attempt = request.config.stash.get(STORED, None)
    name = request.module.JUDGED.__name__

    def judge(check) -> None:
        if attempt is None:
            check(request.module.JUDGED)
            return
        problem = None
        try:
            check(found(attempt, name))
        except AssertionError as wrong:
            problem = f"{name}: {wrong}"
        except NotImplementedError:
            problem = f"{name} is not written yet"
        except Exception as error:
            problem = f"{name}: {raised(error, attempt.__file__)}"
        if problem:
            pytest.fail(problem, pytrace=False)

    return judge
