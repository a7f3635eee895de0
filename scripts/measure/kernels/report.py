"""From rows of kernels to shares of the copy rate. Pure Python: the site uses it."""

from collections.abc import Iterable, Sequence
from math import isnan, nan
from statistics import median

from scripts.measure.spread import noise_floor, ratio_interval

NOTHING = "—"  # what stands for a fact that a record cannot give
OURS, AGAIN, STREAM, COPY = "ours", "ours_again", "stream", "copy"
CELL = ("operation", "rows", "width", "dtype", "heads", "layout")


def timed(record, **wanted) -> list[dict]:
    """Rows of norms that have a time."""
    rows = _with_time(record, **wanted)
    return [r for r in rows if r["provider"] != STREAM and r["operation"] != COPY]


def _with_time(record, **wanted) -> list[dict]:
    return [r for r in record.select(status="ok", **wanted) if r["device_seconds"]]


def rate(row: dict) -> float:
    """Bytes a second by the byte count of the row."""
    return row["bytes"] / median(row["device_seconds"])


def copy_rate(record) -> float:
    """Of the faster large copy, bytes a second; NaN without one."""
    return max(map(rate, _with_time(record, operation=COPY)), default=nan)


def share_of_copy(record, row: dict) -> float:
    """A row's rate over that of the large copy."""
    return rate(row) / copy_rate(record)


def share_of_mix(record, row: dict) -> float:
    """A row's rate over that of the stream with its reads, writes and bytes.

    The stream took its turns with the cell's providers. NaN where there is none.
    """
    (beside,) = _with_time(record, provider=STREAM, **_where(row)) or [None]
    return rate(row) / rate(beside) if beside else nan


def _where(row: dict) -> dict:
    return {name: row[name] for name in CELL}


def cells(record) -> dict[tuple, dict[str, dict]]:
    """Cell -> provider -> its row with a time."""
    found: dict[tuple, dict[str, dict]] = {}
    for row in timed(record):
        found.setdefault(tuple(_where(row).values()), {})[row["provider"]] = row
    return found


def floor(record) -> float:
    """The noise floor: how far ours is from ours, timed twice, as factor - 1."""
    intervals = [
        ratio_interval(of[AGAIN]["device_seconds"], of[OURS]["device_seconds"])
        for of in cells(record).values()
        if OURS in of and AGAIN in of
    ]
    return noise_floor(intervals) if intervals else 0.0


# As texts -----------------------------------------------------------------


def percent(share: float, digits: int = 0) -> str:
    return NOTHING if isnan(share) else f"{100 * share:.{digits}f}%"


def microseconds(seconds: Sequence[float] | None) -> str:
    if not seconds:
        return NOTHING
    value = 1e6 * median(seconds)
    return f"{value:.1f} µs" if value < 100 else f"{value:.0f} µs"


def range_facts(name: str, shares: Iterable[float]) -> dict[str, str]:
    """Least and most, of what there is."""
    known = [share for share in shares if not isnan(share)]
    return {
        f"{name}_least": percent(min(known, default=nan)),
        f"{name}_most": percent(max(known, default=nan)),
    }


def common_facts(record) -> dict[str, str]:
    """What every figure of kernels says: rate of the copy, floor, reach."""
    speed = copy_rate(record) / 1e12
    found = {
        "machine": record.provenance["device"]["name"],
        "floor": percent(floor(record), 1),
        "copy": NOTHING if isnan(speed) else f"{speed:.2f} TB/s",
    }
    shares = [share_of_mix(record, row) for row in timed(record, provider=OURS)]
    return found | range_facts("mix", shares)


def by_width(record, operation: str, provider: str, **wanted) -> dict[int, dict]:
    """Width -> the row with the most rows, in bfloat16 where there is one."""
    rows = timed(record, operation=operation, provider=provider, **wanted)
    dtypes = {row["dtype"] for row in rows}
    dtype = "bfloat16" if "bfloat16" in dtypes else "float32"
    rows = sorted(rows, key=lambda row: (row["width"], row["rows"]))
    return {row["width"]: row for row in rows if row["dtype"] == dtype}


def line(record, operation: str, provider: str, **wanted) -> dict[int, float]:
    """Width -> share of the copy."""
    rows = by_width(record, operation, provider, **wanted)
    shares = {width: share_of_copy(record, row) for width, row in rows.items()}
    return {width: share for width, share in shares.items() if not isnan(share)}


def share_facts(
    record, operations: Sequence[str], providers: Sequence[str]
) -> dict[str, str]:
    """Shares and times by operation, width and provider; ours at its least and most."""
    found = {}
    for operation in operations:
        for provider in providers:
            for width, row in by_width(record, operation, provider).items():
                name = f"{operation}_{width}_{provider}"
                found[name] = percent(share_of_copy(record, row))
                found[f"{name}_time"] = microseconds(row["device_seconds"])
        ours = line(record, operation, OURS).values()
        found |= range_facts(operation, ours)
    return found
