"""How far the engine of the live figures is from float64, beside torch in float32.

A row for each function and for each decoder of the tests: the largest relative error of
any tensor, over odd inputs or over SEEDS models and texts.
"""

from collections.abc import Iterator, Sequence

import torch

from tests.explore import test_decoder, test_norms, test_operations
from tests.explore.conftest import loaded
from tests.explore.float_error import Run, errors, excess, worst

SEEDS = 5
KINDS = ("values", "gradients", "twenty steps")
Groups = list[list[Run]]  # runs of each kind


def lines() -> Iterator[str]:
    yield "largest relative error: engine, torch in float32, their ratio"
    yield (" " * 22 + "".join(f"{kind:<26}" for kind in KINDS)).rstrip()
    most = dict.fromkeys(KINDS, (0.0, 0.0))
    with loaded() as engine:
        for name, groups in [*_functions(engine), *_decoders(engine)]:
            cells = []
            for kind, runs in zip(KINDS, groups, strict=False):
                ours = max(worst(errors(found, exact) for found, exact, _ in runs))
                theirs = max(worst(errors(other, exact) for _, exact, other in runs))
                ratio = ours / max(theirs, 1e-30)
                cells.append(f"{ours:.1e} {theirs:.1e} {ratio:4.2f}")
                most[kind] = tuple(map(max, most[kind], (ratio, excess(*runs))))
            yield f"{name:<22}" + "     ".join(cells)
    for kind, (ratio, of_one) in most.items():
        yield f"{kind}: largest ratio {ratio:.2f}, of a single tensor {of_one:.2f}"


def _functions(engine) -> Iterator[tuple[str, Groups]]:
    for name in test_operations.OPERATIONS:
        every = test_operations.inputs().values()
        yield name, _split([test_operations.applied(engine, name, x) for x in every])
    yield "cross-entropy", _split(test_operations.losses(engine))
    for norm in test_norms.NORMS:
        runs = []
        for name, *case in test_norms.cases():
            # What overflows has no error in float32.
            overflows = name.startswith("overflowing")
            if not overflows and test_norms.defined(norm, name, case[1].shape):
                exact = test_norms.wanted(norm, *case, dtype=torch.float64)
                rounded = test_norms.wanted(norm, *case)
                found = test_norms.found(engine, norm, *case)[: len(exact)]
                runs.append((found, exact, rounded))
        yield f"norms.js, {norm}", _split(runs)


def _decoders(engine) -> Iterator[tuple[str, Groups]]:
    for name, settings in test_decoder.CASES.items():
        seeds = range(SEEDS)
        runs = [r for s in seeds for r in test_decoder.every(engine, settings, s)]
        steps = [test_decoder.trained(engine, settings, seed) for seed in seeds]
        yield name, [*_split(runs, streams=settings.layers + 1), steps]


def _split(runs: Sequence[Run], streams: int = 0) -> Groups:
    """Values and gradients: a value, `streams` with their gradients, more gradients."""
    values = [0, *range(1, 1 + 2 * streams, 2)]

    def of(tensors, kind):
        return [t for i, t in enumerate(tensors) if (i in values) == kind]

    return [[tuple(of(each, kind) for each in run) for run in runs] for kind in (1, 0)]
