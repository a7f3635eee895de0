"""Which placements of the norm need warm-up, and over which learning rates?

Four placements, two depths, every learning rate of a grid with no warm-up, with
a short and with a long one: small decoders trained on bytes of Python's standard
library. Xiong et al. (2020) report that Post-Norm needs warm-up and Pre-Norm does
not. Wortsman et al. (2023) sum such a grid up as the learning-rate sensitivity,
the mean over the grid of min(final loss, initial loss) - least final loss.

The learning rate rises linearly during the warm-up and then falls linearly to
zero at the last step, so the sum of the factors over a run is the same, to half a
step, whatever share of it the warm-up takes.

A run has failed when it ends no better than a table of the bytes' frequencies:
its held-out loss is not at least MARGIN below that of the frequencies. Among the
failed, a run has diverged when its loss is no number or above its initial one.

A row holds one quantity of one run: `values` are the held-out loss before and
after training in nats per byte (null where it is no number), or the loss of
the frequencies.
"""

from functools import partial

from scripts.measure.corpus import corpus, loss_of, sample
from scripts.measure.design import Design, Run
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.fact_formatting import Found, best
from scripts.measure.records import Step
from scripts.measure.spread import integer, number

METHOD = (
    "Adam (betas 0.9 and 0.999), no weight decay, no clipping, LayerNorm everywhere; "
    "linear warm-up, then linear decay to zero; matrices drawn with variance "
    "1 / fan-in, those of DeepNorm times its beta; random pieces of the standard "
    "library's sources, the last tenth of each module held out; a seed has the same "
    "draw of the weights and the same data in every cell; loss on the same held-out "
    "pieces for all runs"
)
SEEDS = tuple(range(5))
VARIANTS = ("post", "deepnorm", "pre", "sandwich")
WARM_UPS = (0.0, 0.1, 0.5)  # shares of all steps
RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
MARGIN = 0.05  # nats per byte below the frequencies' loss: then a run has learned
SIZES = {
    "tiny": dict(
        d=8, heads=2, depths=(1, 2), context=8, batch=2, steps=10, rates=RATES[1:4:2]
    ),
    "small": dict(
        d=16, heads=2, depths=(6, 12), context=16, batch=8, steps=600, rates=RATES
    ),
    "full": dict(
        d=64, heads=4, depths=(12, 24), context=64, batch=16, steps=400, rates=RATES
    ),
}
PIECES = {"tiny": 16, "small": 256, "full": 512}  # of held-out text
PARALLEL = True


def fresh(variant: str, layers: int, size: dict, seed: int):
    """A model at initialization, with the same draw for every variant."""
    import torch
    from torch import nn

    from snippets.deepnorm.block import DeepNorm
    from snippets.deepnorm.coefficients import coefficients
    from snippets.pre_norm_vs_post_norm.blocks import PostNormBlock, PreNormBlock
    from snippets.pre_norm_vs_post_norm.decoder import Decoder, initialize
    from snippets.sandwich_norm.blocks import SandwichNorm

    d = size["d"]
    alpha, beta = coefficients(decoder_layers=layers)["decoder"]
    blocks = {
        "post": PostNormBlock,
        "deepnorm": lambda branch, norm: DeepNorm(branch, d, alpha),
        "pre": PreNormBlock,
        "sandwich": lambda branch, norm: SandwichNorm(branch, d, nn.LayerNorm),
    }
    model = Decoder(
        d,
        layers,
        size["heads"],
        256,
        block=blocks[variant],
        norm=nn.LayerNorm,
        final_norm=variant in ("pre", "sandwich"),
    )
    initialize(model, seed)
    if variant == "deepnorm":
        linear = [m for m in model.blocks.modules() if isinstance(m, nn.Linear)]
        with torch.no_grad():
            for i, layer in enumerate(linear):  # of q, k and v, beta is for v alone
                layer.weight[2 * d if i % 4 == 0 else 0 :].mul_(beta)
    return model


def cells(size: dict) -> list[tuple[float, float, int]]:
    """(learning rate, warm-up, seed) of every run of a stack."""
    return [
        (rate, warm, seed)
        for rate in size["rates"]
        for warm in WARM_UPS
        for seed in SEEDS
    ]


