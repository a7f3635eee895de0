"""The byte count against bytes counted on real tensors, operation by operation."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from snippets.speed import byte_count
from snippets.speed.handwritten import hand_layer_norm, hand_rms_norm
from tests.wrong import suite

ROWS, D = 48, 32
DTYPES = {
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float32": torch.float32,
}
# These look at a tensor and move nothing.
FREE = {"aten::detach", "aten::view", "aten::expand", "aten::alias"}


def add_then_norm(x, other, gain, bias):
    return _layer_norm(x + other, gain, bias)


class CountBytes(TorchDispatchMode):
    """Adds up the bytes of big tensors that each operation reads and writes."""

    def __init__(self):
        super().__init__()
        self.total = 0
        self.kernels = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        name = function.name().partition(".")[0]
        if name not in FREE:
            tensors = [
                t
                for t in tree_leaves((args, kwargs, out))
                if isinstance(t, torch.Tensor) and t.numel() == ROWS * D
            ]
            self.total += sum(t.numel() * t.element_size() for t in tensors)
            if tensors:
                self.kernels.append(name)
        return out


def _count(function, *tensors):
    with torch.no_grad(), CountBytes() as counted:
        function(*tensors)
    return counted.total / (ROWS * D), counted.kernels


def _inputs(dtype):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(ROWS, D, generator=generator)
    return [t.to(dtype) for t in (x, torch.rand(D) + 0.5, torch.rand(D))]


def _layer_norm(x, gain, bias):
    return torch.nn.functional.layer_norm(x, (D,), gain, bias, 1e-5)


def check_hand_layer_norm(count):
    for name, dtype in DTYPES.items():
        counted, _ = _count(hand_layer_norm, *_inputs(dtype))
        assert count(byte_count.HAND_LAYER_NORM, name) == counted


def check_hand_rms_norm(count):
    for name, dtype in DTYPES.items():
        x, gain, _ = _inputs(dtype)
        counted, _ = _count(hand_rms_norm, x, gain)
        assert count(byte_count.HAND_RMS_NORM, name) == counted


def check_fused(count):
    for name, dtype in DTYPES.items():
        counted, kernels = _count(_layer_norm, *_inputs(dtype))
        assert len(kernels) == 1
        assert count(byte_count.FUSED_NORM, name) == counted


def check_add(count):
    for name, dtype in DTYPES.items():
        x, gain, bias = _inputs(dtype)
        other = x.clone()
        counted, _ = _count(add_then_norm, x, other, gain, bias)
        assert count(byte_count.ADD_THEN_NORM, name) == counted
        # Fusing saves the one read of the sum, no more.
        saved = DTYPES[name].itemsize
        assert count(byte_count.FUSED_ADD_NORM, name) == counted - saved


CHECKS = [check_hand_layer_norm, check_hand_rms_norm, check_fused, check_add]


def test_torchs_own_norms_on_a_cpu_are_what_the_page_says():
    x, gain, bias = _inputs(torch.float32)
    _, kernels = _count(_layer_norm, x, gain, bias)
    assert kernels == ["aten::native_layer_norm"]
    rms_norm = torch.nn.functional.rms_norm
    _, kernels = _count(lambda x, gain: rms_norm(x, (D,), gain, 1e-5), x, gain)
    assert len(kernels) > 3


def test_default_is_bfloat16():
    for chain in byte_count.CHAINS.values():
        count = byte_count.bytes_per_element
        assert count(chain) == count(chain, "bfloat16")
    with pytest.raises(KeyError):
        byte_count.bytes_per_element(byte_count.FUSED_NORM, "float8")


def test_one_entry_a_kernel():
    _, kernels = _count(hand_layer_norm, *_inputs(torch.bfloat16))
    assert len(kernels) == len(byte_count.HAND_LAYER_NORM)
    x, gain, _ = _inputs(torch.bfloat16)
    _, kernels = _count(hand_rms_norm, x, gain)
    assert len(kernels) == len(byte_count.HAND_RMS_NORM)


test_bytes_per_element, test_rejects = suite(byte_count.bytes_per_element, CHECKS)
