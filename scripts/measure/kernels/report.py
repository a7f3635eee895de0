"""From rows of kernels to shares of the copy rate. Pure Python: the site uses it."""

from bisect import bisect
from collections.abc import Callable, Iterable, Sequence
from math import isnan, nan
from statistics import median

from scripts.measure.spread import noise_floor, ratio, ratio_interval, unresolved

LARGE = 5e8  # bytes: a copy of at least so many counts as large
MOST_DRIFT = 0.02  # of the copies around a cell that is compared
NOTHING = "—"  # what stands for a fact that a record cannot give
MIX = {  # the stream that reads and writes as the operation does
    "rms_norm": "1R1W",
    "layer_norm": "1R1W",
    "soft_cap": "1R1W",
    "qk_norm_rope": "1R1W",
    "add_rms_norm": "2R2W",
    "rms_norm_backward": "2R1W",
    "layer_norm_backward": "2R1W",
    "add_rms_norm_backward": "3R1W",
}
OURS, AGAIN = "ours", "ours_again"
CELL = ("operation", "rows", "width", "dtype", "gain_dtype", "heads", "layout")


def timed(record, **wanted) -> list[dict]:
    """Rows to compare: timed by a graph, while the copy held its rate."""
    held = steady(record)
    return [row for row in _timed(record, **wanted) if held(row)]


def _timed(record, **wanted) -> list[dict]:
    """Rows with a device time, streams left out, and what no graph could time."""
    rows = record.select(status="ok", **wanted)
    rows = [row for row in rows if row["method"] != "event_flush"]
    return [r for r in rows if r["device_seconds"] and r["operation"] != "stream"]


def streams(record, mix: str, **wanted) -> list[dict]:
    """Rows of a mix with a time; a copy may be torch's own or a kernel's."""
    rows = record.select(operation="stream", status="ok", **wanted)
    return [r for r in rows if r["provider"] in (mix, f"{mix}_copy")]


def rate(row: dict) -> float:
    """Bytes a second by the byte count of the operation."""
    return row["bytes"] / median(row["device_seconds"])


def stream_rate(record, mix: str) -> float:
    """Of the fastest large stream of a mix, bytes a second; NaN without one."""
    every = streams(record, mix)
    large = [row for row in every if row["bytes"] >= LARGE]
    return max((rate(row) for row in large or every), default=nan)


def copies(record) -> list[tuple[int, float]]:
    """(when, rate) of the large copies by a kernel, in the order in which they ran."""
    rows = record.select(operation="stream", provider="1R1W", why="large", status="ok")
    return sorted((row["at"], rate(row)) for row in rows)


def drift(record) -> float:
    """How far the large copies by a kernel lie apart: most / least - 1."""
    rates = [speed for _, speed in copies(record)]
    return max(rates) / min(rates) - 1 if rates else nan


def steady(record) -> Callable[[dict], bool]:
    """Whether the copies before and after a row agree within MOST_DRIFT."""
    known = copies(record)
    times = [at for at, _ in known]

    def held(row: dict) -> bool:
        place = bisect(times, row["at"])
        rates = [speed for _, speed in known[max(0, place - 1) : place + 1]]
        return not rates or max(rates) <= (1 + MOST_DRIFT) * min(rates)

    return held


def unsteady(record) -> set[tuple]:
    """Cells that were timed while the copy drifted: kept, but not compared."""
    held = steady(record)
    return {cell_of(row) for row in _timed(record) if not held(row)}


def share_of_copy(record, row: dict) -> float:
    """A row's rate over that of the large copy."""
    return rate(row) / stream_rate(record, "1R1W")


def share_of_mix(record, row: dict) -> float:
    """A row's rate over that of the stream with its own reads, writes and bytes.

    NaN for both passes together: no single stream is like them.
    """
    if row["operation"] not in MIX:
        return nan
    beside = {name: row[name] for name in CELL if name != "operation"}
    rows = streams(record, MIX[row["operation"]], beside=row["operation"], **beside)
    return rate(row) / max((rate(each) for each in rows), default=nan)


