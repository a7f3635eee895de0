"""The page's byte model is the one that the measurements use."""

from scripts.measure.kernels import cells, timing
from scripts.measure.kernels.cells import OPERATIONS, Cell
from snippets.memory_bound.cold import sets_needed
from snippets.memory_bound.prediction import KERNELS, Traffic, seconds
from tests.wrong import suite

NAMES = {
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
            counted = cells.moved(cell)
            assert moved(KERNELS[name], rows, width, 2) == counted
            wide = Cell(operation, rows, width, "float32")
            counted = cells.moved(wide)
            assert moved(KERNELS[name], rows, width, 4) == counted


def test_mixes():
    for name, operation in NAMES.items():
        traffic = KERNELS[name]
        mix = f"{traffic.reads}R{traffic.writes}W"
        assert mix == OPERATIONS[operation].mix


test_cells, test_rejects = suite(Traffic, [check_cells], lambda t: t.moved)


def test_seconds():
    assert seconds(1000, 500.0) == 2
    assert seconds(1000, 500.0, launches=3, start=1.0) == 3
    assert seconds(1000, 500.0, launches=1, start=1.0) == 2


def test_sets():
    for moved in (1, 10**5, 10**7, 10**9):
        assert sets_needed(moved) == timing.sets_needed(moved)
