"""One cell as rows of a record: a row a provider, right or wrong, here or missing."""

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from math import isfinite, log2

from scripts.measure.kernels import (
    capture,
    edges,
    gate,
    launched,
    providers,
    timing,
)
from scripts.measure.kernels.cells import OPERATIONS, Cell
from scripts.measure.provenance import RUN

LATER = (  # columns that only a finished cell fills
    *("method", "sets", "launches", "device_seconds", "call_seconds"),
    *("relative", "ulp", "most_ulp", "same_bits", "kernels", "beside", "why"),
    *("mhz", "least_mhz", "celsius", "watt"),
)


def row(cell: Cell, provider: str, **found) -> dict:
    """Every row has the same columns; what does not exist is None."""
    operation = OPERATIONS.get(cell.operation)
    moved = operation.moved(cell) if operation else None
    empty = dict.fromkeys(LATER)
    return {
        **asdict(cell),
        "provider": provider,
        "run": RUN,
        "at": round(1000 * time.time()),  # milliseconds, UTC, when it was finished
        "bytes": moved,
        "formula": operation.formula if operation else None,
        "status": "ok",
        **empty,
        **found,
    }


def here() -> str:
    """The device of all tensors."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def interpreted() -> bool:
    """Whether kernels run in Triton's interpreter: then an error of ours is loud."""
    return here() == "cpu"


# The gate -----------------------------------------------------------------


@contextmanager
def _poison(ours: bool):
    """Fresh memory holds NaN. Ours alone: compiled peers would compile once more."""
    import torch

    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(ours or before, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)


def checked(cell: Cell, calls: Sequence, wanted: Sequence, ours: bool) -> dict:
    """The gate: distances from float64, one an output, and repeated bits."""
    with launched.watched() as kernels:
        calls[0]()  # compiles, in the mode that is timed
    with _poison(ours):
        first, again = calls[0](), calls[0]()
    found = [
        gate.distance(each, right) for each, right in zip(first, wanted, strict=True)
    ]
    names = OPERATIONS[cell.operation].outputs
    passed = all(
        _passes(cell, name, ours, *each)
        for name, *each in zip(names, found, first, wanted, strict=True)
    )
    same_bits, dtype = gate.same_bits(first, again), _dtype(first[0])
    why = None if dtype == cell.dtype else f"its output is {dtype}"
    if ours and not same_bits:
        passed, why = False, "other bits when repeated"
    return {
        "status": "ok" if passed else "wrong",
        "relative": [_finite(distance.relative) for distance in found],
        "ulp": [_finite(distance.ulp) for distance in found],
        "most_ulp": [_finite(distance.most_ulp) for distance in found],
        "same_bits": same_bits,
        "kernels": kernels or None,
        "why": why,
    }


def _finite(value: float) -> float | None:
    """A record holds no infinity: None where a NaN stood."""
    return value if isfinite(value) else None


def _dtype(tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _passes(cell: Cell, output: str, ours: bool, measured, found, wanted) -> bool:
    """Whether an output is near enough as a whole and, of ours, nearly everywhere."""
    dtype = _dtype(found)
    most = max(gate.most_allowed(dtype, ours, interpreted()), edges.slack(cell))
    if ours and output in edges.SUMS and dtype == "float32":
        most = max(most, 1e-6 * log2(max(2, cell.rows)) ** 0.5)
    if ours and found.numel() < gate.FEW:
        most = max(most, 1.1 * gate.rounding(wanted, found.dtype))
    ulp = gate.most_ulp(dtype, ours, interpreted())
    return measured.relative <= most and measured.ulp <= ulp


# A cell -------------------------------------------------------------------


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
    cache, as a decoding step finds them. With no rounds nothing is timed.
    """
    import torch

    capture.stream()
    found: dict[str, dict] = {}
    try:
        calls = _gated(cell, names, found, cold)
        if rounds:
            _time(calls, found, rounds, call_rounds, calls_of_a_sample)
        del calls
    except Exception as error:  # inputs or answers that do not fit, say
        if interpreted():
            raise
        _fail({name: capture.reason(error) for name in names}, found)
    providers.forget()
    if torch.cuda.is_available() and capture.alive():
        torch.cuda.empty_cache()
    rows = [row(cell, name, **found[name]) for name in names]
    if not interpreted():
        _tell(rows)
    return rows


def _tell(rows: Sequence[dict]) -> None:
    """What somebody who watches a run should know at once."""
    for each in rows:
        if each["status"] in ("wrong", "failed") or each["method"] == "event_flush":
            where = f"{each['operation']} {each['rows']}x{each['width']}"
            where = f"{where} {each['case']}".rstrip()
            said = f"{where} {each['provider']}: {each['status']}, {each['why']}"
            print(said, file=sys.stderr, flush=True)


def _gated(
    cell: Cell, names: Sequence[str], found: dict[str, dict], cold: bool
) -> dict[str, list]:
    """Fill in a row of each name; the calls, one a set, of those that passed."""
    operation = OPERATIONS[cell.operation]
    sets = sets_of(operation.moved(cell), cold)
    inputs = [edges.inputs(cell, seed, here()) for seed in range(sets)]
    wanted = edges.answer(cell, inputs[0])
    calls = {}
    for name in names:
        ours = name.startswith("ours")
        try:
            made = [providers.PROVIDERS[name](cell, each) for each in inputs]
            found[name] = checked(cell, made, wanted, ours)
            if found[name]["status"] == "ok":
                calls[name] = made
        except providers.Missing as error:
            found[name] = {"status": "skipped", "why": str(error)}
        except Exception as error:  # a failure is a row
            if ours and interpreted():
                raise
            _fail({name: capture.reason(error)}, found)
    return calls


def _time(
    calls: dict[str, list],
    found: dict[str, dict],
    rounds: int,
    call_rounds: int,
    calls_of_a_sample: int,
) -> None:
    """Fill in the times of those that passed; an error is the row of who made it."""
    failed: dict[str, str] = {}
    for name, timed in timing.device_times(calls, rounds, failed).items():
        found[name] |= columns(timed)
        found[name]["why"] = timed.why or found[name]["why"]
    if call_rounds:
        left = {name: calls[name] for name in calls if name not in failed}
        called = timing.call_times(left, call_rounds, calls_of_a_sample, failed)
        for name, seconds in called.items():
            found[name]["call_seconds"] = seconds
    _fail(failed, found)


def columns(timed: timing.Timed) -> dict:
    """A time, as columns of a row."""
    return {
        "method": timed.method,
        "sets": timed.sets,
        "launches": timed.launches,
        "device_seconds": timed.seconds,
        **timed.card,
    }


def _fail(reasons: Mapping[str, str], found: dict[str, dict]) -> None:
    """Mark rows as failed, with the reason; those that have no time yet."""
    for name, why in reasons.items():
        known = found.setdefault(name, {})
        if known.get("status", "ok") == "ok":
            known |= {"status": "failed", "why": why, "device_seconds": None}


def sets_of(moved: int, cold: bool) -> int:
    """How many sets of inputs; two where there is no cache to be cold."""
    if here() == "cpu":
        return 2
    return timing.sets_needed(moved) if cold else 1
