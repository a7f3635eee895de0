"""Which norm is faster on a CPU: LayerNorm or RMSNorm, by hand or from PyTorch?

The hand-written functions of the page are timed against torch.nn.LayerNorm
and torch.nn.RMSNorm on the same tensors. x.mean and x.var alone show where
the time goes. Wall clock; in every round each provider gives one sample, in
random order; every sample repeats the call until it lasts several
milliseconds; one thread; no gradients, except in the cell `forward and
backward`. The hand-written RMSNorm is timed twice under two names: their
difference is the noise floor. The measurement is of the CPU also on a machine
with a GPU.

Operations one by one need memory for every intermediate tensor. In most cells
freed memory is kept by the process, so that the work itself is timed; in the
cells `returned` it goes back to the system, and each new tensor costs page
faults. A plain script gets either, depending on what it did before.

A row holds one provider in one cell: `seconds` is the list of its samples,
each the mean over `inner` calls; `faults` is page faults a call.
"""

from functools import cache, partial

from scripts.measure import spread
from scripts.measure.design import Design
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.records import Step

DEVICE = "cpu"
SEEDS = (0,)
METHOD = (
    "wall clock on the CPU, providers interleaved in random order in every round, "
    "calls repeated until a sample lasts 5 ms, one thread, freed memory kept by the "
    "process or returned to the system as the cell says, no gradients unless it says so"
)
EPS = 1e-5

CASES = {  # rows, width
    "token": (1, 4096),  # decoding one token
    "tutorial": (1000, 512),  # what scripts like to time
    "batch": (512, 4096),
    "large": (4096, 4096),
}
TINY_CASES = {"token": (1, 64), "tutorial": (8, 64), "batch": (4, 64), "large": (9, 64)}
DTYPES = ("float32", "bfloat16")
SETTINGS = {  # rounds in a cell, fewer in slow ones; seconds a sample
    "tiny": dict(cases=TINY_CASES, rounds=3, fewer=3, least=1e-4, warmup=0.0),
    "small": dict(cases=CASES, rounds=101, fewer=41, least=5e-3, warmup=0.1),
    "full": dict(cases=CASES, rounds=201, fewer=101, least=5e-3, warmup=0.2),
}
SIZES = SETTINGS
THREADS = 1
KEPT, RETURNED = "kept", "returned"  # freed memory
FORWARD, BOTH = "forward", "forward and backward"

HAND_LN, HAND_LN_2 = "layer norm by hand", "layer norm by hand, no var"
HAND_RMS, CONTROL = "rms norm by hand", "rms norm by hand, again"
NN_LN, NN_RMS = "nn.LayerNorm", "nn.RMSNorm"
MEAN, VAR = "x.mean", "x.var"


def _inputs(rows: int, width: int, dtype: str) -> tuple:
    import torch

    generator = torch.Generator().manual_seed(SEEDS[0])
    kind = getattr(torch, dtype)
    x = torch.randn(rows, width, generator=generator) * 5 + 2
    gain = 1 + 0.1 * torch.randn(width, generator=generator)
    bias = 0.1 * torch.randn(width, generator=generator)
    return x.to(kind), gain.to(kind), bias.to(kind)


def _providers(rows: int, width: int, dtype: str) -> dict:
    """Name -> call without arguments, all on the same tensors."""
    import torch

    from snippets.speed.handwritten import (
        hand_layer_norm,
        hand_layer_norm_without_var,
        hand_rms_norm,
    )

    x, gain, bias = _inputs(rows, width, dtype)
    layer_norm = torch.nn.LayerNorm(width, EPS, dtype=x.dtype)
    rms_norm = torch.nn.RMSNorm(width, EPS, dtype=x.dtype)
    with torch.no_grad():
        layer_norm.weight.copy_(gain)
        layer_norm.bias.copy_(bias)
        rms_norm.weight.copy_(gain)
    return {
        HAND_LN: partial(hand_layer_norm, x, gain, bias, EPS),
        HAND_LN_2: partial(hand_layer_norm_without_var, x, gain, bias, EPS),
        HAND_RMS: partial(hand_rms_norm, x, gain, EPS),
        CONTROL: partial(hand_rms_norm, x, gain, EPS),
        NN_LN: partial(layer_norm, x),
        NN_RMS: partial(rms_norm, x),
        MEAN: partial(x.mean, -1, keepdim=True),
        VAR: partial(x.var, -1, keepdim=True, unbiased=False),
    }


