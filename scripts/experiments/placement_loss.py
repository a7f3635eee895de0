"""Post-Norm, Pre-Norm, sandwich: which loss, at which rate, with and without warm-up?

The medium companion of warmup_sensitivity: wider models, fifty times as many tokens
a run, a grid of rates meant to hold the best one in its inside, and both controls:
a model without layers, and each placement with its blocks left as drawn, so that
embedding, norms on the way and head are all that learns.

One step is one run: a plain loop, since stacking runs gains nothing at this width.
Steps of one seed stand before those of the next, so that a run that is stopped has
whole seeds. A row holds one quantity of one run: `values` are the held-out loss in
nats per byte before training, after each quarter and at the end (null where it is
no number), or the loss of the bytes' frequencies.
"""

from functools import partial

from scripts.experiments.warmup_sensitivity import fresh
from scripts.measure.corpus import corpus, loss_of, sample
from scripts.measure.design import Design, Run
from scripts.measure.records import Step
from scripts.measure.spread import number
from scripts.measure.texts import design_words, figure_words

METHOD = (
    "Adam (betas 0.9 and 0.999), no weight decay, no clipping, LayerNorm everywhere; "
    "linear warm-up, then linear decay to zero; matrices drawn with variance "
    "1 / fan-in; random pieces of the standard library's sources, the last tenth of "
    "each module held out; a seed has the same draw of the weights and the same data "
    "in every cell; loss on the same held-out pieces for all runs"
)
SEEDS = tuple(range(3))
VARIANTS = ("post", "pre", "sandwich")
BLOCKS = ("trained", "frozen", "none")
WARM_UPS = (0.0, 0.1)  # shares of all steps
RATES = (3e-4, 1e-3, 3e-3, 1e-2)
CONTROL_RATES = (1e-3, 3e-3, 1e-2, 3e-2)
MARGIN = 0.05  # nats per byte below the frequencies' loss: else a run is stuck
CPU_SIZE = "medium"
SIZES = {
    "tiny": dict(
        d=8, heads=2, layers=2, context=8, batch=2, steps=8, pieces=16, rates=2
    ),
    "medium": dict(
        d=64, heads=4, layers=12, context=64, batch=32, steps=750, pieces=256, rates=4
    ),
    "full": dict(
        d=512,
        heads=8,
        layers=24,
        context=256,
        batch=64,
        steps=6000,
        pieces=256,
        rates=4,
    ),
}
PARALLEL = True


def without(placement: str, blocks: str, size: dict, seed: int):
    """The model of a run, and the parameters that it trains."""
    from torch import nn

    model = fresh(placement, size["layers"], size, seed)
    if blocks == "none":
        model.blocks = nn.ModuleList()
    named = model.named_parameters()
    kept = [p for n, p in named if blocks == "trained" or not n.startswith("blocks.")]
    if blocks == "frozen":
        model.blocks.requires_grad_(False)
    return model, kept


def evaluate(model, size: dict) -> float | None:
    """The loss on the held-out pieces, None where it is no number."""
    import torch

    fixed = torch.Generator().manual_seed(0)
    text = sample(corpus()[1], size["pieces"], size["context"], fixed)
    device = next(model.parameters()).device
    with torch.no_grad():
        parts = [loss_of(model, part) for part in text.to(device).split(64)]
    loss = torch.stack(parts).mean().item()
    return loss if loss < float("inf") else None


def run(
    name: str, placement: str, blocks: str, rate: float, warm: float, seed: int
) -> list[dict]:
    """Train one model; its held-out loss at the start and after each quarter."""
    import torch

    from scripts.measure.together import warm_up

    size = SIZES[name]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model, kept = without(placement, blocks, size, seed)
    model.to(device)
    steps = size["steps"]
    factor = warm_up(steps, round(warm * steps))
    adam = torch.optim.Adam(kept, rate)
    generator = torch.Generator().manual_seed(seed)
    losses = [evaluate(model, size)]
    for step in range(steps):
        adam.param_groups[0]["lr"] = rate * factor(step)
        text = sample(corpus()[0], size["batch"], size["context"], generator)
        adam.zero_grad(set_to_none=True)
        loss_of(model, text.to(device)).backward()
        adam.step()
        if 4 * (step + 1) % steps == 0:
            losses.append(evaluate(model, size))
    return [row(placement, blocks, size, rate, warm, seed, "loss", losses)]


def row(placement, blocks, size, rate, warm, seed, quantity, values) -> dict:
    return {
        "placement": placement,
        "blocks": blocks,
        "d": size["d"],
        "layers": 0 if blocks == "none" else size["layers"],
        "learning_rate": rate,
        "warm_up": warm,
        "seed": seed,
        "quantity": quantity,
        "values": values,
    }


def frequencies(name: str) -> list[dict]:
    """The held-out loss of the training bytes' frequencies: no context at all."""
    import torch

    size = SIZES[name]
    fixed = torch.Generator().manual_seed(0)
    text = sample(corpus()[1], size["pieces"], size["context"], fixed)
    counts = torch.bincount(corpus()[0], minlength=256).double() + 1
    loss = -(counts / counts.sum()).log()[text[:, 1:]].mean().item()
    return [row(None, None, size, None, None, None, "frequencies", [loss])]


