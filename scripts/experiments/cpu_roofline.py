"""What a norm takes on a CPU, predicted from its bytes and then measured.

In each cell a plain stream of the same size comes first: a copy for the forward
pass, the sum of two tensors for the backward pass, with both kinds of stores. What a
norm is to take follows from the stream's time, from the bytes that both must move, and
from the time of a call on one short row; only then is it timed, in rounds, with the
streams among them. float32, rows of 1024 numbers, from the nearest cache to beyond the
last one; one thread and all cores. Streams and norms alike write into a tensor that is
allocated in the call.

Providers: the norms operation by operation as on the page on speed, the same compiled,
torch's own functions, and a fused C++ kernel, timed twice under two names: their
difference is the noise floor. The kernel writes past the caches where the stream was
faster that way. Gradients are those of input, gain and bias, through autograd.

A row holds one provider in one cell: `seconds` is the list of its samples, each the
mean over `inner` calls, `start` a call on one short row, `predicted` what start
and bytes say (none where the number of bytes is not known), `past` the kind of stores.
"""

from functools import partial

from scripts.measure import spread
from scripts.measure.design import Design
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.records import Step

DEVICE = "cpu"
SEEDS = (0,)
METHOD = (
    "wall clock on the CPU, providers and streams interleaved in random order in every "
    "round, freed memory kept by the process; predictions are made in each cell from "
    "the streams before any norm is timed"
)
EPS = 1e-5
ROWS = tuple(2 * 4**i for i in range(8))  # 16 KiB to 256 MiB for x and y
SETTINGS = {
    "tiny": dict(
        rows=(1, 4), width=64, rounds=3, least=1e-4, warmup=0.0, backend="eager"
    ),
    "small": dict(
        rows=ROWS, width=1024, rounds=31, least=4e-3, warmup=0.03, backend="inductor"
    ),
}
SIZES = SETTINGS
ONE, ALL = "one", "all"  # threads
FORWARD, BACKWARD = "forward", "backward"
RMS, LN = "RMSNorm", "LayerNorm"

STREAM, STREAM_PAST = "stream", "stream past the caches"
HAND, COMPILED, TORCH = "by hand", "compiled", "torch"
KERNEL, CONTROL = "kernel", "kernel, again"
PROVIDERS = (HAND, COMPILED, TORCH, KERNEL, CONTROL)

# Large tensors read and written, of four bytes a number: the operations by hand as
# in snippets/speed/byte_count.py, in float32 without the casts.
FUSED = {FORWARD: 2, BACKWARD: 3}
CHAIN = {RMS: 7, LN: 12}  # forward
ALONE = {RMS: False, LN: True}  # whether torch's own is one kernel on a CPU


def _threads(name: str) -> int:
    import os

    return 1 if name == ONE else len(os.sched_getaffinity(0))


def _tensors(rows: int, width: int) -> tuple:
    import torch

    generator = torch.Generator().manual_seed(SEEDS[0])
    x = torch.randn(rows, width, generator=generator) * 5 + 2
    gain = 1 + 0.1 * torch.randn(width, generator=generator)
    bias = 0.1 * torch.randn(width, generator=generator)
    return x, gain, bias


def _norms(past: bool, backend: str) -> dict:
    """(norm, provider) -> function of x, gain and bias."""
    import torch
    from torch.nn import functional

    from snippets.memory_bound.cpu_norms import fused_norm
    from snippets.speed.handwritten import hand_layer_norm_without_var, hand_rms_norm

    torch.compiler.reset()
    layer_norm, rms_norm = hand_layer_norm_without_var, hand_rms_norm
    compiled = {
        norm: torch.compile(norm, backend=backend) for norm in (layer_norm, rms_norm)
    }

    def kernel(norm):
        if norm == RMS:
            return lambda x, gain, bias: fused_norm(x, gain, None, EPS, past)
        return lambda x, gain, bias: fused_norm(x, gain, bias, EPS, past)

    def own_rms(x, gain, bias):
        return functional.rms_norm(x, gain.shape, gain, EPS)

    def own_layer(x, gain, bias):
        return functional.layer_norm(x, gain.shape, gain, bias, EPS)

    found = {
        (RMS, HAND): lambda x, gain, bias: rms_norm(x, gain, EPS),
        (RMS, COMPILED): lambda x, gain, bias: compiled[rms_norm](x, gain, EPS),
        (RMS, TORCH): own_rms,
        (LN, HAND): lambda x, gain, bias: layer_norm(x, gain, bias, EPS),
        (LN, COMPILED): lambda x, gain, bias: compiled[layer_norm](x, gain, bias, EPS),
        (LN, TORCH): own_layer,
    }
    for norm in (RMS, LN):
        found[norm, KERNEL] = kernel(norm)
        found[norm, CONTROL] = kernel(norm)
    return found