def stack(variant: str, layers: int, size: dict, device: str) -> list:
    """A fresh model for each cell; those of one seed are equal."""
    return [fresh(variant, layers, size, seed).to(device) for _, _, seed in cells(size)]


def texts(size: dict, device: str):
    """step -> (runs, batch, context + 1): each seed has its own stream of text."""
    import torch

    training, _ = corpus()
    generators = [torch.Generator().manual_seed(seed) for seed in SEEDS]

    def data(step):
        pieces = torch.stack(
            [sample(training, size["batch"], size["context"], g) for g in generators]
        )
        runs = len(cells(size)) // len(SEEDS)
        return (pieces.to(device).repeat(runs, 1, 1),)

    return data


def factors(size: dict, device: str):
    """step -> the learning rates' factors, one for each run."""
    import torch

    from scripts.measure.together import warm_up

    steps = size["steps"]
    of = {share: warm_up(steps, round(share * steps)) for share in WARM_UPS}
    return lambda step: torch.tensor(
        [of[warm](step) for _, warm, _ in cells(size)], device=device
    )


def held_out(name: str):
    """Pieces of held-out text, the same for all: (pieces, context + 1)."""
    import torch

    fixed = torch.Generator().manual_seed(0)
    return sample(corpus()[1], PIECES[name], SIZES[name]["context"], fixed)


def evaluate(models, name: str, device: str) -> list:
    """The held-out loss of every run, None where it is no number."""
    import torch

    parts = held_out(name).to(device).split(128)  # equal ones, to save memory
    losses = torch.stack(
        [models.losses(loss_of, part.expand(models.runs, -1, -1)) for part in parts]
    ).mean(0)
    return [
        loss if finite else None
        for loss, finite in zip(
            losses.tolist(), losses.isfinite().tolist(), strict=True
        )
    ]


def row(variant, layers, cell, quantity, values) -> dict:
    rate, warm, seed = cell
    return {
        "variant": variant,
        "layers": layers,
        "learning_rate": rate,
        "warm_up": warm,
        "seed": seed,
        "quantity": quantity,
        "values": values,
    }


def run(name: str, variant: str, layers: int) -> list[dict]:
    """Train every cell of one stack side by side."""
    import torch

    from scripts.measure.together import Together, train

    size = SIZES[name]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    models = stack(variant, layers, size, device)
    before = evaluate(Together(models[: len(SEEDS)]), name, device)
    before *= len(models) // len(SEEDS)
    models = Together(models)
    train(
        models,
        loss_of,
        texts(size, device),
        size["steps"],
        [rate for rate, _, _ in cells(size)],
        schedule=factors(size, device),
        weight_decay=0.0,
    )
    after = evaluate(models, name, device)
    return [
        row(variant, layers, cell, "loss", list(losses))
        for cell, losses in zip(
            cells(size), zip(before, after, strict=True), strict=True
        )
    ]


def frequencies(name: str) -> list[dict]:
    """The held-out loss of the training bytes' frequencies: no context at all."""
    import torch

    training, _ = corpus()
    counts = torch.bincount(training, minlength=256).double() + 1
    loss = -(counts / counts.sum()).log()[held_out(name)[:, 1:]].mean()
    return [row(None, None, (None, None, None), "frequencies", [loss.item()])]


def measure(size: str) -> list[Step]:
    """One step trains all learning rates, warm-ups and seeds of one stack."""
    depths = sorted(SIZES[size]["depths"], reverse=True)  # the long ones first
    return [
        Step(
            {"variant": variant, "layers": layers},
            partial(run, size, variant, layers),
            cost=float(layers),
        )
        for layers in depths
        for variant in VARIANTS
    ] + [
        Step({"frequencies": "bytes"}, partial(frequencies, size), cost=0.1),
    ]


# What it declares -----------------------------------------------------------


def _declared(record) -> list[Run]:
    return [
        Run(
            row["variant"],
            row["seed"],
            cell=(row["layers"], row["warm_up"]),
            rate=row["learning_rate"],
            width=SIZES[record.size]["d"],
            steps=SIZES[record.size]["steps"],
            loss=row["values"][1],
        )
        for row in record.select(quantity="loss")
    ]


DESIGN = Design(
    says=("after_training", "differences"),
    arms=VARIANTS,
    runs=_declared,
    **design_words(__file__),
)


# What the page says -------------------------------------------------------


