"""Does NormFormer reach a loss in fewer steps than Pre-Norm, and in less time?

Small byte-level decoders, alike but for the additions of Shleifer et al. (2021):
none (Pre-Norm), all three, each alone, and both LayerNorms without anything to
learn in them. All arms start from the same matrices and see the same text in the
same order, run by run, and each is tried at the same learning rates. As a control,
Pre-Norm and NormFormer are compared a second time with the initialization that
PyTorch's classes make by themselves: smaller matrices, and embeddings of 0.02.
Those are tried at half the rates, since their best ones are lower.

The learning rate stays constant after the warm-up, so that a run that stops early
would have been the same run: a schedule that falls to zero would not allow to
read off steps. Held-out losses are taken every few steps, on the same text for
all, and averaged over three evaluations in a row, since a constant rate leaves
them noisy. A target is what Pre-Norm of the same seed has after a share of the
steps; both then count from their own curve, by linear interpolation.

A row holds one quantity of one run: `values` are held-out losses in nats per byte
along the training, or one number for each block (mean |gradient| of the second
feed-forward matrix on held-out text, mean |gain| of the norm in front of it), or
seconds of one training step, one for each round. A loss that is not finite is null.
"""

from functools import partial

from scripts.measure.design import Design, Run
from scripts.measure.draw import band
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.fact_formatting import Found, best, with_inf
from scripts.measure.records import Step

METHOD = (
    "AdamW with betas 0.9 and 0.98, weight decay 0.1 on matrices and embeddings alone, "
    "gradients clipped at 1, linear warm-up, then a constant learning rate; matrices "
    "drawn with variance 1 / fan-in, embeddings with variance 1, biases zero (arms "
    "named default: as PyTorch draws them, embeddings N(0, 0.02^2)); random pieces of "
    "the standard library's sources, the last tenth of each module held out; all seeds "
    "of an arm and a learning rate in one call; training steps timed one model at a "
    "time, on a CPU in seconds of one thread's own work"
)
PARALLEL = True
SEEDS = tuple(range(8))
ARMS = {  # fairseq's names of the switches; False, False, False is Pre-Norm
    "pre": (False, False, False),  # scale_heads, scale_attn, scale_fc
    "normformer": (True, True, True),
    "head_scale": (True, False, False),
    "attention_norm": (False, True, False),
    "inner_norm": (False, False, True),
    "norms_only": (False, True, True),  # and their gains and biases stay 1 and 0
    "pre_default": (False, False, False),  # with PyTorch's own initialization
    "normformer_default": (True, True, True),
}
DEFAULT = "_default"
TIMED = [arm for arm in ARMS if not arm.endswith(DEFAULT)]
SIZES = {
    "tiny": dict(d=8, layers=2, heads=2, context=8, batch=2)
    | dict(steps=8, warm=2, every=2, held_out=2, wide=16, rounds=2, least=1e-3)
    | dict(learning_rates=(4e-3, 8e-3)),
    "small": dict(d=32, layers=4, heads=4, context=32, batch=8)
    | dict(steps=384, warm=40, every=16, held_out=64, wide=256, rounds=15, least=0.06)
    | dict(learning_rates=(2e-3, 4e-3, 8e-3, 16e-3)),
    "full": dict(d=128, layers=8, heads=8, context=128, batch=16)
    | dict(
        steps=1200, warm=120, every=40, held_out=64, wide=1024, rounds=15, least=0.06
    )
    | dict(learning_rates=(5e-4, 1e-3, 2e-3, 4e-3, 8e-3)),
}
SHARES = {"quarter": 1 / 4, "half": 1 / 2, "most": 3 / 4, "end": 1}  # of the steps
AGAIN = "pre_again"  # Pre-Norm timed a second time shows the noise


def rates_for(arm: str, size: dict) -> tuple[float, ...]:
    """The learning rates that an arm is tried at."""
    part = 0.5 if arm.endswith(DEFAULT) else 1
    return tuple(part * rate for rate in size["learning_rates"])


def fresh(arm: str, size: dict, seed: int):
    """A model at initialization: the same matrices in every arm."""
    import torch
    from torch import nn

    from snippets.normformer.block import Block
    from snippets.pre_norm_vs_post_norm.decoder import initialize
    from snippets.rms_norm.small_decoder import SmallDecoder

    d, heads = size["d"], size["heads"]
    torch.manual_seed(seed)  # what the classes draw by themselves
    model = SmallDecoder(d, 0, heads, size["context"])
    model.branches.extend(Block(d, heads, *ARMS[arm]) for _ in range(size["layers"]))
    if arm == "norms_only":
        for block in model.branches:
            block.output_norm = nn.LayerNorm(d, elementwise_affine=False)
            block.ffn.norm = nn.LayerNorm(4 * d, elementwise_affine=False)
    return model if arm.endswith(DEFAULT) else initialize(model, seed)


