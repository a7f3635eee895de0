"""Streams: whole blocks, aligned tensors, true sums."""

import pytest
import torch

from scripts.measure.kernels import ceilings
from snippets.memory_bound.streams import BLOCK

MIXES = ("1R1W", "2R1W", "2R2W", "3R1W")


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("moved", [1, 4096, 12_345, 10**6, 2**30, 402_694_144])
def test_streams_are_whole_blocks_and_say_their_bytes(mix, moved):
    """Triton loads 16 bytes at once if every tensor begins and ends at such a place."""
    count = ceilings.numbers(mix, moved)
    tensors = int(mix[0]) + int(mix[2])
    assert count % ceilings.ALIGNED == 0
    assert ceilings.bytes_of(mix, moved) == 2 * tensors * count
    assert ceilings.bytes_of(mix, moved) <= max(moved, 32 * tensors)
    if moved >= 10**6:
        assert count % BLOCK == 0
        assert ceilings.bytes_of(mix, moved) > 0.95 * moved


@pytest.mark.parametrize("mix", MIXES)
def test_tensors_of_a_stream_are_aligned(mix):
    for inputs, outputs in (ceilings._tensors(mix, m, "cpu", 0) for m in (500, 10**5)):
        assert (len(inputs), len(outputs)) == (int(mix[0]), int(mix[2]))
        assert all(each.data_ptr() % 16 == 0 for each in (*inputs, *outputs))


def test_streams_compute_their_sums():
    for mix in MIXES:
        for way, calls in ceilings.streams(mix, 100_000, "cpu", 2).items():
            inputs, _ = ceilings._tensors(mix, 100_000, "cpu", 1)
            found = calls[1]()
            found = found if isinstance(found, list) else [found]
            exact = torch.stack(inputs).double().sum(0)
            assert way in (mix, "1R1W_copy")
            for each in found:
                assert torch.allclose(each.double(), exact, rtol=2**-7)