NAMES = dict(zip(WARM_UPS, ("none", "short", "long"), strict=True))


def _runs(record, **wanted) -> list[dict]:
    return record.select(quantity="loss", **wanted)


def _timed(record, quantity: str) -> list[float]:
    (values,) = (row["values"] for row in record.rows if row["quantity"] == quantity)
    return values


def _depths(record) -> list[int]:
    return sorted({row["layers"] for row in _runs(record)})


def _rates(record) -> list[float]:
    return sorted({row["learning_rate"] for row in _runs(record)})


def _final(row: dict) -> float:
    """The final loss; one that is no number counts as the greatest."""
    return float("inf") if row["values"][1] is None else row["values"][1]


def _failed(row: dict, frequencies: float, margin: float = MARGIN) -> bool:
    return _final(row) > frequencies - margin


def _diverged(row: dict) -> bool:
    return _final(row) > row["values"][0]


def _sensitivities(runs: list[dict], least: float | None = None) -> list[float]:
    """Wortsman et al.'s figure for each seed, from the runs of all learning rates.

    The loss to compare with is the seed's least one, or `least` when it is given.
    """
    found = []
    for seed in sorted({row["seed"] for row in runs}):
        own = [row for row in runs if row["seed"] == seed]
        capped = [min(_final(row), row["values"][0]) for row in own]
        best = min(capped) if least is None else least
        found.append(sum(capped) / len(capped) - best)
    return found


def _best(runs: list[dict]) -> tuple[float, list[float]]:
    """(learning rate of the least median final loss, its losses by seed)."""
    by_rate: dict[float, list[float]] = {}
    for row in runs:
        by_rate.setdefault(row["learning_rate"], []).append(_final(row))
    rate = best(by_rate, by_rate.get)
    return rate, by_rate[rate]


def _reach(runs: list[dict], frequencies: float) -> str:
    """The greatest learning rate at which no seed failed; a dash without one."""
    failed = {r["learning_rate"] for r in runs if _failed(r, frequencies)}
    rates = {row["learning_rate"] for row in runs} - failed
    return f"{max(rates):g}" if rates else "\u2014"


def _best_cell(record, **wanted) -> list[float]:
    """By seed, the losses of the cell with the least median."""
    from statistics import median

    found = [_best(_runs(record, warm_up=warm, **wanted))[1] for warm in WARM_UPS]
    return min(found, key=median)