def row(arm, d, learning_rate, seed, quantity, values) -> dict:
    from math import isfinite

    return {
        "arm": arm,
        "d": d,
        "learning_rate": learning_rate,
        "seed": seed,
        "quantity": quantity,
        "values": [value if isfinite(value) else None for value in values],
    }


def fc2_gradients(models, text):
    """Mean |gradient| of every block's second feed-forward matrix: (runs, blocks)."""
    import torch

    from scripts.measure.corpus import loss_of

    _, gradients = models.gradients(loss_of, text)
    found = [
        each.abs().flatten(1).mean(dim=1)
        for name, each in gradients.items()
        if name.endswith("ffn.fc2.weight")
    ]
    return torch.stack(found, dim=1)


def train(arm: str, learning_rate: float, size: dict) -> list[dict]:
    """All seeds of one arm at one learning rate."""
    import torch

    from scripts.measure import together
    from scripts.measure.corpus import corpus, loss_of, sample

    device = "cuda" if torch.cuda.is_available() else "cpu"
    training, held_out = corpus()
    models = together.Together([fresh(arm, size, seed).to(device) for seed in SEEDS])
    generators = [torch.Generator().manual_seed(seed) for seed in SEEDS]
    fixed = torch.Generator().manual_seed(0)  # the same held-out text for all
    test = sample(held_out, size["held_out"], size["context"], fixed).to(device)
    test = test.expand(len(SEEDS), -1, -1)
    history = []

    def data(step):
        texts = [
            sample(training, size["batch"], size["context"], g) for g in generators
        ]
        return (torch.stack(texts).to(device),)

    def evaluate(step, gradients=None):
        if step % size["every"] == 0:
            history.append(models.losses(loss_of, test))

    matrices = {name for name, each in models.parameters.items() if each.ndim > 2}
    found = {"fc2_gradients_before": fc2_gradients(models, test)}
    together.train(
        models,
        loss_of,
        data,
        size["steps"],
        learning_rate,
        schedule=lambda step: min(1.0, (step + 1) / size["warm"]),
        most=1.0,
        seen=evaluate,
        betas=(0.9, 0.98),
        weight_decay=0.1,
        decays=matrices.__contains__,
    )
    evaluate(size["steps"])
    found["fc2_gradients_after"] = fc2_gradients(models, test)
    gains = [
        each.abs().mean(dim=1)
        for name, each in models.parameters.items()
        if name.endswith("ffn.norm.weight")
    ]
    if gains:
        found["inner_gains"] = torch.stack(gains, dim=1)
    found = {"held_out": torch.stack(history, dim=1)} | found
    return [
        row(arm, size["d"], learning_rate, seed, quantity, values[run].tolist())
        for quantity, values in found.items()
        for run, seed in enumerate(SEEDS)
    ]


def step_seconds(size: dict) -> list[dict]:
    """Seconds of one training step of one model of every arm, at two widths."""
    import time

    import torch

    from scripts.measure.corpus import corpus, loss_of, sample
    from scripts.measure.timing import fixed_threads, time_together

    device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = torch.Generator().manual_seed(0)
    text = sample(corpus()[0], size["batch"], size["context"], generator).to(device)
    # The time that the work takes, not that during which others have the core.
    clock = time.perf_counter if text.is_cuda else time.process_time

    def provider(arm, width):
        model = fresh(arm, {**size, "d": width}, 0).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-4)

        def training_step():
            optimizer.zero_grad()
            loss_of(model, text).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if text.is_cuda:
                torch.cuda.synchronize()

        return training_step

    found = []
    for width in (size["d"], size["wide"]):
        providers = {arm: provider(arm, width) for arm in TIMED}
        providers[AGAIN] = provider("pre", width)
        with fixed_threads(1):
            samples = time_together(
                providers, rounds=size["rounds"], least=size["least"], clock=clock
            )
        found += [
            row(arm, width, None, None, "seconds_step", each.seconds)
            for arm, each in samples.items()
        ]
    return found


def measure(size: str) -> list[Step]:
    """One step trains all seeds of an arm at a learning rate; one step times."""
    chosen = SIZES[size]
    trained = [
        Step({"arm": arm, "learning_rate": rate}, partial(train, arm, rate, chosen))
        for arm in ARMS
        for rate in rates_for(arm, chosen)
    ]
    step = partial(step_seconds, chosen)
    return [*trained, Step({"timed": "step_seconds"}, step, timed=True, cost=0.5)]


