"""What plain streams reach on this device: the ceilings of every share.

A copy of a gigabyte is the rate of the page; a stream of the same reads and
writes, at a cell's own size, is the fairer one beside it: a small copy never
reaches the rate of a large one.
"""

from collections.abc import Callable, Sequence

MIXES = ("1R1W", "2R1W", "2R2W", "3R1W", "1R0W")
LARGE = 2**30  # bytes moved by the large copy


def stream(mix: str, moved: int, device: str, sets: int) -> list[Callable]:
    """Calls, one a set, that move `moved` bytes as the mix says."""
    return [_one(mix, moved, device, "bfloat16", seed) for seed in range(sets)]


def _one(mix: str, moved: int, device: str, dtype: str, seed: int) -> Callable:
    import torch

    reads, writes = int(mix[0]), int(mix[2])
    size = torch.finfo(getattr(torch, dtype)).bits // 8
    count = max(1, moved // (reads + writes) // size)
    generator = torch.Generator(device).manual_seed(seed)
    made = torch.randn((reads, count), generator=generator, device=device)
    inputs: Sequence = made.to(getattr(torch, dtype)).unbind()
    outputs = [torch.empty_like(inputs[0]) for _ in range(writes)]
    if mix == "1R0W":
        return lambda: inputs[0].sum()
    if mix == "1R1W":
        return lambda: outputs[0].copy_(inputs[0])
    return _kernel(inputs, outputs)


def _kernel(inputs: Sequence, outputs: Sequence) -> Callable:
    """Sum of the inputs into every output, as one Triton kernel."""
    import triton

    from snippets.memory_bound.streams import BLOCK, add_streams

    size = inputs[0].numel()
    sources = [*inputs, *[inputs[0]] * (3 - len(inputs))]
    targets = [*outputs, *[outputs[0]] * (2 - len(outputs))]
    shape = {"READS": len(inputs), "WRITES": len(outputs), "BLOCK": BLOCK}

    def call():
        add_streams[(triton.cdiv(size, BLOCK),)](*sources, *targets, size, **shape)
        return outputs

    return call