def measure(size: str) -> list[Step]:
    """One step is one run; the runs of a seed stand together."""
    count = SIZES[size]["rates"]
    runs = [
        cell
        for seed in SEEDS
        for cell in (
            *[
                (placement, "trained", rate, warm, seed)
                for rate in sorted(RATES[-count:], key=lambda each: each != 3e-3)
                for warm in WARM_UPS
                for placement in VARIANTS
            ],
            *[("pre", "none", rate, 0.0, seed) for rate in CONTROL_RATES[-count:]],
            *[
                (placement, "frozen", rate, 0.0, seed)
                for placement in VARIANTS
                for rate in CONTROL_RATES[-count:]
            ],
        )
    ]
    names = ("placement", "blocks", "learning_rate", "warm_up", "seed")
    return [
        Step(dict(zip(names, cell, strict=True)), partial(run, size, *cell))
        for cell in runs
    ] + [Step({"frequencies": "bytes"}, partial(frequencies, size))]


# What it declares -----------------------------------------------------------


def _arm(row: dict) -> str:
    if row["blocks"] == "none":
        return "no_layers"
    return row["placement"] + ("" if row["blocks"] == "trained" else "_frozen")


def _runs(record) -> list[Run]:
    """Controls belong to every warm-up."""
    return [
        Run(
            _arm(row),
            row["seed"],
            cell=(row["warm_up"],) if row["blocks"] == "trained" else None,
            rate=row["learning_rate"],
            width=row["d"],
            steps=SIZES[record.size]["steps"],
            loss=row["values"][-1],
        )
        for row in record.select(quantity="loss")
    ]


DESIGN = Design(
    says=("after_training", "differences"),
    arms=VARIANTS,
    without_layers="no_layers",
    frozen={variant: f"{variant}_frozen" for variant in VARIANTS},
    runs=_runs,
    **design_words(__file__),
)


# What the page says -------------------------------------------------------


def _losses(record, placement: str, warm: float) -> dict[float, list[float]]:
    """By rate, the final losses in the order of the seeds; no number is infinite."""
    found: dict[float, list[float]] = {}
    wanted = dict(placement=placement, blocks="trained", warm_up=warm, quantity="loss")
    for row in record.select(**wanted):
        last = row["values"][-1]
        loss = float("inf") if last is None else last
        found.setdefault(row["learning_rate"], []).append(loss)
    return found


def _best(losses: dict[float, list[float]]) -> float:
    from statistics import median

    return min(losses, key=lambda rate: median(losses[rate]))


def facts(record) -> dict[str, str]:
    from math import isfinite
    from statistics import median

    from scripts.measure.spread import paired

    size = SIZES[record.size]
    (row,) = (r for r in record.rows if r["quantity"] == "frequencies")
    found = {
        "seeds": str(len(record.provenance["seeds"])),
        "d": str(size["d"]),
        "layers": str(size["layers"]),
        "steps": str(size["steps"]),
        "tokens": f"{size['steps'] * size['batch'] * size['context'] / 1e6:.1f}",
        "warm": f"{100 * WARM_UPS[1]:.0f} %",
        "frequencies": number(row["values"][0], 2),
    }
    best = {}
    for placement in VARIANTS:
        for warm, word in zip(WARM_UPS, ("none", "warm"), strict=True):
            name, losses = f"{placement}_{word}", _losses(record, placement, warm)
            rate = _best(losses)
            best[name] = losses[rate]
            found[f"{name}_best"] = number(median(losses[rate]), 3)
            found[f"{name}_best_rate"] = f"{rate:g}"
            stuck = [
                loss
                for own in losses.values()
                for loss in own
                if not isfinite(loss) or loss > row["values"][0] - MARGIN
            ]
            found[f"{name}_stuck"] = str(len(stuck))
    for placement in VARIANTS:
        pairs = {"gain": (f"{placement}_none", f"{placement}_warm")}
        if placement != "pre":
            pairs["behind_pre"] = (f"{placement}_warm", "pre_warm")
        for word, (one, other) in pairs.items():
            if all(map(isfinite, best[one] + best[other])):
                difference = paired(best[one], best[other])
                found[f"{placement}_{word}"] = difference.text(3)
                found[f"{placement}_{word}_bound"] = difference.bound(3)
    return found


WORDS = figure_words(__file__)


def plot(record, words):
    from math import isfinite
    from statistics import median

    from scripts.measure import look

    (row,) = (r for r in record.rows if r["quantity"] == "frequencies")
    figure, axis = look.new_figure(words, record)
    for series, placement in enumerate(VARIANTS):
        for warm, word in zip(WARM_UPS, ("none", "warm"), strict=True):
            losses = _losses(record, placement, warm)
            line = [min(median(own), row["values"][0]) for own in losses.values()]
            drawn = {**look.style(series), "linestyle": look.LINES[0 if warm else 1]}
            axis.plot(list(losses), line, label=words[placement] + words[word], **drawn)
            for rate, own in losses.items():
                seen = [loss for loss in own if isfinite(loss)]
                dots = dict(color=drawn["color"], marker="o", markersize=2.5)
                axis.plot([rate] * len(seen), seen, linestyle="none", **dots)
    dashes = dict(color=look.MUTED, linewidth=1, linestyle=look.LINES[1])
    axis.axhline(row["values"][0], **dashes)
    axis.set_xscale("log")
    axis.set_xlabel(words["rate"])
    axis.set_ylabel(words["loss"])
    look.legend(figure)
    look.footer(figure, record, words, words["band"])
    return figure