# What the page says -------------------------------------------------------


def smooth(losses: list) -> list[float]:
    """Means of three evaluations in a row; one that is not finite spoils its own."""
    known = with_inf(losses)
    return [sum(known[i : i + 3]) / 3 for i in range(len(known) - 2)]


def curves(record, arm: str, rate: float) -> list[tuple[list, list[float]]]:
    """(steps, smoothed held-out losses) of all seeds of an arm at a rate."""
    every = SIZES[record.size]["every"]
    found = []
    for each in record.select(arm=arm, learning_rate=rate, quantity="held_out"):
        losses = smooth(each["values"])
        found.append(([every * (i + 1) for i in range(len(losses))], losses))
    return found


def steps_to(target: float, curve) -> float:
    """The steps after which a curve first is at the target; inf if it never is."""
    from math import inf, isfinite

    steps, losses = curve
    for i, loss in enumerate(losses):
        if loss <= target:
            before = losses[i - 1] if i else inf
            if not isfinite(before):
                return steps[i]
            part = (before - target) / (before - loss)
            return steps[i - 1] + part * (steps[i] - steps[i - 1])
    return inf


def rates(record, arm: str) -> list[float]:
    found = record.select(arm=arm, quantity="held_out")
    return sorted({row["learning_rate"] for row in found})


def finals(record, arm: str, rate: float) -> list[float]:
    return [losses[-1] for _, losses in curves(record, arm, rate)]


def _best(record, arm: str) -> float:
    """The learning rate with the least median final loss."""
    return best(rates(record, arm), lambda rate: finals(record, arm, rate))


def _at(share: float, curve: list) -> int:
    """The place on a curve after a share of it."""
    return max(1, round(share * len(curve))) - 1


def base_of(arm: str) -> str:
    """The Pre-Norm that an arm is compared with: that of its initialization."""
    return "pre_default" if arm.endswith(DEFAULT) else "pre"


def ratios(record, arm: str, share: float, ours=None, theirs=None) -> list[tuple]:
    """Per seed, (steps of the arm over steps of Pre-Norm, whether it got there).

    The target is Pre-Norm's loss after a share of the steps. Each at its own best
    learning rate, if none is given. Who does not get there has at least the ratio
    of its last step.
    """
    from math import isfinite

    ours = _best(record, arm) if ours is None else ours
    theirs = _best(record, base_of(arm)) if theirs is None else theirs
    found = []
    for mine, base in zip(
        curves(record, arm, ours), curves(record, base_of(arm), theirs), strict=True
    ):
        target = base[1][_at(share, base[1])]
        reached = steps_to(target, mine)
        needed = steps_to(target, base)
        there = isfinite(reached)
        found.append(((reached if there else mine[0][-1]) / needed, there))
    return found


def along(record, arm: str) -> tuple[list, list[tuple]]:
    """(steps, gaps of all seeds to Pre-Norm), each at its best learning rate.

    Where a loss is not finite its gap is left out.
    """
    from math import isfinite

    base = base_of(arm)
    pairs = zip(
        curves(record, arm, _best(record, arm)),
        curves(record, base, _best(record, base)),
        strict=True,
    )
    pairs = list(pairs)
    found = []
    for i, step in enumerate(pairs[0][0][0]):
        gaps = [mine[1][i] - theirs[1][i] for mine, theirs in pairs]
        if gaps := tuple(filter(isfinite, gaps)):
            found.append((step, gaps))
    return [step for step, _ in found], [gaps for _, gaps in found]


def diverged(each: dict) -> bool:
    """Some held-out loss is not finite, or the last is not below the first."""
    return None in each["values"] or each["values"][-1] >= each["values"][0]


