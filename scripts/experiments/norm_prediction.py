"""How close to a copy should each kernel come, by what the compiler made of it?

From the record of kernel_resources and a written model, before any GPU ran: bytes, the
time of a copy of as many, bytes that an SM has on their way, and the share of the copy.
Every parameter of the model has three values, worst, middle and best: the share is that
of the middle ones, the range that of all worst and all best. A row is one kernel at one
shape on one card; `compiled` is a digest of the compiled facts that it rests on. Where
a GPU has a record, the facts hold what was measured beside what was predicted.
"""

import hashlib
from functools import partial
from math import ceil, nan

from scripts.measure.design import Design
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.records import RecordError, Step, find

DEVICE = "cpu"
SEEDS = ()
METHOD = (
    "computed from the record of kernel_resources, nothing ran: time is bytes over the "
    "rate of a copy, and on top what no other tile hides of a load's latency, spilled "
    "registers, rows read twice, an uneven last round, and the start of each kernel; "
    "the copy is taken to reach nine tenths of the datasheet"
)
# Worst, middle, best. Only the latency's best value has a source: a single access of an
# H100, guo2025quack. All others are assumptions that a measurement is to correct.
LATENCY = (1.2e-6, 0.8e-6, 0.4e-6)  # seconds, of a load under load
STREAMED = (0.96, 0.98, 1.0)  # of the copy, by a kernel that hides all latency
START = (3e-6, 2e-6, 1e-6)  # seconds from one kernel of a graph to the next
FROM_MEMORY = (1.0, 0.5, 0.0)  # of what is read twice, the share that the L2 has lost
SPILLED = (1.0, 1.0, 0.5)  # of the time of spilled registers, what is not hidden
LOCAL = 64 * 1.7e9  # bytes a second of an SM's L1, where spilled registers go
CASES = range(3)
RANGE = ("worst", "share", "best")  # what a row holds of each case
BYTES = ("bytes_best", "bytes_worst")
WIDTHS = (1024, 2048, 4096, 8192, 16_384)
SHAPES = (  # operation, widths, as the benchmarks time them
    ("rms_norm", (*WIDTHS, 32_768, 65_536)),
    ("layer_norm", WIDTHS),
    ("add_rms_norm", (4096, 16_384)),
    ("rms_norm_backward", WIDTHS),
    ("layer_norm_backward", WIDTHS),
    ("rms_norm", (128,)),
    ("rms_norm_backward", (128,)),
    ("one_row", (4096, 32_768, 65_536)),
    ("in_pieces", (65_536,)),
    ("qk_norm_rope", (128,)),
)
VERSIONS = ("one_row", "in_pieces")  # of RMSNorm's forward kernel, for comparison
SIZE = 2  # bfloat16


def cell(operation: str, width: int):
    """The cell that is timed."""
    from scripts.measure.kernels.cells import Cell, heads, shape

    operation = "rms_norm" if operation in VERSIONS else operation
    return heads(operation, width) if width == 128 else Cell(operation, *shape(width))


# The model --------------------------------------------------------------------


def held(kernel: dict) -> tuple[int, int]:
    """Rows and elements of a tile."""
    pairs = dict(each.split("=") for each in kernel["constants"].split())
    rows, columns = int(pairs.get("ROWS", 1)), int(pairs["COLUMNS"])
    return rows, rows * columns * (2 if "HALF" in pairs else 1)  # both halves of a head


def flight(kernel: dict, reads: int, sms: int) -> tuple[int, int]:
    """Tiles that an SM has on their way, and the bytes that are read of each."""
    tile = held(kernel)[1] * SIZE * reads
    buffers = kernel["shared"] // tile if kernel["async_copies"] else 1
    buffers = kernel.get("buffers") or max(1, buffers)
    return buffers * min(kernel["programs"], ceil(kernel["grid"] / sms)), tile


def carried(cell, kernels: list[dict], case: int) -> float:
    """The bytes that the kernels of a cell move, the main one first."""
    from scripts.measure.kernels.cells import moved

    (main, *others), (reads, _) = kernels, cell.spec.streams
    tensor = cell.rows * cell.width * SIZE
    wide = main["kernel"].endswith("_wide")
    total = moved(cell)
    if wide:
        total += FROM_MEMORY[case] * reads * tensor
    if any(each["kernel"].endswith(("_gradient", "_gradients")) for each in others):
        total += reads * tensor  # a kernel of its own for the gain reads all again
    if cell.backward:  # partial sums are written and read
        total += 8 * main["grid"] * cell.width * (cell.spec.gains - 1) * (not wide)
    return total


