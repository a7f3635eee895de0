"""Kernels that were launched, as the compiler made them."""

from types import SimpleNamespace

import pytest

from scripts.measure.kernels import launched


def test_kernels_that_were_launched_are_named_with_their_registers(monkeypatch):
    jit = pytest.importorskip("triton.runtime.jit")
    metadata = SimpleNamespace(num_warps=8, num_stages=3, shared=4096)
    kernel = SimpleNamespace(metadata=metadata, n_regs=64, n_spills=2)

    def run(self, *args, grid, warmup, **kwargs):
        return kernel

    monkeypatch.setattr(jit.JITFunction, "run", run)
    fake = SimpleNamespace(__name__="a_kernel")
    with launched.watched() as found:
        jit.JITFunction.run(fake, 1, grid=(3, 2), warmup=False)
        jit.JITFunction.run(fake, 1, grid=lambda _: (3,), warmup=False)
    assert jit.JITFunction.run is run
    assert dict(zip(launched.COLUMNS, found[0], strict=True)) == {
        "kernel": "a_kernel",
        "programs": 6,
        "warps": 8,
        "stages": 3,
        "registers": 64,
        "spilled": 2,
        "shared_bytes": 4096,
    }
    assert found[1][1] is None