def _ratio_words(pairs: list[tuple]) -> tuple[str, str]:
    """(median, range) of ratios; one that is only known from below gets its >."""
    ordered = sorted(pairs, key=lambda pair: (not pair[1], pair[0]))
    n = len(ordered)
    middle = ordered[(n - 1) // 2 : n // 2 + 1]
    value = sum(ratio for ratio, _ in middle) / len(middle)

    def say(ratio, there):
        return f"{ratio:.2f}" if there else f"> {ratio:.2f}"

    low, high = ordered[0], ordered[-1]
    return say(value, all(t for _, t in middle)), f"[{say(*low)}, {say(*high)}]"


def steepness(record, arm: str, moment: str, rate: float) -> list[float]:
    """Per seed, fc2's mean |gradient| in the first block over that in the last."""
    rows = record.select(
        learning_rate=rate, arm=arm, quantity=f"fc2_gradients_{moment}"
    )
    return [
        row["values"][0] / row["values"][-1]
        for row in rows
        if None not in row["values"] and row["values"][-1]
    ]


def facts(record) -> dict[str, str]:
    from math import isfinite
    from statistics import median

    from scripts.measure.spread import noise_floor, ratio, ratio_interval

    chosen, grid = SIZES[record.size], rates(record, "pre")
    runs = record.select(quantity="held_out")
    sizes = ("d", "layers", "steps", "warm", "every", "wide")
    found = Found({name: str(chosen[name]) for name in sizes})
    found |= {
        "seeds": str(len({row["seed"] for row in runs})),
        "runs": str(len(runs)),
        "diverged": str(sum(diverged(row) for row in runs)),
        "grid": " / ".join(f"{rate:g}" for rate in grid),
        "grid_default": " / ".join(f"{r:g}" for r in rates(record, "pre_default")),
        "held_out_bytes": str(chosen["held_out"] * chosen["context"]),
        "bytes_a_step": str(chosen["batch"] * chosen["context"]),
    }
    counted, _ = curves(record, "pre", grid[0])[0]
    for name, share in SHARES.items():
        found[f"steps_{name}"] = str(counted[_at(share, counted)])
    chosen_rates = {arm: _best(record, arm) for arm in ARMS}
    seconds = {
        (row["arm"], row["d"]): row["values"]
        for row in record.select(quantity="seconds_step")
    }
    widths = {"": chosen["d"], "_wide": chosen["wide"]}
    for arm in ARMS:
        ends = finals(record, arm, chosen_rates[arm])
        found[f"{arm}_rate"] = f"{chosen_rates[arm]:g}"
        found.median(f"{arm}_loss", ends, 3)
        moments = {"before": ("before", chosen_rates[arm])}
        moments |= {
            letter: ("after", rate)
            for letter, rate in zip("abcde", rates(record, arm), strict=False)
        }
        for name, (moment, rate) in moments.items():
            steep = steepness(record, arm, moment, rate)
            if name in "abcde":
                start = steepness(record, arm, "before", rate)
                found.paired(f"{arm}_gradient_grown_{name}", steep, start, 1)
            if name in "abcde" and base_of(arm) == "pre" != arm:
                theirs = steepness(record, "pre", "after", rate)
                found.paired(f"{arm}_gradient_less_{name}", steep, theirs, 1)
            found.median(f"{arm}_gradient_ratio_{name}", steep, 1)
        base = base_of(arm)
        if arm == base:
            continue
        base = finals(record, base, chosen_rates[base])
        pairs = [pair for pair in zip(ends, base, strict=True) if isfinite(sum(pair))]
        found.paired(f"{arm}_gap", *zip(*pairs, strict=True))
        found[f"{arm}_gap_worse"] = f"{sum(a > b for a, b in pairs)}/{len(pairs)}"
        for name, share in SHARES.items():
            pairs = ratios(record, arm, share)
            middle, bounds = _ratio_words(pairs)
            found[f"{arm}_ratio_{name}"] = middle
            found[f"{arm}_ratio_{name}_range"] = bounds
            found[f"{arm}_reached_{name}"] = str(sum(there for _, there in pairs))
            found[f"{arm}_sooner_{name}"] = str(sum(ratio < 1 for ratio, _ in pairs))
        for name, width in widths.items() if arm in TIMED else ():
            ours, theirs = seconds[arm, width], seconds["pre", width]
            low, high = ratio_interval(ours, theirs)
            found[f"{arm}_time{name}"] = f"{ratio(ours, theirs):.2f}"
            found[f"{arm}_time{name}_interval"] = f"[{low:.2f}, {high:.2f}]"
    for name, width in widths.items():
        again = ratio_interval(seconds[AGAIN, width], seconds["pre", width])
        found[f"noise{name}"] = f"{100 * noise_floor([again]):.0f}%"
    parts = (
        finals(record, arm, chosen_rates[arm]) for arm in ("norms_only", "normformer")
    )
    pairs = [pair for pair in zip(*parts, strict=True) if isfinite(sum(pair))]
    found.paired("norms_only_less_normformer", *zip(*pairs, strict=True))
    at_equal = [ratios(record, "normformer", 3 / 4, rate, rate) for rate in grid]
    at_equal.sort(key=lambda pairs: median(ratio for ratio, _ in pairs))
    found["equal_rate_least"] = _ratio_words(at_equal[0])[0]
    found["equal_rate_greatest"] = _ratio_words(at_equal[-1])[0]
    wanted = dict(arm="normformer", quantity="inner_gains")
    gains = [
        row["values"]
        for row in record.select(learning_rate=chosen_rates["normformer"], **wanted)
    ]
    found.median("first_gain", [values[0] for values in gains])
    found.median("last_gain", [values[-1] for values in gains])
    return found


def _runs(record) -> list[Run]:
    size = SIZES[record.size]
    return [
        Run(
            arm,
            row["seed"],
            cell=("default" if arm.endswith(DEFAULT) else "1/fan-in",),
            rate=rate,
            width=size["d"],
            steps=size["steps"],
            loss=smooth(row["values"])[-1] if None not in row["values"] else None,
        )
        for arm in ARMS
        for rate in rates(record, arm)
        for row in record.select(arm=arm, learning_rate=rate, quantity="held_out")
    ]


DESIGN = Design(
    says=("after_training", "differences"),
    arms=tuple(ARMS),
    runs=_runs,
    **design_words(__file__),
)


WORDS = figure_words(__file__)


def plot(record, words):
    from math import isfinite
    from statistics import median

    from matplotlib.ticker import NullLocator

    from scripts.measure import figures

    grid = sorted({rate for arm in ARMS for rate in rates(record, arm)})
    figure, (top, middle, bottom) = figures.new_figure(
        words, record, rows=3, height=7.2
    )
    drawn = {arm: figures.style(arm) for arm in TIMED}
    for arm in ("pre", "normformer"):  # the same mark, open: default initialization
        drawn[arm + DEFAULT] = {**drawn[arm], "linestyle": figures.LINES[2]}
        drawn[arm + DEFAULT] |= {"markerfacecolor": "none", "markeredgewidth": 1.2}
    top.axhline(0, color=figures.MUTED, linewidth=1.2, linestyle=figures.LINES[1])
    for arm in ("normformer", "normformer_default"):
        steps, gaps = along(record, arm)
        start = _at(SHARES["quarter"], steps)  # unequal rates start apart
        steps, gaps = steps[start:], gaps[start:]
        band(top, steps, gaps, {**drawn[arm], "markersize": 3.5}, alpha=0.15)
    top.set_xlabel(words["step"])
    top.set_ylabel(words["gap"])

    # Side by side at each rate, so that the ranges do not hide each other.
    for series, arm in enumerate(ARMS):
        places, medians, lows, highs = [], [], [], []
        for rate in rates(record, arm):
            ends = [end for end in finals(record, arm, rate) if isfinite(end)]
            if ends:
                places.append(rate * 1.04 ** (series - 3.5))
                medians.append(median(ends))
                lows.append(min(ends))
                highs.append(max(ends))
        middle.plot(
            places, medians, label=words[arm], **{**drawn[arm], "markersize": 4.5}
        )
        middle.vlines(places, lows, highs, color=drawn[arm]["color"], linewidth=1)
    middle.set_xscale("log")
    middle.xaxis.set_minor_locator(NullLocator())
    middle.set_xticks(grid, [f"{rate:g}" for rate in grid])
    middle.set_xlabel(words["rate"])
    middle.set_ylabel(words["loss"])

    others = [arm for arm in ARMS if arm != base_of(arm)]
    bottom.axvspan(
        1 / 1.24, 1 - 0.24, color=figures.PANEL, linewidth=0
    )  # of speed, or of time
    bottom.axvline(1, color=figures.MUTED, linewidth=1.2, linestyle=figures.LINES[1])
    for place, arm in enumerate(others):
        pairs = ratios(record, arm, SHARES["most"])
        colour = drawn[arm]["color"]
        for there, marker in ((True, "o"), (False, ">")):
            each = [ratio for ratio, reached in pairs if reached is there]
            bottom.plot(
                each,
                [place + 0.18] * len(each),
                linestyle="none",
                marker=marker,
                markersize=5,
                markerfacecolor="none",
                markeredgewidth=1,
                color=colour,
            )
        bottom.plot(
            [median(ratio for ratio, _ in pairs)],
            [place - 0.12],
            **{**drawn[arm], "linestyle": "none", "markersize": 7},
        )
    names = [words["default_row" if arm.endswith(DEFAULT) else arm] for arm in others]
    bottom.set_yticks(range(len(others)), names)
    bottom.set_ylim(len(others) - 0.5, -0.5)
    bottom.set_xlabel(words["ratio"])
    for axis, title in ((top, "gaps"), (middle, "rates"), (bottom, "ratios")):
        axis.set_title(words[title])
    figures.legend(figure, *middle.get_legend_handles_labels())
    figures.footer(figure, record, words, words["band"])
    return figure
