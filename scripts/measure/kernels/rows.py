"""One cell as rows of a record: a row a provider, right or wrong, here or missing."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

from scripts.measure.kernels import ceilings, gate, providers, timing
from scripts.measure.kernels.cells import OPERATIONS, Cell
from scripts.measure.records import Step

LATER = (  # columns that only a finished cell fills
    *("method", "sets", "launches", "device_seconds", "call_seconds"),
    *("relative", "ulp", "most_ulp", "same_bits", "why", "mhz", "celsius", "watt"),
)


def row(cell: Cell, provider: str, **found) -> dict:
    """Every row has the same columns; what does not exist is None."""
    operation = OPERATIONS.get(cell.operation)
    moved = operation.moved(cell) if operation else None
    empty = dict.fromkeys(LATER)
    return {
        **asdict(cell),
        "provider": provider,
        "bytes": moved,
        "formula": operation.formula if operation else None,
        "status": "ok",
        **empty,
        **found,
    }


def _here() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"[:200]


def checked(cell: Cell, calls: Sequence, inputs: dict, ours: bool) -> dict:
    """The gate: distances from float64, worst output first, and repeated bits."""
    import torch

    operation = OPERATIONS[cell.operation]
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)  # poisons fresh memory
    try:
        first, again = calls[0](), calls[0]()
    finally:
        torch.use_deterministic_algorithms(before)
    wanted = operation.answer(inputs)
    found = [
        gate.distance(each, right) for each, right in zip(first, wanted, strict=True)
    ]
    interpreted = _here() == "cpu"
    passed = all(
        distance.relative <= _allowed(cell, name, each, ours, interpreted)
        for distance, name, each in zip(found, operation.outputs, first, strict=True)
    )
    return {
        "status": "ok" if passed else "wrong",
        "relative": [distance.relative for distance in found],
        "ulp": [distance.ulp for distance in found],
        "most_ulp": [distance.most_ulp for distance in found],
        "same_bits": gate.same_bits(first, again),
    }


def _allowed(cell: Cell, output: str, tensor, ours: bool, interpreted: bool) -> float:
    from math import log2

    dtype = str(tensor.dtype).removeprefix("torch.")
    allowed = gate.most_allowed(dtype, ours, interpreted)
    if ours and output in ("dgain", "dbias") and dtype == "float32":
        return max(allowed, 1e-6 * log2(max(2, cell.rows)) ** 0.5)
    return allowed


def measured(
    cell: Cell,
    names: Sequence[str],
    rounds: int = timing.ROUNDS,
    call_rounds: int = 0,
    cold: bool = True,
    calls_of_a_sample: int = 100,
) -> list[dict]:
    """Gate every provider, then time those that passed against each other.

    Whether they pass or not, each has its row. `call_rounds` samples of the
    caller's time are taken too; `cold=False` keeps the data of one set in the
    cache, as a decoding step finds them.
    """
    import torch

    device = _here()
    operation = OPERATIONS[cell.operation]
    sets = _sets(operation.moved(cell), cold)
    inputs = [operation.inputs(cell, seed, device) for seed in range(sets)]
    rows, calls = {}, {}
    for name in names:
        try:
            made = [providers.PROVIDERS[name](cell, each) for each in inputs]
            rows[name] = checked(cell, made, inputs[0], name.startswith("ours"))
            if rows[name]["status"] == "ok":
                calls[name] = made
        except providers.Missing as error:
            rows[name] = {"status": "skipped", "why": str(error)}
        except Exception as error:  # a peer's own failure is its row
            if name == "ours":
                raise
            rows[name] = {"status": "failed", "why": _reason(error)}
    before = timing.card()
    if calls:
        for name, timed in timing.device_times(calls, rounds).items():
            rows[name] |= {
                "method": timed.method,
                "sets": timed.sets,
                "launches": timed.launches,
                "device_seconds": timed.seconds,
                **before,
            }
        if call_rounds:
            found = timing.call_times(calls, call_rounds, calls_of_a_sample)
            for name, seconds in found.items():
                rows[name]["call_seconds"] = seconds
    providers.forget()
    if device == "cuda":
        torch.cuda.empty_cache()
    return [row(cell, name, **found) for name, found in rows.items()]


def _sets(moved: int, cold: bool) -> int:
    """How many sets of inputs; two where there is no cache to be cold."""
    if _here() == "cpu":
        return 2
    return timing.sets_needed(moved) if cold else 1


def streams(
    moved: int, mixes: Sequence[str], rounds: int, when: str, cold: bool = True
) -> list[dict]:
    """What plain streams of about so many bytes take: rows of operation `stream`."""
    rows = []
    for mix in mixes:
        calls = ceilings.stream(mix, moved, _here(), _sets(moved, cold))
        timed = timing.device_times({mix: calls}, rounds)[mix]
        cell = Cell("stream", moved, 1)
        rows.append(
            row(
                cell,
                mix,
                bytes=moved,
                why=when,
                method=timed.method,
                sets=timed.sets,
                launches=timed.launches,
                device_seconds=timed.seconds,
                **timing.card(),
            )
        )
    return rows


def steps(
    cells: Sequence[Cell],
    names: Sequence[str],
    size: str,
    *,
    more: Sequence[str] = (),
    first: int = 0,
    call_rounds: int = 0,
    cold: bool = True,
) -> list[Step]:
    """A step a cell: its providers, then the streams it is held against.

    The `first` cells are timed by the `more` providers too.
    The large copy runs beside every cell, so that a run that was stopped and went
    on in another process has its ceilings there too.
    """
    rounds = 2 if size == "tiny" else timing.ROUNDS
    large = 4096 if size == "tiny" else ceilings.LARGE
    calls = 2 if size == "tiny" else 100

    def run(cell: Cell, names: Sequence[str]) -> list[dict]:
        operation = OPERATIONS[cell.operation]
        found = measured(cell, names, rounds, call_rounds, cold, calls)
        found += streams(
            operation.moved(cell), (operation.mix,), rounds, "own size", cold
        )
        mixes = dict.fromkeys(("1R1W", operation.mix))
        return found + streams(large, tuple(mixes), rounds, "large")

    return [
        Step(asdict(cell), partial(run, cell, (*names, *more) if i < first else names))
        for i, cell in enumerate(cells)
    ]