def facts(record) -> dict[str, str]:
    from statistics import median

    size = SIZES[record.size]
    depths, rates = _depths(record), _rates(record)
    (frequencies,) = _timed(record, "frequencies")
    runs = _runs(record)
    found = Found({name: str(size[name]) for name in ("d", "steps")})
    found |= {
        "seeds": str(len(record.provenance["seeds"])),
        "least": str(depths[0]),
        "most": str(depths[-1]),
        "tokens": str(size["batch"] * size["context"]),
        "held_out": integer(PIECES[record.size] * size["context"]),
        "rates": str(len(rates)),
        "rate_least": f"{rates[0]:g}",
        "rate_most": f"{rates[-1]:g}",
        "short": f"{100 * WARM_UPS[1]:.0f}%",
        "long": f"{100 * WARM_UPS[2]:.0f}%",
        "margin": f"{MARGIN:g}",
        "frequencies": number(frequencies, 2),
        "runs_each": str(len(SEEDS) * len(rates)),
        "failed": str(sum(_failed(row, frequencies) for row in runs)),
        "diverged": str(sum(map(_diverged, runs))),
        "runs_placement": str(len(runs) // len(VARIANTS)),
    }

    least = {
        layers: min(
            median(_best_cell(record, variant=variant, layers=layers))
            for variant in VARIANTS
        )
        for layers in depths
    }
    for variant in VARIANTS:
        for end, layers in (("least", depths[0]), ("most", depths[-1])):
            chosen = {}
            for warm, word in NAMES.items():
                name = f"{variant}_{end}_{word}"
                own = _runs(record, variant=variant, layers=layers, warm_up=warm)
                failed = [row for row in own if _failed(row, frequencies)]
                found[f"{name}_failed"] = str(len(failed))
                found[f"{name}_reach"] = _reach(own, frequencies)
                found.median(f"{name}_sensitivity", _sensitivities(own))
                found.median(f"{name}_regret", _sensitivities(own, least[layers]))
                rate, chosen[word] = _best(own)
                found.median(f"{name}_best", chosen[word])
            found.paired(f"{variant}_{end}_gain", chosen["none"], chosen["long"])
            for word, rate in (("least", rates[0]), ("most", rates[-1])):
                wanted = dict(variant=variant, layers=layers, learning_rate=rate)
                ours, theirs = (
                    [_final(row) for row in _runs(record, warm_up=warm, **wanted)]
                    for warm in (WARM_UPS[0], WARM_UPS[2])
                )
                found.paired(f"{variant}_{end}_gain_at_{word}", ours, theirs)
    for end, layers in (("least", depths[0]), ("most", depths[-1])):
        for variant in VARIANTS:
            ours, theirs = (
                _best_cell(record, variant=each, layers=layers)
                for each in (variant, "pre")
            )
            found.paired(f"{variant}_{end}_behind_pre", ours, theirs)
    return found


WORDS = figure_words(__file__)


SHADES = 10  # of blue, from the frequencies' loss to the least one


def plot(record, words):
    from math import ceil
    from statistics import median

    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    from scripts.measure import figures

    grey = dict(facecolor=figures.PANEL)
    depths, rates = _depths(record), _rates(record)
    (frequencies,) = _timed(record, "frequencies")
    lines = [
        (layers, warm, 3.3 * i + j)  # a gap between the depths
        for i, layers in enumerate(depths)
        for j, warm in enumerate(WARM_UPS)
    ]
    labels = [
        ("" if warm else f"{layers} {words['layers']}") + f"{100 * warm:.0f}%"
        for layers, warm, _ in lines
    ]
    figure, axes = figures.new_figure(words, record, rows=4, height=7.8)
    found = {
        (variant, layers, warm, rate): _runs(
            record, variant=variant, layers=layers, warm_up=warm, learning_rate=rate
        )
        for variant in VARIANTS
        for layers, warm, _ in lines
        for rate in rates
    }
    middle = {cell: median(map(_final, runs)) for cell, runs in found.items()}
    least = min(middle.values())

    def draw(axis, shapes, **drawn):
        """Many polygons or strokes as one path: a page carries fewer bytes."""
        path = Path.make_compound_path(*map(Path, shapes))
        axis.add_patch(PathPatch(path, clip_on=False, **drawn))

    for axis, variant in zip(axes, VARIANTS, strict=True):
        tiles: dict[int, list] = {}  # by shade, 0 to SHADES
        dots = []
        for layers, warm, y in lines:
            for x, rate in enumerate(rates):
                cell = (variant, layers, warm, rate)
                depth = (frequencies - middle[cell]) / (frequencies - least)
                left, right, top, low = x - 0.48, x + 0.48, y - 0.46, y + 0.46
                tiles.setdefault(ceil(SHADES * max(depth, 0)), []).append(
                    [(left, top), (right, top), (right, low), (left, low)]
                )
                axis.text(x, y - 0.1, number(middle[cell], 2), ha="center", va="center")
                failed = sum(_failed(row, frequencies) for row in found[cell])
                for i in range(failed):
                    at = x + 0.13 * (i - (failed - 1) / 2)
                    dots.append([(at - 0.004, y + 0.37), (at + 0.004, y + 0.37)])
        for shade, shapes in sorted(tiles.items()):
            blue = dict(facecolor=figures.SERIES[0], alpha=0.5 * shade / SHADES)
            draw(axis, shapes, linewidth=0, **(blue if shade else grey))
        if dots:
            round_ends = dict(linewidth=3.2, capstyle="round")
            draw(
                axis, dots, edgecolor=figures.SERIES[1], facecolor="none", **round_ends
            )
        axis.set_title(words[variant])
        axis.grid(False)
        axis.spines[:].set_visible(False)
        axis.tick_params(length=0)
        axis.set_xlim(-0.5, len(rates) - 0.5)
        axis.set_ylim(lines[-1][2] + 0.5, -0.5)
        axis.set_yticks([y for _, _, y in lines], labels)
        ends = axis in (axes[0], axes[-1])
        names = [f"{rate:g}" if ends else "" for rate in rates]
        axis.set_xticks(range(len(rates)), names)
    axes[-1].set_xlabel(words["rate"])
    figures.footer(figure, record, words, words["band"])
    return figure
