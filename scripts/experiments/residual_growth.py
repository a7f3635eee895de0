"""How the residual stream grows, and what one layer is worth after training.

Small decoders are trained on bytes with five treatments of the norms: Post-Norm,
Pre-Norm, Pre-Norm with LayerNorm Scaling, Pre-Norm with GPT-2's initialization,
sandwich norm. Before and after training, on held-out text: the stream's RMS behind
each layer, the cosine between a layer's input and output, and the loss of the
model with one layer (attention and feed-forward together) skipped, or with half
of the layers skipped. Sun et al. (2025), "The curse of depth", report that deep
Pre-Norm layers become nearly the identity and can be removed, and that
LayerNorm Scaling helps.

The arms share seeds, initial matrices and data order. Learning rates come from one
grid, all seeds at every value; the best has the least median loss after training.
A run is called stuck when its final held-out loss is no number, or above 0.95
of what the frequencies of the bytes alone give: then it learned no context.

A row holds one quantity of one run; `values` has one number for each layer, or one
number (losses), or one for each round (seconds). null stands for no number.
"""

from functools import partial

from scripts.measure.records import Step
from scripts.measure.spread import integer, number, span

PARALLEL = True
SEEDS = tuple(range(5))
METHOD = (
    "byte-level decoders without position embedding, RMSNorm, GELU; matrices drawn "
    "with variance 1 / fan-in, embeddings with variance 1; AdamW, beta2 0.95, weight "
    "decay 0.1 on the matrices, gradient clipped at norm 1, warm-up over a tenth of "
    "the steps, then linear decay to zero; random pieces of the standard library's "
    "sources, the last tenth of each module held out; all quantities on the same "
    "held-out bytes; all seeds of a learning rate in one call"
)
ARMS = ("post", "pre", "scaling", "small_writers", "sandwich")
SIZES = {
    "tiny": dict(
        d=8,
        heads=2,
        depths=(2, 4),
        context=8,
        batch=2,
        steps=3,
        rates=(1e-3, 1e-2),
        held_out=4,  # pieces of `context` bytes
        rounds=2,
        at_once=2,  # learning rates in one call
    ),
    "small": dict(
        d=32,
        heads=4,
        depths=(4, 12),
        context=32,
        batch=8,
        steps=250,
        rates=(6.25e-4, 2.5e-3, 1e-2, 4e-2),
        held_out=128,
        rounds=9,
        at_once=1,
    ),
    "full": dict(
        d=128,
        heads=4,
        depths=(12, 48),
        context=64,
        batch=16,
        steps=600,
        rates=(2.5e-4, 1e-3, 4e-3, 1.6e-2),
        held_out=128,
        rounds=9,
        at_once=4,
    ),
}
WARM_UP = 0.1  # of all steps
STUCK = 0.95  # of the loss that the frequencies of the bytes give


def device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def fresh(arm: str, layers: int, size: dict, seed: int):
    """A model at initialization; its matrices are the same in every arm."""
    from snippets.curse_of_depth.depth_scaling import scale_norms, scale_writers
    from snippets.pre_norm_vs_post_norm.blocks import PostNormBlock, PreNormBlock
    from snippets.pre_norm_vs_post_norm.decoder import Decoder, initialize
    from snippets.sandwich_norm.blocks import SandwichNorm

    d = size["d"]
    blocks = {
        "post": PostNormBlock,
        "sandwich": lambda branch, norm: SandwichNorm(branch, d),
    }
    model = Decoder(
        d,
        layers,
        size["heads"],
        256,
        block=blocks.get(arm, PreNormBlock),
        final_norm=arm != "post",
    )
    initialize(model, seed)
    if arm == "scaling":
        scale_norms(model)
    if arm == "small_writers":
        scale_writers(model)
    return model


def held_out(size: dict):
    """The same held-out text for all models: (pieces, context + 1)."""
    import torch

    from scripts.measure.corpus import corpus, sample

    fixed = torch.Generator().manual_seed(0)
    return sample(corpus()[1], size["held_out"], size["context"], fixed)


def loss_without(model, text, skip=()) -> float:
    """Nats per byte when the layers in skip, counted from 1, are left out."""
    import torch
    from torch.nn import functional as F

    from snippets.curse_of_depth.skipping import read_out

    with torch.no_grad():
        logits = model.head(read_out(model, text[:, :-1], skip))
        return F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten()).item()


