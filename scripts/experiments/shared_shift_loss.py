"""Does RMSNorm lose by a mean in the stream, or by any vector that all tokens share?

Embeddings are shifted by one vector of entries +3 and -3: all alike, which puts
nine tenths of the energy on the all-ones direction, or half of either sign, the same
energy with a mean of zero. LayerNorm takes the first out and, like RMSNorm, has to
live with the second. The models, the text and the training are those of
centring_ablation at its smaller depth; every arm has the same rates, seeds, data and
initial weights.

A row is the held-out loss of one run, in nats per byte (null: not finite).
"""

from functools import partial

from scripts.measure.design import Design, Run
from scripts.measure.draw import band, diverged, log_ticks
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.fact_formatting import Found, best, with_inf
from scripts.measure.records import Step

METHOD = (
    "AdamW, weight decay 0.1 on matrices, gradients clipped at norm 1, warm-up, then "
    "linear decay to zero; the same random pieces of the standard library's sources "
    "for all arms and learning rates of a seed, the last tenth of each module held "
    "out; all seeds and learning rates of an arm trained as one stack"
)
PARALLEL = True
SEEDS = tuple(range(5))
NORMS = ("layer_norm", "rms_norm")
SHIFTS = ("none", "mean", "zero_mean")
ARMS = tuple(f"{norm}_{shift}" for norm in NORMS for shift in SHIFTS)
SHIFT = 3.0  # next to a standard deviation of 1: 9 / 10 of the energy
SIZES = {
    "tiny": dict(
        d=8,
        shallow=1,
        deep=1,
        heads=2,
        context=8,
        batch=2,
        steps=3,
        pieces=4,
        rates=(1e-3, 1e-2),
    ),
    "small": dict(
        d=32,
        shallow=4,
        deep=4,
        heads=2,
        context=32,
        batch=4,
        steps=350,
        pieces=256,
        rates=(3e-3, 1e-2, 3e-2, 1e-1),
    ),
}


def shift_of(kind: str, d: int, seed: int):
    """What is added to every token's embedding, (d,)."""
    import torch

    if kind == "none":
        return torch.zeros(d)
    if kind == "mean":
        return torch.full((d,), SHIFT)
    signs = torch.ones(d)
    order = torch.randperm(d, generator=torch.Generator().manual_seed(seed))
    signs[order[: d // 2]] = -1
    return SHIFT * signs


def fresh(norm: str, kind: str, size: dict, seed: int):
    """A model at initialization."""
    import torch

    from scripts.experiments import centring_ablation

    model = centring_ablation.fresh(norm, "shallow", size, seed)
    with torch.no_grad():
        model.token.weight.add_(shift_of(kind, size["d"], seed))
    return model


def train(norm: str, kind: str, size: dict):
    """All runs of an arm: (seed, rate) of each, and their models as one stack."""
    import torch

    from scripts.experiments.centring_ablation import pieces
    from scripts.measure import together
    from scripts.measure.corpus import loss_of

    runs = [(seed, rate) for seed in SEEDS for rate in size["rates"]]
    models = together.Together([fresh(norm, kind, size, seed) for seed, _ in runs])
    text = torch.stack([pieces(size, seed, size["steps"]) for seed in SEEDS])
    together.train(
        models,
        loss_of,
        lambda step: (text[:, step].repeat_interleave(len(size["rates"]), dim=0),),
        size["steps"],
        [rate for _, rate in runs],
        schedule=together.warm_up(size["steps"], max(1, size["steps"] // 10)),
        most=1.0,
        weight_decay=0.1,
        decays=lambda name: name.endswith("weight"),
    )
    return runs, models


def arm_runs(norm: str, kind: str, size: dict) -> list[dict]:
    """Rows of all seeds and learning rates of an arm."""
    from math import isfinite

    from scripts.experiments.centring_ablation import held_out
    from scripts.measure.corpus import loss_of
    from scripts.measure.together import alone

    runs, models = train(norm, kind, size)
    text = held_out(size)
    rows = []
    for index, (seed, rate) in enumerate(runs):
        loss = loss_of(alone(models, index), text).item()
        rows.append(
            {
                "norm": norm,
                "shift": kind,
                "rate": rate,
                "seed": seed,
                "quantity": "loss",
                "value": loss if isfinite(loss) else None,
            }
        )
    return rows


def measure(size: str) -> list[Step]:
    """One step trains all seeds and learning rates of one arm."""
    return [
        Step({"norm": norm, "shift": kind}, partial(arm_runs, norm, kind, SIZES[size]))
        for norm in NORMS
        for kind in SHIFTS
    ]


# What the page says -------------------------------------------------------


def _losses(record, arm: str, rate: float) -> list[float]:
    """Held-out losses, one for each seed; infinite if not finite."""
    norm, shift = next((n, arm.removeprefix(n + "_")) for n in NORMS if n in arm)
    rows = record.select(norm=norm, shift=shift, rate=rate)
    return with_inf(row["value"] for row in rows)


def _rates(record) -> list[float]:
    return sorted({row["rate"] for row in record.rows})


def _best(record, arm: str) -> float:
    return best(_rates(record), lambda rate: _losses(record, arm, rate))


def facts(record) -> dict[str, str]:
    size = SIZES[record.size]
    found = Found({n: str(size[n]) for n in ("d", "steps")})
    found |= {
        "layers": str(size["shallow"]),
        "seeds": str(len(SEEDS)),
    }
    losses = {arm: _losses(record, arm, _best(record, arm)) for arm in ARMS}
    for arm, values in losses.items():
        found.median(arm, values, 3)
    for norm in NORMS:
        for kind in SHIFTS[1:]:
            pair = losses[f"{norm}_{kind}"], losses[f"{norm}_none"]
            found.paired(f"{norm}_{kind}_cost", *pair)
    pair = losses["rms_norm_mean"], losses["rms_norm_zero_mean"]
    found.against("mean_beyond_zero_mean", *pair)
    return found


def _runs(record) -> list[Run]:
    size = SIZES[record.size]
    return [
        Run(
            f"{row['norm']}_{row['shift']}",
            row["seed"],
            rate=row["rate"],
            width=size["d"],
            steps=size["steps"],
            loss=row["value"],
        )
        for row in record.rows
    ]


DESIGN = Design(
    says=("after_training", "differences"),
    arms=ARMS,
    runs=_runs,
    **design_words(__file__),
)

WORDS = figure_words(__file__)


def plot(record, words):
    from scripts.measure import figures

    figure, axis = figures.new_figure(words, record, height=4.6)
    rates = _rates(record)
    losses = {arm: [_losses(record, arm, rate) for rate in rates] for arm in ARMS}
    for norm in NORMS:
        for line, kind in enumerate(SHIFTS):
            style = figures.style(norm) | {"linestyle": figures.LINES[line]}
            style |= {"marker": figures.MARKERS[line], "markersize": 4.5}
            arm = f"{norm}_{kind}"
            band(axis, rates, losses[arm], style | {"label": words[arm]}, alpha=0.08)
    diverged(axis, rates, [(figures.MUTED, losses[arm]) for arm in ARMS])
    log_ticks(axis, rates)
    axis.set_xlabel(words["rate"])
    axis.set_ylabel(words["loss"])
    figures.legend(figure, columns=2)
    figures.footer(figure, record, words, words["band"])
    return figure
