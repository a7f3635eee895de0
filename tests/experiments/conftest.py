"""Each file here is about one experiment, test_<name>.py.

It starts from that experiment's tiny run, and holds the tests below too, but for those
that it writes itself.
"""

import pytest

from scripts.measure.records import Record, load_experiment, rows_problem
from tests.experiment_checks import check_facts_and_words, draw, tiny_record
from tests.kernel_benchmark_checks import gpu_record


class File(pytest.Module):
    """A file with what every experiment is tested for."""

    def collect(self):
        for test in (test_steps_repeat_exactly, test_facts_and_words, test_plot):
            vars(self.obj).setdefault(test.__name__, test)
        return super().collect()


def pytest_pycollect_makemodule(module_path, parent) -> File:
    return File.from_parent(parent, path=module_path)


@pytest.fixture(scope="module")
def experiment(request):
    return load_experiment(request.path.stem.removeprefix("test_"))


@pytest.fixture(scope="module")
def ran(experiment) -> list[tuple]:
    """(step, its rows) of the tiny run."""
    return [(step, step.run()) for step in experiment.measure("tiny")]


@pytest.fixture(scope="module")
def rows(ran) -> list[dict]:
    return [row for _, rows in ran for row in rows]


@pytest.fixture(scope="module")
def record(request, experiment, rows) -> Record:
    if getattr(experiment, "DEVICE", None) == "gpu":
        return gpu_record(experiment, rows)
    name = request.path.stem.removeprefix("test_")
    return tiny_record(name, rows, experiment.SEEDS)


def test_steps_repeat_exactly(request, experiment):
    """Every step has a cell of its own; what is not timed gives its rows again."""
    for size in getattr(experiment, "SIZES", ["tiny"]):
        steps = experiment.measure(size)
        assert len({repr(step.cell) for step in steps}) == len(steps) > 0
    if hasattr(experiment, "DEVICE"):  # it times, or compiles for, that device
        return
    untimed = [each for each in request.getfixturevalue("ran") if not each[0].timed]
    for step, rows in (untimed[len(untimed) // 2], max(untimed, key=values)):
        assert step.run() == rows


def values(ran: tuple) -> int:
    """How many different values a step gave: where chance would show first."""
    return len({repr(value) for row in ran[1] for value in row.values()})


def test_facts_and_words(experiment, record):
    assert rows_problem(record.columns, record.rows) is None
    check_facts_and_words(experiment, record)


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_plot(request, experiment, record, lang):
    """Each panel has as many lines as the file expects, ``LINES``."""
    figure = draw(experiment, record, lang)
    assert [len(axis.lines) for axis in figure.axes] == request.module.LINES