def examine(model, layers: int, text) -> dict[str, list[float]]:
    """Every quantity of one model."""
    from snippets.curse_of_depth.stream import trace

    rows = trace(model, text[:, :-1])
    every = range(1, layers + 1)
    half = layers // 2
    return {
        "rms": [row.rms for row in rows],
        "update": [row.update for row in rows],
        "cosine": [row.cosine for row in rows],
        "loss": [loss_without(model, text)],
        "without_layer": [loss_without(model, text, (layer,)) for layer in every],
        "without_upper_half": [loss_without(model, text, every[layers - half :])],
        "without_lower_half": [loss_without(model, text, every[:half])],
    }


def row(arm, layers, rate, seed, stage, quantity, values) -> dict:
    from math import isfinite

    return {
        "arm": arm,
        "layers": layers,
        "rate": rate,
        "seed": seed,
        "stage": stage,
        "quantity": quantity,
        "values": [value if isfinite(value) else None for value in values],
    }


def untrained(arm: str, layers: int, size: dict) -> list[dict]:
    """All seeds of a stack at initialization."""
    text = held_out(size).to(device())
    return [
        row(arm, layers, None, seed, "before", quantity, values)
        for seed in SEEDS
        for quantity, values in examine(
            fresh(arm, layers, size, seed).to(device()), layers, text
        ).items()
    ]


def train_all(arm: str, layers: int, size: dict, rates: tuple):
    """All seeds at each rate, trained: (Together, [(rate, seed), ...])."""
    import torch

    from scripts.measure.corpus import corpus, loss_of, sample
    from scripts.measure.together import Together, train, warm_up

    training, steps = corpus()[0], size["steps"]
    runs = [(rate, seed) for rate in rates for seed in SEEDS]
    models = Together([fresh(arm, layers, size, seed).to(device()) for _, seed in runs])
    generators = [torch.Generator().manual_seed(seed) for seed in SEEDS]

    def data(step):  # the order depends on the seed alone
        texts = [
            sample(training, size["batch"], size["context"], generator)
            for generator in generators
        ]
        return (torch.stack(texts * len(rates)).to(device()),)

    train(
        models,
        loss_of,
        data,
        steps,
        [rate for rate, _ in runs],
        schedule=warm_up(steps, max(1, round(WARM_UP * steps))),
        most=1.0,
        betas=(0.9, 0.95),
        weight_decay=0.1,
        decays=lambda name: name.endswith("weight"),
    )
    return models, runs


def trained(arm: str, layers: int, size: dict, rates: tuple) -> list[dict]:
    from scripts.measure.together import alone

    models, runs = train_all(arm, layers, size, rates)
    text = held_out(size).to(device())
    return [
        row(arm, layers, rate, seed, "after", quantity, values)
        for i, (rate, seed) in enumerate(runs)
        for quantity, values in examine(alone(models, i), layers, text).items()
    ]


def frequencies(size: dict) -> list[dict]:
    """The loss of a model that knows how often each byte occurs, no more."""
    import torch

    from scripts.measure.corpus import corpus

    counts = torch.bincount(corpus()[0], minlength=256).double() + 1
    wanted = held_out(size)[:, 1:].flatten()
    loss = -(counts / counts.sum()).log()[wanted].mean().item()
    return [row(None, None, None, None, None, "frequency_loss", [loss])]


def batching(size: dict) -> list[dict]:
    """Seconds for a training step of all seeds: one by one, and together."""
    import torch

    from scripts.measure.batching import race
    from scripts.measure.corpus import corpus, loss_of, sample

    layers = size["depths"][0]
    models = [fresh("pre", layers, size, seed).to(device()) for seed in SEEDS]
    text = torch.stack(
        [
            sample(
                corpus()[0],
                size["batch"],
                size["context"],
                torch.Generator().manual_seed(seed),
            )
            for seed in SEEDS
        ]
    ).to(device())
    loop, at_once = race(models, loss_of, (text,), size["rounds"])
    return [
        row("pre", layers, None, None, None, quantity, seconds)
        for quantity, seconds in (
            ("seconds_one_by_one", loop),
            ("seconds_together", at_once),
        )
    ]


