"""From how many tokens on does a norm cost its bytes, and not its launch?

Norms on 1 to 2048 rows, as decoding asks for them: the data of one set stay in the
cache, and two times are taken, that of the device in a CUDA graph, where a launch is
cheap, and that of the caller in eager mode, where the host sets the pace. An empty
kernel and the time that the bytes alone would take stand beside them.

The caller's time is also that of a forward and a backward pass, through the functions
that users call, on thousands of rows and cold sets: what training with a norm waits.
"""

from functools import partial

from scripts.measure.design import Design
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.records import Step

DEVICE = "gpu"
SEEDS = (0,)
METHOD = (
    "device time: CUDA graph of launches on one set of inputs, warm caches, its "
    "replays timed by triton.testing.do_bench, providers interleaved in 10 rounds; "
    "caller's time: 100 calls in eager mode and one synchronization, 10 times; "
    "forward and backward pass by autograd: 10 calls a sample, over sets of four "
    "times the L2 cache; gate: float64"
)
OPERATIONS = ("rms_norm", "layer_norm", "add_rms_norm")
BOTH = tuple(f"{name}_forward_backward" for name in OPERATIONS)
PROVIDERS = ("ours", "ours_again", "torch", "torch_unfused", "compile", "liger")
FEW = (1, 512, 8, 32, 128, 2048)  # rows; the first two of RMSNorm come first
SIZES = {"tiny": {}, "small": {}, "full": {}}


def empty(size: str) -> list[dict]:
    """Times of a kernel that does nothing: the price of a launch."""
    import torch

    from scripts.measure.kernels import rows, timing
    from scripts.measure.kernels.cells import Cell
    from snippets.memory_bound.empty import nothing

    timing.stream()
    x = torch.zeros(1, device=rows.here())
    calls = {"empty": [lambda: nothing[(1,)](x)]}
    rounds = 2 if size == "tiny" else timing.ROUNDS
    timed = timing.device_times(calls, rounds)["empty"]
    found = dict(
        method=timed.method,
        sets=1,
        launches=timed.launches,
        device_seconds=timed.seconds,
        call_seconds=timing.call_times(calls, rounds, 100)["empty"],
    )
    return [rows.row(Cell("empty", 1, 1), "empty", **found)]


def measure(size: str) -> list[Step]:
    """One step is one cell; the first ones are the empty kernel and RMSNorm's few."""
    from scripts.measure.kernels import steps
    from scripts.measure.kernels.cells import Cell

    tiny = size == "tiny"
    dtype = "float32" if tiny else "bfloat16"
    names = PROVIDERS[:3] if tiny else PROVIDERS
    width, few, first = (16, (1, 8), (12, 16)) if tiny else (4096, FEW, (16_384, 4096))

    def forward(cells, turn):
        made = [Cell(name, rows, width, dtype) for rows, name in cells]
        return steps.of(made, size, turn, names, 2 if tiny else 100, cold=False)

    def both(operations, turn):
        made = [Cell(name, *first, dtype) for name in operations]
        return steps.of(made, size, turn, names, 2 if tiny else 10)

    head = [(rows, OPERATIONS[0]) for rows in few[:2]]
    rest = [(rows, name) for rows in few for name in OPERATIONS]
    return [
        Step({"operation": "empty"}, partial(empty, size)),
        *steps.copy(size),
        *forward(head, 0),
        *both(BOTH[:1], 1),
        *forward([each for each in rest if each not in head], steps.REST),
        *both(BOTH[1:], steps.REST),
    ]


# What was asked, and how it was held equal ---------------------------------

DESIGN = Design(says=("none",), arms=PROVIDERS, **design_words(__file__))


# What the page says -------------------------------------------------------


def _times(record, operation: str, width: int, provider: str, which: str) -> dict:
    """Rows -> median microseconds, on the device or for the caller."""
    from statistics import median

    from scripts.measure.kernels import report

    found = report.timed(record, operation=operation, width=width, provider=provider)
    return {row["rows"]: 1e6 * median(row[which]) for row in found if row[which]}


def _launch(record, which: str) -> list[float]:
    """Seconds of the empty kernel; none where it was not timed."""
    return [
        each for row in record.select(operation="empty") for each in row[which] or []
    ]