def _calls(norms: dict, direction: str, x, gain, bias) -> dict:
    """(norm, provider) -> call without arguments, on the same tensors."""
    import torch

    if direction == FORWARD:
        return {name: partial(norm, x, gain, bias) for name, norm in norms.items()}
    upstream = torch.randn(x.shape, generator=torch.Generator().manual_seed(1))
    calls = {}
    for (norm, provider), function in norms.items():
        leaves = [t.clone().requires_grad_() for t in (x, gain, bias)]
        y = function(*leaves)
        wanted = leaves if norm == LN else leaves[:2]
        calls[norm, provider] = partial(
            torch.autograd.grad, y, wanted, upstream, retain_graph=True
        )
    return calls


def _tensors_moved(norm: str, provider: str, direction: str) -> int | None:
    """How many large tensors the provider reads and writes; None: not known."""
    fused = provider in (COMPILED, KERNEL, CONTROL)
    if fused or (provider == TORCH and ALONE[norm]):
        return FUSED[direction]
    return CHAIN[norm] if direction == FORWARD else None


def _run(setting: dict, threads: str, direction: str, rows: int) -> list[dict]:
    import torch
    from torch._functorch import config

    from scripts.measure import timing

    width = setting["width"]
    rounds = max(3, min(setting["rounds"], 300_000 // rows))
    taking = dict(rounds=rounds, least=setting["least"], warmup=setting["warmup"])
    with (
        timing.fixed_threads(_threads(threads)) as count,
        timing.freed_memory(True),
        torch.set_grad_enabled(direction == BACKWARD),
        config.patch(donated_buffer=False),  # a backward pass is repeated
    ):
        x, gain, bias = _tensors(rows, width)
        second = x.flip(0) if direction == BACKWARD else None
        streams = _streams(x, second)
        first = timing.time_together(streams, **taking, seed=SEEDS[0])
        took = {name: _middle(found.seconds) for name, found in first.items()}
        past = took[STREAM_PAST] < took[STREAM]
        row = _tensors(1, 16)
        norms = _norms(past, setting["backend"])
        short = _calls(norms, direction, *row) | _streams(
            row[0], None if second is None else row[0]
        )
        start = {
            name: _middle(found.seconds)
            for name, found in timing.time_together(
                short, **taking, seed=SEEDS[0]
            ).items()
        }
        for name in streams:
            took[name] = max(0.0, took[name] - start[name])
        norms = _norms(past, setting["backend"])  # compiled anew for this shape alone
        calls = _calls(norms, direction, x, gain, bias)
        predicted = {
            name: _predicted(
                _tensors_moved(*name, direction),
                FUSED[direction],
                min(took.values()) if name[1] in (KERNEL, CONTROL) else took[STREAM],
                start[name],
            )
            for name in calls
        }
        samples = timing.time_together({**streams, **calls}, **taking, seed=SEEDS[0])
    shared = dict(
        threads=threads, thread_count=count, direction=direction, rows=rows, width=width
    )
    return [
        {
            **shared,
            "norm": None if name in streams else name[0],
            "provider": name if name in streams else name[1],
            "past": past if name not in streams else name == STREAM_PAST,
            "start": start[name],
            "predicted": predicted.get(name),
            "inner": found.inner,
            "seconds": found.seconds,
        }
        for name, found in samples.items()
    ]


def _streams(a, b) -> dict:
    """Copies of a tensor, or sums of two, with either kind of stores."""
    import torch

    from snippets.memory_bound.cpu_norms import copy_or_add

    def stream(past: bool) -> None:
        copy_or_add(torch.empty_like(a), a, b, past)

    return {STREAM: partial(stream, False), STREAM_PAST: partial(stream, True)}


def _middle(samples: list[float]) -> float:
    from statistics import median

    return median(samples)


def _predicted(
    moved: int | None, streamed: int, stream: float, start: float
) -> float | None:
    """Seconds: the start of a call, and its tensors at the rate of the stream."""
    return None if moved is None else start + moved / streamed * stream


def measure(size: str) -> list[Step]:
    return [
        Step(cell, partial(_run, SETTINGS[size], **cell))
        for threads in (ONE, ALL)
        for direction in (FORWARD, BACKWARD)
        for rows in SETTINGS[size]["rows"]
        for cell in [dict(threads=threads, direction=direction, rows=rows)]
    ]


# What was asked, and how it was held equal ---------------------------------

DESIGN = Design(
    says=("none",),
    arms=(STREAM, STREAM_PAST, *PROVIDERS),
    **design_words(__file__),
)


# What the page says -------------------------------------------------------

SHORT = {RMS: "rms", LN: "ln", HAND: "hand", COMPILED: "compiled", TORCH: "torch"}
SHORT |= {KERNEL: "kernel"}
DRAWN = (KERNEL, COMPILED, TORCH, HAND)


def _cells(record) -> dict:
    """(threads, direction, rows) -> (norm, provider) -> row."""
    found: dict = {}
    for row in record.rows:
        cell = (row["threads"], row["direction"], row["rows"])
        found.setdefault(cell, {})[row["norm"], row["provider"]] = row
    return found


def _interval(over: dict, under: dict) -> tuple[float, float]:
    return spread.ratio_interval(over["seconds"], under["seconds"], resamples=500)


def _best_stream(cell: dict) -> dict:
    """The row of the faster of the two streams."""
    streams = (cell[None, STREAM], cell[None, STREAM_PAST])
    return min(streams, key=lambda row: _middle(row["seconds"]))


def _moved(row: dict) -> int:
    """Bytes that cannot be avoided: the large tensors of a fused pass."""
    return FUSED[row["direction"]] * row["rows"] * row["width"] * 4


def _rate(row: dict) -> float:
    """GB/s, by the bytes that cannot be avoided."""
    return _moved(row) / _middle(row["seconds"]) / 1e9


def _ratio(facts: dict, name: str, over: dict, under: dict, floor: float) -> None:
    """The ratio of two times and its interval, widened by the noise floor."""
    low, high = _interval(over, under)
    facts[name] = f"{spread.ratio(over['seconds'], under['seconds']):.2f}"
    facts[f"{name}_interval"] = f"{low / (1 + floor):.2f}–{high * (1 + floor):.2f}"


def _floor(cell: dict) -> float:
    """The noise floor of one cell, as a factor - 1: the kernel against itself."""
    pairs = [(cell[norm, CONTROL], cell[norm, KERNEL]) for norm in (RMS, LN)]
    return spread.noise_floor([_interval(*pair) for pair in pairs])


def _ahead_from(cells: dict, threads: str, direction: str, norm: str) -> str:
    """The least size from which on the kernel leads by more than the noise floor."""
    least = "—"
    for (each, way, _), cell in sorted(cells.items(), key=lambda c: -c[0][2]):
        if (each, way) != (threads, direction):
            continue
        others = min(_middle(cell[norm, p]["seconds"]) for p in (TORCH, COMPILED))
        if others / _middle(cell[norm, KERNEL]["seconds"]) <= 1 + _floor(cell):
            break
        least = spread.size(_moved(cell[norm, KERNEL]))
    return least


def facts(record) -> dict[str, str]:
    cells = _cells(record)
    far = max(rows for *_, rows in cells)
    every = next(row for row in record.rows if row["threads"] == ALL)
    found = {
        "machine": record.device,
        "threads": str(every["thread_count"]),
        "noise": f"{100 * _floor(cells[ALL, FORWARD, far]):.2g}%",
        "width": str(every["width"]),
    }
    for (threads, direction, rows), cell in cells.items():
        if rows != far:
            continue
        end = f"_{direction}_{threads}"
        stream, floor = _best_stream(cell), _floor(cell)
        rms, layer = cell[RMS, KERNEL], cell[LN, KERNEL]
        found[f"stream{end}"] = f"{_rate(stream):.3g}"
        found[f"far{end}"] = spread.size(_moved(stream))
        net = _middle(stream["seconds"]) - stream["start"]
        found[f"drift{end}"] = f"{net / (rms['predicted'] - rms['start']):.2f}"
        _ratio(found, f"ln_over_rms{end}", layer, rms, floor)
        for norm, kernel in ((RMS, rms), (LN, layer)):
            name = f"{SHORT[norm]}{end}"
            share = spread.ratio(stream["seconds"], kernel["seconds"])
            found[f"share_{name}"] = f"{100 * share:.0f}%"
            found[f"ahead_{name}"] = _ahead_from(cells, threads, direction, norm)
            for provider in DRAWN:
                row, fact = cell[norm, provider], f"{SHORT[provider]}_{name}"
                took = _middle(row["seconds"])
                found[f"time_{fact}"] = spread.duration(took)
                found[f"start_{fact}"] = spread.duration(row["start"])
                if row["predicted"] is not None:
                    found[f"predicted_{fact}"] = spread.duration(row["predicted"])
                    found[f"off_{fact}"] = f"{took / row['predicted']:.2f}"
                if provider != KERNEL:
                    over = f"{SHORT[provider]}_over_kernel_{name}"
                    _ratio(found, over, row, kernel, floor)
    return found


WORDS = figure_words(__file__)


def plot(record, words):
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    from scripts.measure import figures

    figure, (above, below) = figures.new_figure(
        words, record, rows=2, height=7.0, sharex=True
    )
    cells = {
        rows: cell
        for (threads, direction, rows), cell in sorted(_cells(record).items())
        if (threads, direction) == (ALL, FORWARD)
    }
    sizes = [_moved(cell[RMS, KERNEL]) for cell in cells.values()]
    streams = [_rate(_best_stream(cell)) for cell in cells.values()]
    (line,) = above.plot(
        sizes, streams, color=figures.INK, marker="none", linestyle="-", linewidth=1.2
    )
    handles, labels = [line], [words["stream"]]
    for place, provider in enumerate(DRAWN):
        rows = [cell[RMS, provider] for cell in cells.values()]
        drawn = figures.style(place)
        (line,) = above.plot(sizes, [_rate(row) for row in rows], **drawn)
        off = [_middle(row["seconds"]) / row["predicted"] for row in rows]
        below.plot(sizes, off, **drawn)
        handles.append(line)
        labels.append(words[provider])
    below.axhspan(0.9, 1.1, color=figures.PANEL, zorder=0)
    below.axhline(1, color=figures.MUTED, linewidth=1)
    above.set_title(words["rates"])
    below.set_title(words["against"])
    for axis in (above, below):
        axis.set_yscale("log")
    below.set_xscale("log", base=2)
    figures.plain_log(above.yaxis)
    low, high = below.get_ylim()
    below.set_ylim(min(low, 0.5), max(high, 2))
    below.yaxis.set_major_locator(FixedLocator([0.25, 0.5, 1, 2, 4, 8]))
    below.yaxis.set_minor_locator(NullLocator())
    below.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    below.set_xticks(sizes[::2], [spread.size(moved) for moved in sizes[::2]])
    below.set_xlabel(words["size"])
    figures.legend(figure, handles, labels)
    figures.footer(figure, record, words, words["band"])
    return figure