def seconds(cell, kernels: list[dict], card, rate: float, case: int) -> float:
    """The time of a cell by its kernels, the main one first."""
    main, (reads, writes) = kernels[0], cell.spec.streams
    # A tile takes this long at the rate of the copy; the others hide its latency.
    tiles, read = flight(main, reads, card.sms)
    tile = read * (reads + writes) / reads / (rate / card.sms)
    exposed = max(0.0, LATENCY[case] - (tiles - 1) * tile)
    spilled = 2 * main["stack"] * main["warps"] * 32 / LOCAL
    slower = (tile + exposed + SPILLED[case] * spilled) / tile
    rounds = 1.0
    if "STAGES" in main["constants"]:  # as many tiles for each, the last round uneven
        each = cell.rows / held(main)[0] / main["grid"]
        rounds = ceil(each) / each
    starts = START[case] * len(kernels)
    total = carried(cell, kernels, case)
    return total / rate / STREAMED[case] * slower * rounds + starts


# Rows -------------------------------------------------------------------------


def compiled() -> dict[tuple, list[dict]]:
    """(operation, width) -> its kernels in bfloat16, the main one first."""
    recorded = [each for each in find("kernel_resources") if each.steps is None]
    if not recorded:
        raise RecordError("norm_prediction needs the record of kernel_resources")
    found: dict[tuple, list[dict]] = {}
    for row in recorded[0].select(dtype="bfloat16"):
        name = row["operation"].removesuffix("_forward")
        found.setdefault((name, row["width"]), []).append(row)
    return found


def row(operation: str, width: int, name: str) -> dict:
    """One kernel at one shape on one card."""
    from scripts.measure.kernels.cards import CARDS, COPY
    from scripts.measure.kernels.cells import moved

    made, card, kernels = cell(operation, width), CARDS[name], compiled()
    kernels = kernels[operation, width]
    rate = COPY * card.bandwidth
    floor = moved(made) / rate
    times = [seconds(made, kernels, card, rate, case) for case in CASES]
    tiles, read = flight(kernels[0], made.spec.streams[0], card.sms)
    known = repr([sorted(each.items()) for each in kernels])
    return {
        "operation": operation,
        "rows": made.rows,
        "width": width,
        "layout": made.layout,
        "card": name,
        "bytes": moved(made),
        "bytes_worst": round(carried(made, kernels, 0)),
        "bytes_best": round(carried(made, kernels, 2)),
        "floor_seconds": floor,
        "tiles_in_flight": tiles,
        "bytes_in_flight": tiles * read,
        "seconds": times[1],
        "worst": floor / times[0],
        "share": floor / times[1],
        "best": floor / times[2],
        "compiled": hashlib.sha256(known.encode()).hexdigest()[:12],
    }


def measure(size: str) -> list[Step]:
    """One step is one operation on one card; the same at every size but tiny."""
    from scripts.measure.kernels.cards import CARDS

    def run(operation: str, widths: tuple[int, ...], card: str) -> list[dict]:
        return [row(operation, width, card) for width in widths]

    return [
        Step(
            {"operation": operation, "widths": list(widths), "card": card},
            partial(run, operation, widths, card),
        )
        for operation, widths in (SHAPES[-1:] if size == "tiny" else SHAPES)
        for card in CARDS
    ]


# What was asked, and how it was held equal ---------------------------------

DESIGN = Design(says=("none",), arms=("h100", "h200"), **design_words(__file__))


# What the page says -------------------------------------------------------


def measured(row: dict) -> float:
    """The share that this site's kernel reached on the card; NaN without a record."""
    from scripts.measure.kernels import cards, report

    wanted = {name: row[name] for name in ("operation", "rows", "width", "layout")}
    for record in cards.of(cards.CARDS[row["card"]], cards.RECORDED[:3]):
        for found in report.timed(record, provider=report.OURS, **wanted):
            if found["dtype"] == "bfloat16":
                return report.share_of_copy(record, found)
    return nan


