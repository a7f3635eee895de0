"""Where does the gradient die: Pre-Norm and Post-Norm on a task that needs attention.

The task: at each position, name the largest token so far. A model without layers
cannot do it, since it sees one token; no positions are needed. Decoders that differ
in the place of the norm alone are trained at every depth, width and rate, and so are
their controls: the same model with its blocks frozen at initialization, and one
without layers.

In the cell OPENING the runs are also looked at from inside, on the same held-out
sequences each time: the gradient of the loss with respect to the residual stream
after each layer, and the cosine between the tokens of a sequence there.

A row is one quantity of one run: `values` are held-out losses in nats, one for each
look, or what was seen after layer `depth` (0: the embedding), one for each frame;
null where the run had ended without a finite loss.
"""

from functools import partial

from scripts.measure.design import Design, Run
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.fact_formatting import best, with_inf
from scripts.measure.records import Step
from scripts.measure.spread import number, span

METHOD = (
    "Adam (betas 0.9 and 0.999), no weight decay, no clipping, no warm-up, linear "
    "decay to zero; LayerNorm everywhere; matrices drawn with variance 1 / fan-in, "
    "embedding rows with variance 1; tokens drawn uniformly, the target at each "
    "position is the largest so far; a seed has the same draw of the weights and the "
    "same data in all arms and at all rates; loss on the same held-out sequences for "
    "all runs; float32; all runs of one arm and size as one stack"
)
PARALLEL = True
CPU_SIZE = "small"
SEEDS = tuple(range(5))
ARMS = ("pre", "post")
FROZEN = {arm: f"frozen_{arm}" for arm in ARMS}
VOCABULARY, CONTEXT, BATCH = 32, 16, 8
SIZES = {
    "tiny": {
        "cells": ((1, 8), (2, 8)),
        "opening": (2, 8, 3e-3),
        "rates": (3e-3, 1e-2),
        "steps": 10,
        "every": 5,
        "sequences": 4,
    },
    "small": {
        "cells": ((2, 16), (6, 16), (12, 16), (6, 64)),  # layers, d
        "opening": (6, 16, 1e-2),
        "rates": (3e-4, 1e-3, 3e-3, 1e-2, 3e-2),
        "steps": 600,
        "every": 10,
        "sequences": 128,
    },
    "full": {
        "cells": ((6, 64), (12, 64), (24, 64), (12, 256)),
        "opening": (12, 64, 3e-3),
        "rates": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2),
        "steps": 1000,
        "every": 10,
        "sequences": 128,
    },
}


def fresh(arm: str, layers: int, d: int, seed: int):
    """The model of an arm as drawn; in a control its blocks are frozen or absent."""
    from torch import nn

    from scripts.measure.frozen import freeze
    from snippets.pre_norm_vs_post_norm.blocks import PostNormBlock, PreNormBlock
    from snippets.pre_norm_vs_post_norm.decoder import Decoder, initialize

    post = arm.endswith("post")
    model = Decoder(
        d,
        0 if arm == "no_layers" else layers,
        2,
        VOCABULARY,
        block=PostNormBlock if post else PreNormBlock,
        norm=nn.LayerNorm,
        final_norm=not post,
    )
    initialize(model, seed)
    if arm.startswith("frozen_"):
        freeze(model.blocks)
    return model


def sequences(count: int, generator):
    """(count, time) tokens, drawn uniformly."""
    import torch

    return torch.randint(VOCABULARY, (count, CONTEXT), generator=generator)


def loss_of(model, tokens):
    """Mean cross-entropy, in nats, of naming the largest token so far."""
    from torch.nn.functional import cross_entropy

    largest = tokens.cummax(dim=1).values
    return cross_entropy(model(tokens).flatten(0, 1), largest.flatten())


def held_out(setting: dict):
    """The same sequences for all runs."""
    import torch

    return sequences(setting["sequences"], torch.Generator().manual_seed(2026))


def inside(model, tokens) -> tuple[list[float], list[float]]:
    """After the embedding and each layer: RMS of the gradient, cosine of the tokens."""
    import torch

    streams = [model.embedding(tokens)]
    for attention, feed_forward in zip(
        model.blocks[::2], model.blocks[1::2], strict=True
    ):
        streams.append(feed_forward(attention(streams[-1])))
    largest = tokens.cummax(dim=1).values
    logits = model.head(model.norm(streams[-1]))
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), largest.flatten())
    gradients = torch.autograd.grad(loss, streams)
    others = ~torch.eye(tokens.shape[1], dtype=torch.bool)

    def cosine(stream):
        units = torch.nn.functional.normalize(stream.detach(), dim=-1)
        return (units @ units.mT)[:, others].mean().item()

    sizes = [each.square().mean().sqrt().item() for each in gradients]
    return sizes, list(map(cosine, streams))


