"""The page's byte model is the one that the measurements use."""

import pytest

from scripts.measure.kernels import timing
from scripts.measure.kernels.cells import OPERATIONS, Cell
from snippets.memory_bound.cold import sets_needed
from snippets.memory_bound.prediction import KERNELS, Traffic, seconds

NAMES = {
    "soft cap": "soft_cap",
    "RMSNorm": "rms_norm",
    "RMSNorm, backward": "rms_norm_backward",
    "LayerNorm": "layer_norm",
    "LayerNorm, backward": "layer_norm_backward",
    "add and RMSNorm": "add_rms_norm",
    "add and RMSNorm, backward": "add_rms_norm_backward",
}
SHAPES = ((1, 16), (7, 24), (16384, 4096))


def check_cells(moved):
    for name, operation in NAMES.items():
        for rows, width in SHAPES:
            cell = Cell(operation, rows, width)
            counted = OPERATIONS[operation].moved(cell)
            assert moved(KERNELS[name], rows, width, 2) == counted
            wide = Cell(operation, rows, width, "float32", "float32")
            counted = OPERATIONS[operation].moved(wide)
            assert moved(KERNELS[name], rows, width, 4) == counted


def test_cells():
    check_cells(Traffic.moved)


def test_mixes():
    for name, operation in NAMES.items():
        traffic = KERNELS[name]
        mix = f"{traffic.reads}R{traffic.writes}W"
        assert mix == OPERATIONS[operation].mix


def reads_only(traffic, rows, width, size):
    return Traffic(traffic.reads, 0, traffic.gains, traffic.statistics).moved(
        rows, width, size
    )


def statistics_in_the_dtype_of_x(traffic, rows, width, size):
    large = Traffic(traffic.reads, traffic.writes, traffic.gains)
    return large.moved(rows, width, size) + traffic.statistics * rows * size


def gains_of_every_row(traffic, rows, width, size):
    large = Traffic(traffic.reads, traffic.writes, 0, traffic.statistics)
    return large.moved(rows, width, size) + traffic.gains * rows * width * size


def always_float32(traffic, rows, width, size):
    return traffic.moved(rows, width, 4)


WRONG = [
    reads_only,
    statistics_in_the_dtype_of_x,
    gains_of_every_row,
    always_float32,
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda f: f.__name__)
def test_rejects(wrong, known_wrong):
    known_wrong.rejected_by([check_cells], wrong)


def test_seconds():
    assert seconds(1000, 500.0) == 2
    assert seconds(1000, 500.0, launches=3, start=1.0) == 3
    assert seconds(1000, 500.0, launches=1, start=1.0) == 2


def test_sets():
    for moved in (1, 10**5, 10**7, 10**9):
        assert sets_needed(moved) == timing.sets_needed(moved)