def measure(size: str) -> list[Step]:
    """One step is one stack, untrained or trained with all seeds."""
    setting = SIZES[size]
    rates, few = setting["rates"], setting["at_once"]
    stacks = [(arm, layers) for layers in setting["depths"] for arm in ARMS]
    return [
        Step({"text": "frequencies"}, partial(frequencies, setting), cost=0.1),
        *(
            Step(
                {"arm": arm, "layers": layers, "stage": "before"},
                partial(untrained, arm, layers, setting),
                cost=layers / 20,
            )
            for arm, layers in stacks
        ),
        *(
            Step(
                {"arm": arm, "layers": layers, "rates": rates[i : i + few]},
                partial(trained, arm, layers, setting, rates[i : i + few]),
                cost=layers,
            )
            for arm, layers in stacks
            for i in range(0, len(rates), few)
        ),
        Step({"batching": "all seeds"}, partial(batching, setting), timed=True),
    ]


# What the page says -------------------------------------------------------


def _runs(record, arm, layers, quantity, stage="after", rate=None) -> list[list]:
    """Values of a stack, one list for each seed, in the order of the seeds."""
    return [
        row["values"]
        for row in record.rows
        if (row["arm"], row["layers"], row["quantity"], row["stage"], row["rate"])
        == (arm, layers, quantity, stage, rate)
    ]


def _depths(record) -> list[int]:
    return sorted({row["layers"] for row in record.rows if row["layers"]})


def _rates(record) -> list[float]:
    return sorted({row["rate"] for row in record.rows if row["rate"]})


def _losses(record, arm, layers, rate) -> list[float]:
    """Final losses; a run that ended in no number counts as infinite."""
    from math import inf

    found = _runs(record, arm, layers, "loss", rate=rate)
    return [inf if value is None else value for (value,) in found]


def _best(record, arm, layers) -> float:
    """The rate of the least median loss."""
    from statistics import median

    return min(
        _rates(record), key=lambda rate: median(_losses(record, arm, layers, rate))
    )


def _frequency_loss(record) -> float:
    (found,) = (r for r in record.rows if r["quantity"] == "frequency_loss")
    return found["values"][0]


def _is_stuck(record, loss: float) -> bool:
    return not loss <= STUCK * _frequency_loss(record)


def _costs(record, arm, layers, rate) -> list[list[float]]:
    """Loss increase without each layer, for each seed, in nats per byte."""
    whole = _losses(record, arm, layers, rate)
    parts = _runs(record, arm, layers, "without_layer", rate=rate)
    return [
        [part - loss for part in values]
        for values, loss in zip(parts, whole, strict=True)
        if None not in values
    ]


def _slope(sizes: list[float]) -> float:
    """The exponent p of the law size = c * layer ** p, by least squares of logs."""
    from math import log
    from statistics import linear_regression

    layers = [log(layer) for layer in range(1, len(sizes) + 1)]
    return linear_regression(layers, list(map(log, sizes))).slope


def exponent(rms: list[float]) -> float:
    """The p of the law: mean square behind layer l = c * l ** p."""
    return 2 * _slope(rms)


def _alignment(rms: list[float], update: list[float]) -> list[float]:
    """Of each layer but the first: the cosine of its update and its input.

    Weighted by size: from the mean squares of input, update and their sum.
    """
    return [
        ((after / before) ** 2 - 1 - share**2) / (2 * share)
        for before, after, share in zip(rms, rms[1:], update[1:], strict=False)
    ]