def row(arm, layers, d, rate, seed, quantity, values, depth=None) -> dict:
    from math import isfinite

    return {
        "arm": arm,
        "layers": layers,
        "d": d,
        "rate": rate,
        "seed": seed,
        "quantity": quantity,
        "depth": depth,
        "values": [float(f"{v:.4g}") if isfinite(v) else None for v in values],
    }


def trained(arm, layers, d, setting: dict) -> list[dict]:
    """The rows of one arm in one cell: every rate and seed, side by side."""
    import torch

    from scripts.measure.single import moments
    from scripts.measure.together import Together, alone, train

    runs = [(rate, seed) for rate in setting["rates"] for seed in SEEDS]
    models = Together([fresh(arm, layers, d, seed) for _, seed in runs])
    generators = [torch.Generator().manual_seed(1000 + seed) for seed in SEEDS]
    steps, looks = setting["steps"], moments(setting["steps"])
    frames = range(0, steps + 1, setting["every"])
    probe = held_out(setting)
    opening = [
        run
        for run, (rate, _) in enumerate(runs)
        if arm in ARMS and (layers, d, rate) == setting["opening"]
    ]
    losses, seen = [], []

    def data(step):
        text = torch.stack([sequences(BATCH, each) for each in generators])
        return (text.repeat(len(setting["rates"]), 1, 1),)

    def note(step, _=None):
        if step in looks:
            texts = probe.expand(models.runs, -1, -1)
            losses.append(models.losses(loss_of, texts).tolist())
        if step in frames and opening:
            seen.append([inside(alone(models, run), probe) for run in opening])

    train(
        models,
        loss_of,
        data,
        steps,
        [rate for rate, _ in runs],
        schedule=lambda step: 1 - step / steps,
        seen=note,
        weight_decay=0.0,
    )
    note(steps)
    rows = [
        row(arm, layers, d, *run, "held_out", values)
        for run, values in zip(runs, zip(*losses, strict=True), strict=True)
    ]
    rows += [
        row(
            *(arm, layers, d, *runs[run], quantity),
            [frame[place][index][depth] for frame in seen],
            depth,
        )
        for place, run in enumerate(opening)
        for depth in range(layers + 1)
        for index, quantity in enumerate(("gradient", "cosine"))
    ]
    return rows


def measure(size: str) -> list[Step]:
    """One step trains one arm in one cell, at every rate and from every seed."""
    setting = SIZES[size]
    stacks = [
        (arm, layers, d)
        for layers, d in setting["cells"]
        for arm in (*ARMS, *FROZEN.values())
    ]
    stacks += [("no_layers", 0, d) for d in sorted({d for _, d in setting["cells"]})]
    return [
        Step(
            {"arm": arm, "layers": layers, "d": d},
            partial(trained, arm, layers, d, setting),
            cost=0.3 + layers * (4 if d > 16 else 1),
        )
        for arm, layers, d in stacks
    ]


# What the page says -------------------------------------------------------


def _losses(record, arm: str, layers: int, d: int, rate: float) -> list[float]:
    """Final losses, in the order of the seeds; null, a run that diverged, is inf."""
    layers = 0 if arm == "no_layers" else layers
    cell = {"arm": arm, "layers": layers, "d": d, "rate": rate}
    ends = [r["values"][-1] for r in record.select(quantity="held_out", **cell)]
    return with_inf(ends)


def _rates(record) -> list[float]:
    return sorted({r["rate"] for r in record.rows})


def _key(rate: float) -> str:
    """0.003 as a part of a fact's name: 003."""
    return f"{rate:f}".rstrip("0").removeprefix("0.")


def _best(record, arm: str, layers: int, d: int) -> float:
    """The rate with the least median loss."""
    return best(_rates(record), lambda rate: _losses(record, arm, layers, d, rate))


