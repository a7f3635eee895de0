"""Kernels that ran, as the profiler wrote them down."""

from scripts.measure.kernels import launched


def kernel(name, ts, **args):
    return {"cat": "kernel", "name": name, "ts": ts, "args": args}


def test_kernels_are_named_with_their_launch_in_their_order():
    launch = {"grid": [3, 2, 1], "block": [128, 1, 1], "registers per thread": 64}
    trace = [
        kernel("add<float>(int)", 2.0),
        {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 0.5},
        {"ph": "M", "name": "process_name"},
        kernel("rms_norm_forward", 1.0, **launch, **{"shared memory": 16}),
    ]
    found = launched.read({"traceEvents": trace})
    assert dict(zip(launched.COLUMNS, found[0], strict=True)) == {
        "kernel": "rms_norm_forward",
        "programs": 6,
        "threads": 128,
        "registers": 64,
        "shared_bytes": 16,
    }
    assert found[1] == ["add(float)(int)", *[None] * 4]
    assert launched.read({"traceEvents": []}) is None


def test_without_a_gpu_nothing_is_told():
    assert launched.kernels(lambda: None) is None