def _with_backward(providers: dict) -> dict:
    """The same norms, each followed by its backward pass."""
    import torch

    def both(call: partial):
        # Parameters of nn modules need gradients already.
        if isinstance(call.func, torch.nn.Module):
            x, rest = call.args[0], ()
        else:
            x, *rest = call.args
        leaf = x.clone().requires_grad_()
        rest = [
            t.clone().requires_grad_() if isinstance(t, torch.Tensor) else t
            for t in rest
        ]
        upstream = torch.ones_like(x)
        parameters = (
            list(call.func.parameters())
            if isinstance(call.func, torch.nn.Module)
            else [t for t in rest if isinstance(t, torch.Tensor)]
        )

        def step():
            y = call.func(leaf, *rest)
            return torch.autograd.grad(y, [leaf, *parameters], upstream)

        return step

    return {
        name: both(call) for name, call in providers.items() if name not in (MEAN, VAR)
    }


def _run(setting: dict, mode: str, case: str, dtype: str, freed: str) -> list[dict]:
    import torch

    from scripts.measure import timing

    rows, width = setting["cases"][case]
    slow = case == "large" or freed == RETURNED
    with (
        timing.fixed_threads(THREADS) as threads,
        timing.freed_memory(freed == KEPT) as freed_is_set,
        torch.set_grad_enabled(mode == BOTH),
    ):
        providers = _providers(rows, width, dtype)
        if mode == BOTH:
            providers = _with_backward(providers)
        samples = timing.time_together(
            providers,
            rounds=setting["fewer" if slow else "rounds"],
            least=setting["least"],
            warmup=setting["warmup"],
            seed=SEEDS[0],
        )
        faults = {name: timing.page_faults(call) for name, call in providers.items()}
    return [
        {
            "provider": name,
            "mode": mode,
            "case": case,
            "rows": rows,
            "width": width,
            "dtype": dtype,
            "freed": freed,
            "freed_is_set": freed_is_set,
            "threads": threads,
            "faults": faults[name],
            "inner": found.inner,
            "seconds": found.seconds,
        }
        for name, found in samples.items()
    ]


def measure(size: str) -> list[Step]:
    cells = [  # first, see timing.freed_memory
        dict(mode=FORWARD, case=case, dtype="float32", freed=RETURNED)
        for case in ("tutorial", "large")
    ]
    cells += [
        dict(mode=FORWARD, case=case, dtype=dtype, freed=KEPT)
        for case in CASES
        for dtype in DTYPES
    ]
    cells.append(dict(mode=BOTH, case="batch", dtype="float32", freed=KEPT))
    return [Step(cell, partial(_run, SETTINGS[size], **cell)) for cell in cells]


# What was asked, and how it was held equal ---------------------------------

DESIGN = Design(
    says=("none",),
    arms=(HAND_LN, HAND_LN_2, HAND_RMS, CONTROL, NN_LN, NN_RMS, MEAN, VAR),
    **design_words(__file__),
)


# What the page says -------------------------------------------------------


def _times(record) -> dict:
    """(mode, case, dtype, freed memory) -> provider -> samples."""
    found: dict = {}
    for row in record.rows:
        cell = (row["mode"], row["case"], row["dtype"], row["freed"])
        found.setdefault(cell, {})[row["provider"]] = tuple(row["seconds"])
    return found


def _factor(value: float, digits: int = 2) -> str:
    """Significant digits, without an exponent: 0.42, 1.7, 18, 120."""
    text = f"{value:.{digits}g}"
    return f"{float(text):.0f}" if "e" in text else text


@cache
def _interval(over: tuple, under: tuple) -> tuple[float, float]:
    return spread.ratio_interval(over, under, resamples=1000)


def _floor(times: dict) -> float:
    """The noise floor over all forward cells, as a factor - 1: the worst cell."""
    return spread.noise_floor(
        [
            _interval(cell[CONTROL], cell[HAND_RMS])
            for (mode, *_), cell in times.items()
            if mode == FORWARD
        ]
    )


RATIOS = {  # fact -> (over, under)
    "hand_ln_over_rms": (HAND_LN, HAND_RMS),
    "hand_ln_no_var_over_rms": (HAND_LN_2, HAND_RMS),
    "nn_rms_over_ln": (NN_RMS, NN_LN),
    "hand_ln_over_nn_ln": (HAND_LN, NN_LN),
    "hand_rms_over_nn_rms": (HAND_RMS, NN_RMS),
    "hand_rms_over_nn_ln": (HAND_RMS, NN_LN),
    "var_over_mean": (VAR, MEAN),
}


