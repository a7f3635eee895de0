"""Which worker runs what: twins on one, and files of minutes before those of seconds.

For ``--dist loadfile``, which hands a worker one file after the other.
"""

import re

import pytest

TWIN = re.compile(r"^docs/(zh|en)/")
# A worker that begins one of these as the last has the others wait for it.
LONG = ("tests/browser/", "tests/site/")


def scope(test: str) -> str:
    """The file that a test belongs to, the same for twins: they share their runs."""
    return TWIN.sub("docs/", test.partition("::")[0])


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
            long = [file for file in self.workqueue if file.startswith(LONG)]
            for file in reversed(long):
                self.workqueue.move_to_end(file, last=False)

    return Scheduling(config, log)