def facts(record) -> dict[str, str]:
    from statistics import mean, median

    from scripts.measure.batching import batching_facts

    depths, rates, size = _depths(record), _rates(record), SIZES[record.size]
    floor = _frequency_loss(record)
    found = {
        "seeds": str(len(record.provenance["seeds"])),
        "d": str(size["d"]),
        "least": str(depths[0]),
        "most": str(depths[-1]),
        "half": str(depths[-1] // 2),
        "steps": str(size["steps"]),
        "bytes": str(size["batch"] * size["context"]),
        "context": str(size["context"]),
        "held_out": integer(size["held_out"] * size["context"]),
        "rates": str(len(rates)),
        "rate_least": f"{rates[0]:g}",
        "rate_most": f"{rates[-1]:g}",
        "frequency_loss": number(floor, 2),
    }

    def note(name, values, digits, unit=""):
        if not values:
            values = [float("nan")]
        found[name] = number(median(values), digits) + unit
        found[f"{name}_range"] = span(values, digits) + unit

    edges, ties = 0, 0
    best = {(a, n): _best(record, a, n) for a in ARMS for n in depths}
    for (arm, layers), rate in best.items():
        edge = rate in (rates[0], rates[-1])
        edges += edge
        name = f"{arm}_{'most' if layers == depths[-1] else 'least'}"
        losses = _losses(record, arm, layers, rate)
        found[f"{name}_rate"] = f"{rate:g}"
        found[f"{name}_stuck"] = str(sum(_is_stuck(record, x) for x in losses))
        found[f"{name}_stuck_all"] = str(
            sum(
                _is_stuck(record, loss)
                for other in rates
                for loss in _losses(record, arm, layers, other)
            )
        )
        note(f"{name}_loss", losses, 3)
        base = _losses(record, "pre", layers, best["pre", layers])
        gaps = [a - b for a, b in zip(losses, base, strict=True)]
        note(f"{name}_gap", gaps, 3)
        ties += arm != "pre" and min(gaps) <= 0 <= max(gaps)
        for rate_name, other in zip(("a", "b", "c", "d", "e"), rates, strict=False):
            note(f"{name}_at_{rate_name}", _losses(record, arm, layers, other), 2)
    for rate_name, rate in zip(("a", "b", "c", "d", "e"), rates, strict=False):
        found[f"rate_{rate_name}"] = f"{rate:g}"
    found |= {"edges": str(edges), "ties": str(ties), "pairs": str(len(best))}

    for arm in ARMS:
        shallow = _losses(record, arm, depths[0], best[arm, depths[0]])
        deep = _losses(record, arm, depths[-1], best[arm, depths[-1]])
        note(
            f"{arm}_depth_gap",
            [a - b for a, b in zip(deep, shallow, strict=True)],
            3,
        )
        for which, layers in (("least", depths[0]), ("most", depths[-1])):
            name, half = f"{arm}_{which}", layers // 2
            rate = best[arm, layers]
            for stage, chosen in (("before", None), ("after", rate)):

                def runs(quantity, stage=stage, chosen=chosen, arm=arm, layers=layers):
                    values = _runs(record, arm, layers, quantity, stage, chosen)
                    return [run for run in values if None not in run]

                note(f"{name}_rms_{stage}", [run[-1] for run in runs("rms")], 2)
                note(
                    f"{name}_growth_{stage}",
                    [run[-1] / run[0] for run in runs("rms")],
                    2,
                )
                note(
                    f"{name}_exponent_{stage}",
                    [2 * _slope(run) for run in runs("rms")],
                    2,
                )
                aligned = [
                    mean(_alignment(*pair)[layers - half - 1 :])
                    for pair in zip(runs("rms"), runs("update"), strict=True)
                ]
                note(f"{name}_alignment_{stage}", aligned, 2)
                deepest = [mean(run[layers - half :]) for run in runs("cosine")]
                note(f"{name}_cosine_{stage}", deepest, 3)
                note(f"{name}_last_{stage}", [run[-1] for run in runs("cosine")], 3)
            costs = _costs(record, arm, layers, rate)
            upper = [sum(run[layers - half :]) for run in costs]
            note(f"{name}_first_cost", [run[0] for run in costs], 2)
            note(f"{name}_deep_cost", [x / half for x in upper], 3)
            note(
                f"{name}_middle_cost",
                [mean(run[1 : layers - half] or run[:1]) for run in costs],
                3,
            )
            note(
                f"{name}_share",
                [100 * x / sum(run) for x, run in zip(upper, costs, strict=True)],
                0,
                " %",
            )
            losses = _losses(record, arm, layers, rate)
            for side in ("upper", "lower"):
                halves = _runs(record, arm, layers, f"without_{side}_half", rate=rate)
                note(
                    f"{name}_{side}_half_cost",
                    [
                        value - loss
                        for (value,), loss in zip(halves, losses, strict=True)
                        if value is not None
                    ],
                    2,
                )
            note(f"{name}_upper_sum", upper, 2)
    for which, layers in (("least", depths[0]), ("most", depths[-1])):
        scaling, writers = (
            _losses(record, arm, layers, best[arm, layers])
            for arm in ("scaling", "small_writers")
        )
        note(
            f"scaling_over_writers_{which}",
            [a - b for a, b in zip(scaling, writers, strict=True)],
            3,
        )
    seconds = {
        row["quantity"]: row["values"]
        for row in record.rows
        if row["quantity"].startswith("seconds")
    }
    return found | batching_facts(
        seconds["seconds_one_by_one"],
        seconds["seconds_together"],
        len(record.provenance["seeds"]),
        size["steps"],
    )


WORDS = {
    "zh": {
        "title": "残差流的增长与去掉一层的代价",
        "post": "Post-Norm",
        "pre": "Pre-Norm",
        "scaling": "LayerNorm Scaling",
        "small_writers": "GPT-2 的初始化",
        "sandwich": "夹心归一化",
        "stream": "残差流的 RMS，{most} 层的模型（空心：训练前）",
        "removed": "去掉一层，损失增加多少，{most} 层的模型",
        "tuning": "训练后的损失与学习率（虚线：{least} 层）",
        "layer": "第几层",
        "rms": "RMS（对数刻度）",
        "increase": "损失增加（nat/字节）",
        "rate": "学习率（对数刻度）",
        "loss": "损失（nat/字节）",
        "frequency": "只知道字节频率",
        "band": (
            "线：{seeds} 个种子的中位数；色带：从最小到最大。上、中两图："
            "各自最好的学习率。中图纵轴在 ±0.01 以内是线性的，以外是对数的。"
        ),
        "caption": (
            "在标准库源码上训练的字节级小解码器（d = {d}，{steps} 步），归一化的五种"
            "处理：{most} 层时残差流有多大，去掉一层损失增加多少；以及调学习率的结果。"
        ),
        "alt": (
            "三幅折线图。上图：{most} 层模型末层之后的 RMS，训练前到训练后，Pre-Norm "
            "从 {pre_most_rms_before} 到 {pre_most_rms_after}，LayerNorm Scaling 从 "
            "{scaling_most_rms_before} 到 {scaling_most_rms_after}，GPT-2 的初始化从 "
            "{small_writers_most_rms_before} 到 {small_writers_most_rms_after}，"
            "夹心归一化从 {sandwich_most_rms_before} 到 {sandwich_most_rms_after}，"
            "Post-Norm 从 {post_most_rms_before} 到 {post_most_rms_after}。"
            "中图：去掉第一层，Pre-Norm 的损失增加 {pre_most_first_cost}，后一半的层"
            "平均每层 {pre_most_deep_cost}；LayerNorm Scaling 是 "
            "{scaling_most_first_cost} 和 {scaling_most_deep_cost}。"
            "下图：最好的学习率下，{most} 层的损失，Pre-Norm {pre_most_loss}，"
            "LayerNorm Scaling {scaling_most_loss}，GPT-2 的初始化 "
            "{small_writers_most_loss}，夹心归一化 {sandwich_most_loss}，Post-Norm "
            "{post_most_loss}；只知道字节频率是 {frequency_loss}。"
        ),
    },
    "en": {
        "title": "How the stream grows, and the price of a layer",
        "post": "Post-Norm",
        "pre": "Pre-Norm",
        "scaling": "LayerNorm Scaling",
        "small_writers": "GPT-2's initialization",
        "sandwich": "Sandwich norm",
        "stream": "RMS of the stream, {most} layers (open: untrained)",
        "removed": "Loss increase without one layer, {most} layers",
        "tuning": "Loss after training by learning rate (dashed: {least})",
        "layer": "layer",
        "rms": "RMS (log.)",
        "increase": "increase (nats/byte)",
        "rate": "learning rate (logarithmic)",
        "loss": "loss (nats/byte)",
        "frequency": "byte frequencies alone",
        "band": (
            "Line: median of {seeds} seeds. Band: least to greatest. Upper two: each "
            "at its best learning rate. The middle axis is linear within ±0.01, "
            "logarithmic beyond."
        ),
        "caption": (
            "Small byte-level decoders trained on the standard library's sources "
            "(d = {d}, {steps} steps) with five treatments of the norms: how large the "
            "stream is in {most} layers, how much the loss increases without one "
            "layer, and what tuning the learning rate gave."
        ),
        "alt": (
            "Three line charts. Top, RMS behind the last of {most} layers, before and "
            "after training: Pre-Norm {pre_most_rms_before} and {pre_most_rms_after}, "
            "LayerNorm Scaling {scaling_most_rms_before} and {scaling_most_rms_after}, "
            "GPT-2's initialization {small_writers_most_rms_before} and "
            "{small_writers_most_rms_after}, sandwich norm {sandwich_most_rms_before} "
            "and {sandwich_most_rms_after}, Post-Norm {post_most_rms_before} and "
            "{post_most_rms_after}. Middle: without the first layer the loss of "
            "Pre-Norm increases by {pre_most_first_cost}, without one of the upper "
            "half by {pre_most_deep_cost} on average; for LayerNorm Scaling it is "
            "{scaling_most_first_cost} and {scaling_most_deep_cost}. Bottom: at the "
            "best learning rate the loss with {most} layers is {pre_most_loss} for "
            "Pre-Norm, {scaling_most_loss} for LayerNorm Scaling, "
            "{small_writers_most_loss} for GPT-2's initialization, "
            "{sandwich_most_loss} for sandwich norm and {post_most_loss} for "
            "Post-Norm; byte frequencies alone give {frequency_loss}."
        ),
    },
}


def plot(record, words):
    from statistics import median

    from matplotlib.ticker import MaxNLocator, NullLocator

    from scripts.measure import look

    depths, rates = _depths(record), _rates(record)
    most = depths[-1]
    figure, (stream, removed, tuning) = look.new_figure(
        words, record, rows=3, height=11.5
    )
    top = 1.1 * _frequency_loss(record)  # what diverged is drawn here

    def line(axis, places, samples, drawn, band=True, **options):
        axis.plot(places, list(map(median, samples)), **drawn, **options)
        if band:
            low, high = list(map(min, samples)), list(map(max, samples))
            colour = drawn["color"]
            axis.fill_between(places, low, high, color=colour, alpha=0.13, linewidth=0)

    for series, arm in enumerate(ARMS):
        drawn = {**look.style(series), "markersize": 4.5}
        rate, places = _best(record, arm, most), range(1, most + 1)
        before = _runs(record, arm, most, "rms", "before")
        after = _runs(record, arm, most, "rms", rate=rate)
        after = [run for run in after if None not in run]
        costs = _costs(record, arm, most, rate)
        hollow = {"markerfacecolor": "none", "markeredgewidth": 1.0, "linewidth": 0.9}
        line(stream, places, list(zip(*before, strict=True)), drawn | hollow, False)
        if after:
            line(
                stream,
                places,
                list(zip(*after, strict=True)),
                drawn,
                label=words[arm],
            )
        if costs:
            line(removed, places, list(zip(*costs, strict=True)), drawn)
        for layers in (depths[0], most):
            samples = [
                [min(loss, top) for loss in _losses(record, arm, layers, rate)]
                for rate in rates
            ]
            dashed = {} if layers == most else {"linewidth": 0.9, "linestyle": "--"}
            line(tuning, rates, samples, drawn | dashed, layers == most)

    floor = _frequency_loss(record)
    tuning.axhline(floor, color=look.MUTED, linewidth=1.2, linestyle=look.LINES[2])
    tuning.text(
        rates[0], floor, words["frequency"], color=look.MUTED, va="top", ha="left"
    )
    stream.set_yscale("log")
    look.plain_log(stream.yaxis)
    removed.set_yscale("symlog", linthresh=0.01)
    removed.yaxis.set_minor_locator(NullLocator())
    removed.yaxis.set_major_formatter(lambda value, _: f"{value:g}".replace("-", "−"))
    tuning.set_xscale("log")
    tuning.set_xticks(rates, [f"{rate:g}" for rate in rates])
    tuning.xaxis.set_minor_locator(NullLocator())
    for axis, title, below, left in (
        (stream, "stream", "layer", "rms"),
        (removed, "removed", "layer", "increase"),
        (tuning, "tuning", "rate", "loss"),
    ):
        axis.set_title(words[title])
        axis.set_xlabel(words[below])
        axis.set_ylabel(words[left])
        if below == "layer":
            axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    look.legend(figure)
    look.footer(figure, record, words, words["band"])
    return figure