def facts(record) -> dict[str, str]:
    from math import isfinite
    from statistics import median

    setting = SIZES[record.size]
    found = {
        "seeds": str(len(SEEDS)),
        "steps": str(setting["steps"]),
        **{f"rate_{_key(rate)}": f"{rate:g}" for rate in _rates(record)},
        "opening_layers": str(setting["opening"][0]),
        "opening_d": str(setting["opening"][1]),
        "opening_rate": f"{setting['opening'][2]:g}",
    }
    for layers, d in setting["cells"]:
        for arm in (*ARMS, *FROZEN.values(), "no_layers"):
            name, chosen = f"{arm}_{layers}_{d}", _best(record, arm, layers, d)
            for label, rate in [("best", chosen)] + [
                (_key(rate), rate) for rate in _rates(record)
            ]:
                losses = _losses(record, arm, layers, d, rate)
                finite = all(map(isfinite, losses))
                found[f"{name}_{label}"] = number(median(losses)) if finite else "∞"
                found[f"{name}_{label}_range"] = span(losses)
    for arm in (*ARMS, "no_layers"):
        losses = _losses(record, arm, *setting["opening"])
        finite = all(map(isfinite, losses))
        found[f"{arm}_opening"] = number(median(losses)) if finite else "∞"
        found[f"{arm}_opening_range"] = span(losses)
    for arm in ARMS:
        through, alike = _narrowest(record, arm), _alike(record, arm)
        found |= {
            f"{arm}_narrowest": f"{median(through):.1g}",
            f"{arm}_narrowest_range": f"[{min(through):.1g}, {max(through):.1g}]",
            f"{arm}_cosine_range": span(alike),
        }
    return found


def _frames(record, arm: str, quantity: str, seed: int) -> list[list[float]]:
    """What was seen after each layer of one run: (layers + 1, frames)."""
    rows = record.select(arm=arm, quantity=quantity, seed=seed)
    return [row["values"] for row in sorted(rows, key=lambda row: row["depth"])]


def _narrowest(record, arm: str) -> list[float]:
    """Of each seed, the least gradient of any layer over that of the last.

    The median over the second half of the run.
    """
    from statistics import median

    shares = []
    for seed in SEEDS:
        frames = list(zip(*_frames(record, arm, "gradient", seed), strict=True))
        late = frames[len(frames) // 2 :]
        shares.append(median(min(frame) / frame[-1] for frame in late))
    return shares


def _alike(record, arm: str) -> list[float]:
    """Of each seed, the cosine between tokens after the last layer, at the end."""
    return [_frames(record, arm, "cosine", seed)[-1][-1] for seed in SEEDS]


def _runs(record) -> list[Run]:
    return [
        Run(
            r["arm"],
            r["seed"],
            cell=None if r["arm"] == "no_layers" else (r["layers"], r["d"]),
            rate=r["rate"],
            width=r["d"],
            steps=SIZES[record.size]["steps"],
            loss=r["values"][-1],
        )
        for r in record.select(quantity="held_out")
    ]


DESIGN = Design(
    says=("trains", "after_training"),
    arms=ARMS,
    without_layers="no_layers",
    frozen=FROZEN,
    runs=_runs,
    **design_words(__file__),
)

WORDS = figure_words(__file__)


def plot(record, words):
    from statistics import median

    from scripts.measure import figures
    from scripts.measure.single import moments

    setting = SIZES[record.size]
    layers, d, rate = setting["opening"]
    figure, axes = figures.new_figure(
        words, record, 2, 2, height=4.4, sharex=True, sharey="row"
    )
    bare = median(_losses(record, "no_layers", layers, d, rate))
    steps = range(0, setting["steps"] + 1, setting["every"])
    looks = moments(setting["steps"])
    for series, (arm, (top, below)) in enumerate(zip(ARMS, axes.T, strict=True)):
        chosen = {"arm": arm, "layers": layers, "d": d, "rate": rate}
        for run in record.select(quantity="held_out", **chosen):
            colour = figures.SERIES[1 - series]
            top.plot(looks, run["values"], color=colour, linewidth=1, marker="none")
        top.axhline(bare, color=figures.MUTED, linewidth=1, linestyle=figures.LINES[1])
        top.set_title(words[arm])
        rows = _frames(record, arm, "gradient", SEEDS[0])
        _map(below, [values[::2] for values in rows], steps[::2])
        below.set_xlabel(words["step"])
    axes[0][0].set_ylabel(words["loss"])
    axes[1][0].set_ylabel(words["layer"])
    figures.footer(figure, record, words, words["band"])
    return figure


def _map(axis, gradients: list[list[float]], steps) -> None:
    """A cell for each layer and frame: the darker, the smaller the gradient."""
    from math import log10

    from scripts.measure import figures

    width = steps[1] - steps[0]
    for layer, values in enumerate(gradients):
        for step, value in zip(steps, values, strict=True):
            size = -7 if not value else max(-7.0, min(-3.0, log10(value)))
            sides = [step - width / 2, step + width / 2]
            drawn = {
                "color": figures.SERIES[0],
                "alpha": (size + 7) / 4,
                "linewidth": 0,
            }
            axis.fill_between(sides, layer - 0.5, layer + 0.5, **drawn)
    axis.set_ylim(-0.5, len(gradients) - 0.5)