def facts(record) -> dict[str, str]:
    from scripts.measure.kernels import cards, report

    found = {
        "date": record.date,
        "copy": report.percent(cards.COPY),
        "latency": " / ".join(f"{1e6 * each:.1f}" for each in LATENCY) + " µs",
        "start": " / ".join(f"{1e6 * each:.0f}" for each in START) + " µs",
        "streamed": " / ".join(report.percent(each) for each in STREAMED),
        "from_memory": " / ".join(report.percent(each) for each in FROM_MEMORY),
        "spilled": " / ".join(report.percent(each) for each in SPILLED),
        "local": f"{LOCAL / 1e9:.0f} GB/s",
    }
    for name, card in cards.CARDS.items():
        rate, copies = cards.copy_rate(card), cards.copies(card)
        ridge = card.float32 / max(copies, default=card.bandwidth)
        found |= {
            f"{name}_bandwidth": f"{card.bandwidth / 1e12:.2f} TB/s",
            f"{name}_copy": f"{rate / 1e12:.2f} TB/s",
            f"{name}_copies": str(len(copies)),
            f"{name}_ridge": f"{ridge:.0f}",
            f"{name}_needed": f"{LATENCY[1] * rate / card.sms / 1024:.0f} KiB",
        }
        shares, within = [], 0
        for each in record.select(card=name):
            start = f"{each['operation']}_{each['width']}"
            share = measured(each)
            if share == share:
                shares.append(share)
                within += each["worst"] <= share <= each["best"]
            at = f"{name}_{start}"
            found[f"{start}_bytes"] = f"{each['bytes'] / 1e6:.0f}"
            ends = (each[n] / each["rows"] / each["width"] for n in BYTES)
            least, most = (f"{end:.1f}" for end in ends)
            found[f"{start}_per_element"] = least + f"–{most}" * (most != least)
            found[f"{start}_flight"] = f"{each['bytes_in_flight'] / 1024:.0f}"
            # By the card's own copy once there is one.
            found[f"{at}_floor"] = f"{1e6 * each['bytes'] / rate:.0f}"
            found[f"{at}_share"] = report.percent(each["share"])
            three = (each[case] for case in RANGE)
            found[f"{at}_predicted"] = "·".join(f"{100 * share:.0f}" for share in three)
            found[f"{at}_measured"] = report.percent(share).removesuffix("%")
        found[f"{name}_measured"] = str(len(shares))
        found[f"{name}_within"] = str(within)
    return found


WORDS = figure_words(__file__)


SAME = 0.005  # shares this near each other are one line


def _drawn(record, name: str) -> dict[str, list[dict]]:
    """Words of each line of a card -> its rows; forward both norms may share one."""
    found = {}
    for start in ("rms_norm", "layer_norm"):
        for operation in (start, start + "_backward"):
            rows = record.select(card=name, operation=operation)
            found[operation] = [row for row in rows if row["width"] in WIDTHS]
    pairs = zip(found["rms_norm"], found["layer_norm"], strict=True)
    if all(abs(a[case] - b[case]) < SAME for a, b in pairs for case in RANGE):
        found.pop("layer_norm")
        found = {"both_norms": found.pop("rms_norm")} | found
    return found


def plot(record, words):
    from dataclasses import replace

    from scripts.measure import figures
    from scripts.measure.kernels.cards import CARDS

    figure, axes = figures.new_figure(words, record, rows=2, height=6.4, sharex=True)
    for axis, name in zip(axes, CARDS, strict=True):
        for operation, rows in _drawn(record, name).items():
            line = figures.LINES[operation.endswith("_backward")]
            drawn = figures.style(int(operation.startswith("layer")))
            middle = [100 * each["share"] for each in rows]
            reach = [
                [100 * (each["share"] - each["worst"]) for each in rows],
                [100 * (each["best"] - each["share"]) for each in rows],
            ]
            places = [each["width"] for each in rows]
            drawn |= {"linestyle": line, "markersize": 4, "label": words[operation]}
            axis.errorbar(places, middle, reach, capsize=2, **drawn)
        for row in record.select(card=name):
            if row["width"] in WIDTHS and row["operation"] in words:
                there = 100 * measured(row)
                axis.plot(row["width"], there, "x", color=figures.INK, markersize=7)
        axis.set_title(CARDS[name].name)
        axis.set_xscale("log", base=2)
        axis.set_ylabel(words["share"])
    axes[-1].set_xlabel(words["width"])
    handles, labels = axes[0].get_legend_handles_labels()
    figures.legend(figure, handles, labels)
    told = {k: v for k, v in record.provenance.items() if k != "date"}  # in the band
    figures.footer(figure, replace(record, provenance=told), words, words["band"])
    return figure
