"""Providers run what a cell asks for, and nothing else."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from scripts.measure.kernels import cells, providers, rows
from scripts.measure.kernels.cells import BOTH, NORMS, OPERATIONS
from tests.measure.kernels.given import cell

NAMES = ["ours", "ours_again", "torch", "torch_unfused", "compile", "stream"]
OPERATIONS_TIMED = [*OPERATIONS, *(norm + BOTH for norm in NORMS)]


def partitioned(graph, inputs):
    """A backend that divides forward and backward pass as inductor does, and runs."""
    from functorch.compile import min_cut_rematerialization_partition
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.aot_autograd import make_boxed_func

    run = aot_autograd(
        fw_compiler=lambda graph, _: make_boxed_func(graph.forward),
        partition_fn=min_cut_rematerialization_partition,
    )
    return run(graph, inputs)


@pytest.mark.parametrize("operation", OPERATIONS_TIMED)
def test_every_provider_that_is_here_passes(operation, monkeypatch):
    """The compiled ones in one graph, and backward more than once on one forward."""
    monkeypatch.setattr(providers, "BACKEND", partitioned)
    made = cell(operation)
    names = ["torch", "stream"] if operation == "copy" else NAMES[: 5 + bool(made.mix)]
    for row in rows.measured(made, names, rounds=3):
        beside = row["provider"] == "stream" and operation != "copy"
        assert (row["status"], len(row["device_seconds"])) == ("ok", 3), row["why"]
        assert row["same_bits"] is (None if beside else True)
        assert max(row["relative"] or [0.0]) < 1e-6
        assert row["bytes"] == (cells.of_stream if beside else cells.moved)(made)
    assert operation == "copy" or not torch._functorch.config.donated_buffer


@pytest.mark.parametrize("operation", ["add_rms_norm", "add_rms_norm_backward"])
def test_a_stream_reads_and_writes_as_its_cell(operation):
    made = cell(operation)
    inputs = cells.inputs(made, 0, "cpu")
    found = providers.PROVIDERS["stream"](made, inputs)()
    large = [inputs[name] for name in cells.LARGE if name in inputs]
    reads, writes = made.spec.streams
    assert len(found) == writes
    for each in found:
        assert (each - sum(large[:reads])).abs().max() < 1e-5


class Asked(TorchDispatchMode):
    """The operators that run, by name."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(function.name().partition(".")[0])
        return function(*args, **kwargs or {})


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["ours", "torch", "torch_unfused"])
def test_both_passes_run_in_every_call(norm, name):
    asked = {}
    for way in ("", "_backward", BOTH):
        made = cell(norm + way)
        call = providers.PROVIDERS[name](made, cells.inputs(made, 0, "cpu"))
        call()
        with Asked() as seen:
            call()
        apart = {"aten::detach", "aten::zeros"}  # autograd's, for the statistics
        asked[way] = [each for each in seen.names if each not in apart]
    assert asked[""] and asked["_backward"]
    assert sorted(asked[BOTH]) == sorted(asked[""] + asked["_backward"])
