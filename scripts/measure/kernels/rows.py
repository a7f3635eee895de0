"""One cell as rows of a record: a row a provider, right or wrong, here or missing."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from math import isfinite

from scripts.measure.kernels import cells, gate, launched, providers, timing
from scripts.measure.kernels.cells import Cell
from scripts.measure.provenance import RUN

LATER = (  # columns that only a finished cell fills
    *("method", "sets", "launches", "device_seconds", "call_seconds"),
    *("relative", "beyond", "same_bits", "kernels", "why"),
    *("mhz", "celsius", "watt"),
)


def row(cell: Cell, provider: str, **found) -> dict:
    """Every row has the same columns; what does not exist is None."""
    moved = cells.of_stream if provider == "stream" else cells.moved
    return {
        **asdict(cell),
        "provider": provider,
        "run": RUN,
        "bytes": moved(cell) if cell.passes[0] in cells.OPERATIONS else None,
        "status": "ok",
        **dict.fromkeys(LATER),
        **found,
    }


def here() -> str:
    """The device of all tensors. On a CPU kernels run in Triton's interpreter."""
    return "cuda" if timing.cuda() else "cpu"


def interpreted() -> bool:
    """Whether they do: then an error of ours is loud."""
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


def checked(cell: Cell, call, wanted: Sequence, ours: bool) -> dict:
    """The gate: distances from float64, one an output, and repeated bits."""
    call()  # compiles, in the mode that is timed
    with _poison(ours):
        first, again = call(), call()
    found = [gate.distance(*pair) for pair in zip(first, wanted, strict=True)]
    passed = all(
        _passes(ours, *each) for each in zip(first, wanted, found, strict=True)
    )
    same_bits, dtype = gate.same_bits(first, again), _dtype(first[0])
    why = None if dtype == cell.dtype else f"its output is {dtype}"
    if ours and not same_bits:
        passed, why = False, "other bits when repeated"
    return {
        "status": "ok" if passed else "wrong",
        # A record holds no infinity.
        "relative": [each if isfinite(each) else None for each, _ in found],
        "beyond": [each for _, each in found],
        "same_bits": same_bits,
        "why": why,
    }


def _dtype(tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _passes(ours: bool, found, wanted, distance: tuple[float, float]) -> bool:
    """Whether an output is near enough as a whole and, of ours, nearly everywhere."""
    relative, beyond = distance
    if not ours:
        return relative <= gate.PEERS
    dtype = _dtype(found)
    most = gate.OURS[dtype]
    if found.numel() < gate.FEW:  # 1.1 times the distance of what is only rounded
        most = max(most, 1.1 * gate.distance(wanted.to(found.dtype), wanted)[0])
    return relative <= most and (dtype == "float32" or beyond <= gate.MOST_BEYOND)


# A cell -------------------------------------------------------------------


def measured(
    cell: Cell,
    names: Sequence[str],
    rounds: int = timing.ROUNDS,
    calls: int = 0,
    cold: bool = True,
) -> list[dict]:
    """Gate every provider, then time those that passed against each other.

    Whether they pass or not, each has its row. With `calls` the caller's time is taken
    too, of so many in a sample; `cold=False` keeps the data of one set in the cache,
    as a decoding step finds them.
    """
    import torch

    timing.stream()
    found: dict[str, dict] = {}
    try:
        _time(_gated(cell, names, found, cold), found, rounds, calls)
    except Exception as error:  # inputs or answers that do not fit, say
        if interpreted():
            raise
        _fail({name: timing.reason(error) for name in names}, found)
    providers.forget()
    if not interpreted() and timing.alive():
        torch.cuda.empty_cache()
    rows = [row(cell, name, **found[name]) for name in names]
    for each in rows:
        if not interpreted() and each["status"] in ("wrong", "failed"):
            said = f"{each['provider']}: {each['status']}, {each['why']}"
            print(f"{cell}: {said}", file=sys.stderr, flush=True)
    return rows


def _gated(
    cell: Cell, names: Sequence[str], found: dict[str, dict], cold: bool
) -> dict[str, list]:
    """Fill in a row of each name; the calls, one a set, of those that passed."""
    sets = 1 if not cold else 2 if interpreted() else timing.sets_needed(
        cells.moved(cell)
    )  # fmt: skip
    inputs = [cells.inputs(cell, seed, here()) for seed in range(sets)]
    wanted = cells.answer(cell, inputs[0])
    calls = {}
    for name in names:
        ours = name.startswith("ours")
        try:
            made = [providers.PROVIDERS[name](cell, each) for each in inputs]
            if name == "stream" and cell.operation != "copy":
                found[name] = {}  # the ceiling beside a norm, no norm
            else:
                found[name] = checked(cell, made[0], wanted, ours)
            if found[name].get("status", "ok") == "ok":
                calls[name] = made
        except providers.Missing as error:
            found[name] = {"status": "skipped", "why": str(error)}
        except Exception as error:  # a failure is a row
            if ours and interpreted():
                raise
            _fail({name: timing.reason(error)}, found)
    return calls


def _time(
    made: dict[str, list], found: dict[str, dict], rounds: int, calls: int
) -> None:
    """Fill in the times of those that passed; an error is the row of who made it."""
    failed: dict[str, str] = {}
    for name, timed in timing.device_times(made, rounds, failed).items():
        found[name] |= {
            "method": timed.method,
            "sets": timed.sets,
            "launches": timed.launches,
            "device_seconds": timed.seconds,
            **timed.card,
        }
    left = {name: made[name] for name in made if name not in failed}
    if calls:
        called = timing.call_times(left, rounds, calls, failed)
        for name, seconds in called.items():
            found[name]["call_seconds"] = seconds
    for name in left.keys() - failed.keys():
        found[name]["kernels"] = launched.kernels(left[name][0])
    _fail(failed, found)


def _fail(reasons: Mapping[str, str], found: dict[str, dict]) -> None:
    """Mark rows as failed, with the reason; those that have no time yet."""
    for name, why in reasons.items():
        known = found.setdefault(name, {})
        if known.get("status", "ok") == "ok":
            known |= {"status": "failed", "why": why, "device_seconds": None}
