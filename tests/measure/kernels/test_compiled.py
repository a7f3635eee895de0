"""Compiled providers pass forward and backward, in one graph."""

import pytest
import torch

from scripts.measure.kernels import providers, rows
from scripts.measure.kernels.cells import BOTH, NORMS
from tests.measure.kernels.given import cell


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


@pytest.mark.parametrize("way", ["", "_backward", BOTH])
@pytest.mark.parametrize("norm", [*NORMS, "qk_norm_rope"])
def test_compiled_providers_pass_forward_and_backward(norm, way, monkeypatch):
    """In one graph, and the backward pass more than once on one forward pass.

    The backend divides the two passes at the cheapest place.
    """
    if norm + way not in ("qk_norm_rope_backward", "qk_norm_rope" + BOTH):
        monkeypatch.setattr(providers, "BACKEND", partitioned)
        (found,) = rows.measured(cell(norm + way), ["compile"], rounds=3)
        assert found["status"] == "ok", found["why"]
        assert len(found["device_seconds"]) == 3
        assert not torch._functorch.config.donated_buffer
