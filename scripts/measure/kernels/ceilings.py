"""What plain streams reach on this device: the ceilings of every share.

The best copy of a gigabyte is the rate of the page: torch's own, and one by a
kernel. A stream of the same reads and writes, at a cell's own size, is the fairer
ceiling beside it: a small copy never reaches the rate of a large one.
"""

from collections.abc import Callable, Sequence

LARGE = 2**30  # bytes moved by the large copy
SWEEP = (2**28, 2**32)  # to see that a large copy is large enough
EVERY = 10  # cells from one large stream to the next
ALIGNED = 16  # numbers: what Triton must know to load 16 bytes at once
SIZE = 2  # bytes of a bfloat16


def numbers(mix: str, moved: int) -> int:
    """In each tensor of a stream that moves about so many bytes: whole blocks."""
    from snippets.memory_bound.streams import BLOCK

    count = moved // (int(mix[0]) + int(mix[2])) // SIZE
    whole = BLOCK if count >= BLOCK else ALIGNED
    return max(ALIGNED, count // whole * whole)


def bytes_of(mix: str, moved: int) -> int:
    """What a stream of about so many bytes moves in truth."""
    return (int(mix[0]) + int(mix[2])) * SIZE * numbers(mix, moved)


def streams(mix: str, moved: int, device: str, sets: int) -> dict[str, list[Callable]]:
    """Ways to run a mix, `sets` calls each; a copy also as torch does it."""
    made = [_tensors(mix, moved, device, seed) for seed in range(sets)]
    found = {mix: [_kernel(*each) for each in made]}
    if mix == "1R1W":
        found["1R1W_copy"] = [_copy(*each) for each in made]
    return found


def _tensors(mix: str, moved: int, device: str, seed: int) -> tuple[Sequence, Sequence]:
    """(inputs, outputs) of equal length, each at a multiple of 16 bytes."""
    import torch

    generator = torch.Generator(device).manual_seed(seed)
    inputs = torch.randn(
        (int(mix[0]), numbers(mix, moved)),
        generator=generator, device=device, dtype=torch.bfloat16,
    ).unbind()  # fmt: skip
    outputs = [torch.empty_like(inputs[0]) for _ in range(int(mix[2]))]
    assert all(each.data_ptr() % 16 == 0 for each in (*inputs, *outputs))
    return inputs, outputs


def _copy(inputs: Sequence, outputs: Sequence) -> Callable:
    return lambda: outputs[0].copy_(inputs[0])


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