def _both_facts(record) -> dict[str, str]:
    """Times of both passes, by width; what the caller waits, over ours."""
    from scripts.measure.kernels import report
    from scripts.measure.spread import ratio

    found, factors = {}, {}
    for (operation, *_), of in report.cells(record).items():
        if operation not in BOTH:
            continue
        for provider, row in of.items():
            for which in ("device", "call"):
                name = f"{operation}_{row['width']}_{provider}_{which}"
                found[name] = report.microseconds(row[f"{which}_seconds"])
            if provider != "ours" and "ours" in of:
                factor = ratio(row["call_seconds"], of["ours"]["call_seconds"])
                factors.setdefault(f"{operation}_{provider}", []).append(factor)
    for name, each in factors.items():
        found[f"{name}_over_ours_least"] = f"{min(each):.1f}"
        found[f"{name}_over_ours_most"] = f"{max(each):.1f}"
    return found


def _width(record) -> int:
    """The least width that was timed; 0 if none was yet."""
    found = {row["width"] for row in record.rows if row["operation"] in OPERATIONS}
    return min(found, default=0)


def facts(record) -> dict[str, str]:
    from math import isfinite, nan
    from statistics import median

    from scripts.measure.kernels import report

    found = report.common_facts(record)
    launch = _launch(record, "device_seconds")
    found["empty_device"] = report.microseconds(launch)
    found["empty_call"] = report.microseconds(_launch(record, "call_seconds"))
    least = _width(record)
    found["width"] = str(least)
    for operation in OPERATIONS:
        for provider in PROVIDERS:
            for which in ("device", "call"):
                times = _times(record, operation, least, provider, f"{which}_seconds")
                for count, value in times.items():
                    name = f"{operation}_{count}_{provider}_{which}"
                    found[name] = report.microseconds([value / 1e6])
        few = _times(record, operation, least, report.OURS, "device_seconds")
        few = [value / 1e6 for count, value in few.items() if count <= 32]
        most = [max(few)] if few else None
        found[f"{operation}_few_rows"] = report.microseconds(most)
    # Where the bytes, at the rate of the copy, take as long as an empty kernel.
    bytes_of_row = 4 * least
    price = median(launch) if launch else nan
    rows = report.copy_rate(record) * price / max(1, bytes_of_row)
    found["crossover_rows"] = f"{rows:.0f}" if isfinite(rows) else report.NOTHING
    return found | _both_facts(record)


WORDS = figure_words(__file__)


def plot(record, words):
    from statistics import median

    from scripts.measure import figures
    from scripts.measure.kernels import report

    width = _width(record)
    figure, axes = figures.new_figure(words, record, rows=2, height=7.0, sharex=True)
    copy = report.copy_rate(record)
    shown = [name for name in PROVIDERS if name != report.AGAIN]
    for axis, which in zip(axes, ("device", "call"), strict=True):
        for series, provider in enumerate(shown):
            line = _times(record, "rms_norm", width, provider, f"{which}_seconds")
            if line:
                drawn = {**figures.style(series), "markersize": 4.5}
                places, times = zip(*sorted(line.items()), strict=True)
                axis.plot(places, times, label=words[provider], **drawn)
        high = axis.get_xlim()[1]
        launch = _launch(record, f"{which}_seconds")
        grey = dict(color=figures.MUTED, linewidth=1.2, marker="none")
        few = report.timed(record, operation="rms_norm", width=width)
        counts = sorted({row["rows"] for row in few})
        model = [1e6 * 4 * width * rows / copy for rows in counts]
        axis.plot(counts, model, linestyle=figures.LINES[2], **grey)
        if launch and counts:
            price = 1e6 * median(launch)
            axis.axhline(price, linestyle=figures.LINES[1], **grey)
            drawn = {"color": figures.MUTED, "ha": "right", "va": "top"}
            axis.text(high, price, words["empty"], **drawn)
            edge = min(price * copy / (1e6 * 4 * width), counts[-1])
            if edge > counts[0]:
                axis.axvspan(
                    counts[0], edge, color=figures.MUTED, alpha=0.08, linewidth=0
                )
        axis.text(
            0.02, 0.97, words["region"], color=figures.MUTED,
            transform=axis.transAxes, va="top",
        )  # fmt: skip
        axis.set_title(words[which])
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_ylabel(words["time"])
        figures.plain_log(axis.yaxis)
    axes[-1].set_xlabel(words["rows"])
    figures.legend(figure)
    figures.footer(figure, record, words, words["band"])
    return figure
