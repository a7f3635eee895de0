"""RMSNorm step by step in each format is what the snippets compute in torch."""

import pytest
import torch

from snippets.low_precision.cast_order import gemma_style, llama_style, t5_style
from snippets.low_precision.naive import rms_norm_naive
from snippets.rms_norm.reference import rms_norm
from tests.explore.conftest import bits, floats, loaded

HALF = {"bfloat16": torch.bfloat16, "float16": torch.float16}
EIGHT = {"float8_e4m3fn": torch.float8_e4m3fn, "float8_e5m2": torch.float8_e5m2}
SINGLE = {"float32": torch.float32}
EPSILONS = [1e-5, 1e-6, 1e-8, 0.0]
CALL = """(rows, gain, epsilons, order, name) =>
  rows.map((row) => epsilons.map((eps) => {
    const options = { eps, order, format: FORMATS[name] };
    return bitsOf(rmsNorm([...floats(row)], [...floats(gain)], options).y);
  }))"""


def gemma(x, gain, eps):
    return gemma_style(x, gain.float() - 1, eps)


SNIPPETS = {
    "naive": (rms_norm_naive,),
    "llama": (llama_style, t5_style),
    "gemma": (gemma, rms_norm),
}


def rows(dtype) -> list[torch.Tensor]:
    """Rows of 4 whose squares torch adds without rounding in float32, and others."""
    draw = torch.randn(60, 4, generator=torch.Generator().manual_seed(3))
    sizes = torch.logspace(-4, 3, 60)[:, None]
    odd = [[300.0, 1, -2, 0.5], [1e-4] * 4, [0.0] * 4, [256.0] * 4, [3e4, 0, 0, 1]]
    odd += [[255.875, 0, 0, 0], [2.0**-12, 2.0**-13, 0, 0], [-0.0, 1, 2, 3]]
    return [row.to(dtype) for row in [*draw * sizes, *torch.tensor(odd)]]


def eight(x, gain, eps, order, dtype):
    """torch has no arithmetic of 8-bit floats: float32 steps, each result cast."""
    kept = {"naive": 0, "llama": 3, "gemma": 4}[order]

    def cast(step, value):
        return value if step < kept else value.to(dtype).float()

    row, gain = x.float(), gain.float()
    square = cast(0, row * row)
    mean = cast(1, square.mean())
    shifted = mean + cast(1, torch.tensor(eps))
    root = cast(2, cast(1, shifted).sqrt())
    normed = cast(3, row / root if order == "naive" else row * (1 / root))
    return (normed * gain).to(dtype)


def differing(engine, name, order) -> tuple[int, int]:
    """Of all outputs, how many differ in any bit, and by more than a neighbour."""
    dtype = (HALF | EIGHT | SINGLE)[name]
    gain = torch.tensor([0.75, 1.5, -1.125, 1.25]).to(dtype)
    apart = far = 0
    given = [bits(row) for row in rows(dtype)]
    found = engine.run(CALL, given, bits(gain), EPSILONS, order, name)
    for row, outputs in zip(rows(dtype), found, strict=True):
        for eps, output in zip(EPSILONS, outputs, strict=True):
            if name in EIGHT:
                wanted = [eight(row, gain, eps, order, dtype)]
            else:
                wanted = [snippet(row, gain, eps) for snippet in SNIPPETS[order]]
            for right in wanted:
                a, b = floats(output), right.float()
                other = (a != b) & ~(a.isnan() & b.isnan())
                apart += int(other.sum())
                near = (a - b).abs() <= b.abs() * 2 * torch.finfo(dtype).eps
                far += int((other & ~near).sum())
    return apart, far


def agrees(engine, name, order) -> bool:
    """Sums may be added in another order: one output in 100 may be a neighbour."""
    apart, far = differing(engine, name, order)
    outputs = 4 * len(EPSILONS) * len(rows(torch.float32)) * len(SNIPPETS[order])
    return not far and (name in SINGLE or apart <= outputs / 100)


@pytest.mark.parametrize("order", SNIPPETS)
@pytest.mark.parametrize("name", [*HALF, *EIGHT, *SINGLE])
def test_as_the_snippets(engine, name, order):
    assert agrees(engine, name, order)


WRONG = {
    "gain before the cast": (
        '["square", "mean", "root"]',
        '["square", "mean", "root", "normed"]',
    ),
    "cast before the gain": (
        '["square", "mean", "root", "normed"]',
        '["square", "mean", "root"]',
    ),
    "square before the upcast": ('["square", "mean", "root"]', '["mean", "root"]'),
    "upcast in the naive norm": ("naive: []", 'naive: ["square"]'),
    "wide epsilon": (
        'kept("mean", mean + kept("mean", eps))',
        'kept("mean", mean + eps)',
    ),
    "eps outside the root": (
        'kept("root", Math.sqrt(shifted))',
        'kept("root", Math.sqrt(mean) + eps)',
    ),
    "sum for mean": ("/ row.length", ""),
    "result not rounded": ('kept("y", v * gains[i])', "v * gains[i]"),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_mistake_is_rejected(mistake):
    with loaded(*WRONG[mistake]) as wrong:
        every = [(name, order) for name in [*HALF, *SINGLE] for order in SNIPPETS]
        assert not all(agrees(wrong, *each) for each in every)
