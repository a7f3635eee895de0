"""Which worker runs what: twins on one, and files of minutes before those of seconds.

For ``--dist loadfile``, which hands a worker one file after the other.
"""

import os
import re

import pytest

TWIN = re.compile(r"^docs/(zh|en)/")
# A worker that begins one of these as the last has the others wait for it.
BROWSER, SITE = "tests/browser/", "tests/site/"


def scope(test: str) -> str:
    """The file that a test belongs to, the same for twins: they share their runs."""
    return TWIN.sub("docs/", test.partition("::")[0])


def long_first(files: list[str]) -> list[str]:
    """The long files in their order: one that builds the site for the browser, those
    that need no browser meanwhile, the rest."""
    first, *browser = [file for file in files if file.startswith(BROWSER)] or [None]
    site = [file for file in files if file.startswith(SITE)]
    return [*([first] if first else []), *site, *browser]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """One more than there are cores: a worker waits a third of its time."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope(nodeid)

        def schedule(self) -> None:
            super().schedule()
            for file in reversed(long_first(list(self.workqueue))):
                self.workqueue.move_to_end(file, last=False)

    return Scheduling(config, log)