def cell_of(row: dict) -> tuple:
    """What tells one cell from another."""
    return tuple(row[name] for name in CELL)


def cells(record) -> dict[tuple, dict[str, dict]]:
    """Cell -> provider -> its row with a time."""
    found: dict[tuple, dict[str, dict]] = {}
    for row in timed(record):
        found.setdefault(cell_of(row), {})[row["provider"]] = row
    return found


def floor(record) -> float:
    """The noise floor: how far ours is from ours, timed twice, as factor - 1."""
    intervals = [
        ratio_interval(of[AGAIN]["device_seconds"], of[OURS]["device_seconds"])
        for of in cells(record).values()
        if OURS in of and AGAIN in of
    ]
    return noise_floor(intervals) if intervals else 0.0


def faster_peers(record) -> list[tuple[tuple, str, float]]:
    """(cell, peer, ours / peer) where a peer is ahead by more than the floor."""
    least = floor(record)
    found = []
    for cell, of in cells(record).items():
        for peer, row in of.items():
            if peer in (OURS, AGAIN) or OURS not in of:
                continue
            pair = of[OURS]["device_seconds"], row["device_seconds"]
            if ratio(*pair) > 1 and not unresolved(ratio_interval(*pair), least):
                found.append((cell, peer, ratio(*pair)))
    return found


def percent(share: float, digits: int = 0) -> str:
    return NOTHING if isnan(share) else f"{100 * share:.{digits}f} %"


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
    """What every figure of kernels says: rates of streams, drift, floor, failures."""
    device = record.provenance["device"]
    found = {
        "machine": device["name"],
        "floor": percent(floor(record), 1),
        "drift": percent(drift(record), 1),
        "unsteady": str(len(unsteady(record))),
        "wrong": str(len(record.select(status="wrong", case=""))),
        "failed": str(len(record.select(status="failed", case=""))),
        "skipped": str(len(record.select(status="skipped", case=""))),
        "by_events": str(len(record.select(method="event_flush"))),
        "peers_ahead": str(len(faster_peers(record))),
    }
    mixes = {row["provider"] for row in record.select(operation="stream")}
    for mix in sorted(mixes | {"1R1W"}):
        speed = stream_rate(record, mix) / 1e12
        found[f"rate_{mix.lower()}"] = NOTHING if isnan(speed) else f"{speed:.2f} TB/s"
    ours = timed(record, provider=OURS)
    found |= edge_facts(record)
    return found | range_facts("mix", [share_of_mix(record, row) for row in ours])


def edge_facts(record) -> dict[str, str]:
    """How many edge cases there are, and how many of them ours and torch's pass."""
    rows = [row for row in record.select(provider=OURS) if row["case"]]
    passed = [row for row in rows if row["status"] == "ok"]
    peers = [r for r in record.select(provider="torch", status="ok") if r["case"]]
    return {
        "edges": str(len(rows)),
        "edges_passed": str(len(passed)),
        "edges_passed_torch": str(len(peers)),
    }


def line(record, operation: str, provider: str, **wanted) -> dict[int, float]:
    """Width -> share of the copy, at the most rows, gain and input in one dtype."""
    rows = timed(record, operation=operation, provider=provider, **wanted)
    dtypes = {row["dtype"] for row in rows}
    dtype = "bfloat16" if "bfloat16" in dtypes else "float32"
    found: dict[int, tuple[int, float]] = {}
    for row in rows:
        share = row["rows"], share_of_copy(record, row)
        if row["dtype"] == row["gain_dtype"] == dtype and not isnan(share[1]):
            found[row["width"]] = max(found.get(row["width"], share), share)
    return {width: share for width, (_, share) in sorted(found.items())}


def share_facts(
    record, operations: Sequence[str], providers: Sequence[str]
) -> dict[str, str]:
    """Shares by operation, width and provider; ours at its least and most."""
    found = {}
    for operation in operations:
        for provider in providers:
            shares = line(record, operation, provider)
            for width, share in shares.items():
                found[f"{operation}_{width}_{provider}"] = percent(share)
        ours = line(record, operation, OURS).values()
        found |= range_facts(operation, ours)
    return found