def facts(record) -> dict[str, str]:
    from statistics import median

    times = _times(record)
    floor = _floor(times)
    found = {
        "machine": record.device,
        "threads": str(record.rows[0]["threads"]),
        "torch": record.provenance["versions"].get("torch", "unknown"),
        "date": record.date,
        "noise": f"{100 * floor:.2g}%",
    }
    for (mode, case, dtype, freed), cell in times.items():
        end = f"_{case}_{dtype}"
        end += "_backward" * (mode == BOTH) + "_returned" * (freed == RETURNED)
        for name, (over, under) in RATIOS.items():
            if over not in cell or under not in cell:
                continue
            low, high = _interval(cell[over], cell[under])
            low, high = low / (1 + floor), high * (1 + floor)  # one process only
            value = spread.ratio(cell[over], cell[under])
            found[name + end] = _factor(value, 3)
            found[f"{name}{end}_interval"] = f"{_factor(low, 3)}–{_factor(high, 3)}"
        if VAR in cell:
            share = spread.ratio(cell[VAR], cell[HAND_LN])
            found["var_share" + end] = f"{100 * share:.0f}%"
        if mode == FORWARD:
            for key, provider in (
                ("hand_ln", HAND_LN),
                ("hand_rms", HAND_RMS),
                ("nn_ln", NN_LN),
                ("nn_rms", NN_RMS),
            ):
                found[key + end] = spread.duration(median(cell[provider]))
    for row in record.rows:
        if row["freed"] == RETURNED and row["provider"] in (HAND_LN, NN_LN):
            key = "hand_ln" if row["provider"] == HAND_LN else "nn_ln"
            faults = row["faults"]
            found[f"{key}_faults_{row['case']}"] = (
                "unknown" if faults is None else f"{faults:.0f}"
            )
    slower = [
        spread.ratio(cell[HAND_LN], cell[HAND_RMS])
        for (mode, *_), cell in times.items()
        if mode == FORWARD
    ]
    found["hand_ln_over_rms_least"] = _factor(min(slower))
    found["hand_ln_over_rms_most"] = _factor(max(slower))
    return found


WORDS = figure_words(__file__)


# Top to bottom: (provider, what it is).
ORDER = (
    (HAND_LN, "LayerNorm"),
    (VAR, "part"),
    (HAND_LN_2, "LayerNorm"),
    (HAND_RMS, "RMSNorm"),
    (MEAN, "part"),
    (NN_RMS, "RMSNorm"),
    (NN_LN, "LayerNorm"),
)


def plot(record, words):
    from statistics import median

    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    from scripts.measure import figures

    times = _times(record)
    shapes = {row["case"]: (row["rows"], row["width"]) for row in record.rows}
    figure, axes = figures.new_figure(words, record, rows=2, height=6.6)
    looks = {
        "LayerNorm": dict(color=figures.SERIES[1], marker=figures.MARKERS[1]),
        "RMSNorm": dict(color=figures.SERIES[0], marker=figures.MARKERS[0]),
        "part": dict(color=figures.MUTED, marker=figures.MARKERS[3]),
    }
    hollow = dict(markerfacecolor="none", markeredgewidth=1.2)
    for axis, case in zip(axes, ("tutorial", "large"), strict=True):
        cells = {
            freed: times[FORWARD, case, "float32", freed] for freed in (RETURNED, KEPT)
        }
        middles = {
            freed: [median(cell[provider]) for provider, _ in ORDER]
            for freed, cell in cells.items()
        }
        for place, (provider, kind) in enumerate(ORDER):
            for freed, cell in cells.items():
                middle = middles[freed][place]
                interval = spread.median_interval(cell[provider])
                axis.plot(
                    interval,
                    [place, place],
                    color=looks[kind]["color"],
                    marker="none",
                    linestyle="-",
                    linewidth=3,
                    alpha=0.4,
                )
                axis.plot(
                    middle,
                    place,
                    linestyle="none",
                    **looks[kind],
                    **(hollow if freed == RETURNED else {}),
                )
            lows = [spread.median_interval(c[provider])[0] for c in cells.values()]
            axis.annotate(
                spread.duration(middles[KEPT][place]),
                (min(lows), place),
                xytext=(-6, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                fontsize=figures.TEXT - 1,
            )
        every = [*middles[KEPT], *middles[RETURNED]]
        rows, width = shapes[case]
        axis.set_title(words["panel"].format(rows=rows, width=width))
        axis.set_xscale("log")
        axis.set_xlim(min(every) / 9, max(every) * 1.6)
        axis.xaxis.set_major_locator(LogLocator())
        axis.xaxis.set_major_formatter(FuncFormatter(lambda t, _: spread.duration(t)))
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.set_yticks(range(len(ORDER)), [words[provider] for provider, _ in ORDER])
        axis.set_ylim(len(ORDER) - 0.4, -0.6)
        axis.grid(axis="y", visible=False)
    axes[-1].set_xlabel(words["time"])
    point = dict(linestyle="none", marker="o", color=figures.INK)
    figures.legend(
        figure,
        [Line2D([], [], **point), Line2D([], [], **point, **hollow)],
        [words[KEPT], words[RETURNED]],
    )
    figures.footer(figure, record, words, words["band"])
    return figure
