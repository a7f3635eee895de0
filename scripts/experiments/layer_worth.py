"""Is the cost of removing layers a measure of what they learned?

The question of residual_growth in wider models, with controls: decoders of twelve
layers with Pre-Norm and sandwich norm, each at every rate of one grid. After training,
on held-out text: the stream's RMS behind each layer, its update, the cosine between
input and output, and the loss without one layer, without the upper half and without
the lower half.

Three controls: a model without layers (embedding, norm and head), the same model with
its blocks frozen as they were drawn (what the upper half of layers that never learned
costs to remove), and Pre-Norm with half as many layers (what the other half is worth
when it was never there). Only what removal costs beyond the frozen twin can be
credited to what layers learned.

Models, corpus and what is looked at are those of residual_growth; runs are trained
one by one, each a step of its own, so that an interrupted measurement goes on. Arms
stand in the order of what they answer: a run that was cut off has the first of them
with all seeds and rates.

A row holds one quantity of one run; `values` has one number for each layer, or one
number (losses). null stands for no number.
"""

from functools import partial

from scripts.measure.design import Design, Run, of_one_setting
from scripts.measure.draw import band, log_ticks, name_axes
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.fact_formatting import Found, best
from scripts.measure.records import Step
from scripts.measure.spread import integer, number

METHOD = (
    "byte-level decoders without position embedding, RMSNorm, GELU; matrices drawn "
    "with variance 1 / fan-in, embeddings with variance 1; AdamW, betas 0.9 and 0.95, "
    "weight decay 0.1 on matrices and embeddings, gradients clipped at norm 1, warm-up "
    "over a tenth of the steps, then linear decay to zero; random pieces of the "
    "standard library's sources, the last tenth of each module held out; all "
    "quantities on the same held-out bytes; the same initial matrices, text and seeds "
    "for all arms and rates; each run alone, in a plain loop"
)
PARALLEL = True
CPU_SIZE = "small"
SEEDS = (0, 1, 2)
ARMS = ("pre", "sandwich", "half_depth")
FROZEN = {"pre": "frozen_pre", "sandwich": "frozen_sandwich"}
CONTROLS = ("no_layers", *FROZEN.values())
RATES = (1e-3, 3e-3, 1e-2)
CONTROL_RATES = (3e-3, 1e-2, 3e-2)  # embedding and head alone bear more
SIZES = {
    "tiny": dict(d=8, layers=4, heads=2, context=8, batch=2, steps=4, held_out=4),
    "small": dict(
        d=64, layers=12, heads=4, context=32, batch=16, steps=600, held_out=256
    ),
    "full": dict(
        d=256, layers=24, heads=4, context=256, batch=32, steps=4000, held_out=256
    ),
}


def depth(arm: str, size: dict) -> int:
    """Layers of an arm."""
    return {"no_layers": 0, "half_depth": size["layers"] // 2}.get(arm, size["layers"])


def fresh(arm: str, size: dict, seed: int):
    """The model of an arm as drawn, with what its control freezes frozen."""
    from scripts.experiments.residual_growth import fresh as small_fresh
    from scripts.measure.single import freeze

    of = {twin: own for own, twin in FROZEN.items()}
    of |= {"no_layers": "pre", "half_depth": "pre"}
    model = small_fresh(of.get(arm, arm), depth(arm, size), size, seed)
    if arm in FROZEN.values():
        freeze(model.blocks)
    return model


def examine(model, arm: str, size: dict) -> dict[str, list[float]]:
    """Every quantity of one model on the held-out text."""
    from scripts.experiments.residual_growth import device, held_out, loss_without
    from scripts.experiments.residual_growth import examine as small_examine

    text = held_out(size).to(device())
    if arm == "no_layers":
        return {"loss": [loss_without(model, text)]}
    return small_examine(model, depth(arm, size), text)


def row(arm, rate, seed, quantity, values) -> dict:
    from math import isfinite

    values = [value if isfinite(value) else None for value in values]
    return {
        "arm": arm,
        "rate": rate,
        "seed": seed,
        "quantity": quantity,
        "values": values,
    }


def train(arm: str, rate: float, seed: int, size: dict):
    """One trained model."""
    import torch

    from scripts.experiments.residual_growth import device
    from scripts.measure import single
    from scripts.measure.corpus import corpus, loss_of, sample

    model, training = fresh(arm, size, seed).to(device()), corpus()[0]
    generator = torch.Generator().manual_seed(seed)

    def draw():
        return sample(training, size["batch"], size["context"], generator).to(device())

    single.train(model, loss_of, draw, size["steps"], rate, weight_decay=0.1)
    return model


def trained(arm: str, rate: float, seed: int, size: dict) -> list[dict]:
    """The rows of one run."""
    found = examine(train(arm, rate, seed, size), arm, size)
    return [row(arm, rate, seed, name, values) for name, values in found.items()]


def untrained(size: dict) -> list[dict]:
    """Every arm as drawn; rate null."""
    from scripts.experiments.residual_growth import device

    return [
        row(arm, None, seed, name, values)
        for arm in ARMS
        for seed in SEEDS
        for name, values in examine(
            fresh(arm, size, seed).to(device()), arm, size
        ).items()
    ]


def frequencies(size: dict) -> list[dict]:
    """The loss of a model that knows how often each byte occurs, no more."""
    from scripts.experiments.residual_growth import frequencies as small_frequencies

    (found,) = small_frequencies(size)
    return [row(None, None, None, "frequency_loss", found["values"])]


def rates_of(arm: str) -> tuple[float, ...]:
    return CONTROL_RATES if arm in CONTROLS else RATES


def measure(size: str) -> list[Step]:
    """One step trains one seed of one arm at one rate."""
    setting = SIZES[size]
    costs = {"no_layers": 0.04, "half_depth": 0.52} | dict.fromkeys(
        FROZEN.values(), 0.4
    )
    order = ("pre", *CONTROLS, *ARMS[1:])
    return [
        Step({"loss": "byte frequencies"}, partial(frequencies, setting), cost=0.01),
        Step({"stage": "as drawn"}, partial(untrained, setting), cost=0.2),
        *(
            Step(
                {"arm": arm, "rate": rate, "seed": seed},
                partial(trained, arm, rate, seed, setting),
                cost=costs.get(arm, 1.0),
            )
            for arm in order
            for seed in SEEDS
            for rate in rates_of(arm)
        ),
    ]


# What the page says -------------------------------------------------------


def _values(record, quantity: str, arm: str, rate) -> list[list[float]]:
    """The values of each seed, in the order of the seeds; no number is infinity."""
    from math import inf

    return [
        [inf if value is None else value for value in row["values"]]
        for row in record.select(quantity=quantity, arm=arm, rate=rate)
    ]


def _rates(record, arm: str) -> list[float]:
    """The rates at which all seeds of an arm are there: a record may be partial."""
    return [r for r in rates_of(arm) if len(_losses(record, arm, r)) == len(SEEDS)]


def _losses(record, arm: str, rate) -> list[float]:
    return [values[0] for values in _values(record, "loss", arm, rate)]


def _arms(record) -> list[str]:
    """Arms and controls that are there at every rate of theirs."""
    return [
        arm
        for arm in (*ARMS, *CONTROLS)
        if len(_rates(record, arm)) == len(rates_of(arm))
    ]


def _best(record, arm: str) -> float:
    """The rate with the least median loss."""
    return best(_rates(record, arm), lambda rate: _losses(record, arm, rate))


def _costs(record, arm: str, rate: float) -> dict[str, list[float]]:
    """One number a seed: what removing layers costs, and how the stream grows."""
    from math import isfinite
    from statistics import mean

    from scripts.experiments.residual_growth import exponent

    found: dict[str, list[float]] = {}
    losses = _losses(record, arm, rate)
    for side in ("upper", "lower"):
        without = _values(record, f"without_{side}_half", arm, rate)
        found[side] = [v - loss for (v,), loss in zip(without, losses, strict=True)]
    each = _values(record, "without_layer", arm, rate)
    half = len(each[0]) // 2
    rows = [[v - loss for v in run] for run, loss in zip(each, losses, strict=True)]
    found["one"] = [mean(run[len(run) - half :]) for run in rows]
    found["share"] = [
        100 * sum(run[len(run) - half :]) / sum(run) if isfinite(sum(run)) else sum(run)
        for run in rows
    ]
    cosines = _values(record, "cosine", arm, rate)
    found["cosine"] = [mean(run[len(run) - half :]) for run in cosines]
    found["exponent"] = [
        exponent(run)
        for run in _values(record, "rms", arm, rate)
        if all(map(isfinite, run))
    ]
    return found


DIGITS = dict(upper=2, lower=2, one=3, share=0, cosine=3, exponent=2)


def facts(record) -> dict[str, str]:
    from statistics import median

    size = SIZES[record.size]
    found = Found({name: str(size[name]) for name in ("d", "layers", "steps")})
    found |= {
        "half": str(size["layers"] // 2),
        "seeds": str(len(SEEDS)),
        "rates": ", ".join(f"{rate:g}" for rate in RATES),
        "control_rates": ", ".join(f"{rate:g}" for rate in CONTROL_RATES),
        "rate_b": f"{RATES[1]:g}",
        "rate_c": f"{RATES[2]:g}",
        "tokens": integer(size["batch"] * size["context"] * size["steps"]),
    }
    there = _arms(record)
    best = {arm: _best(record, arm) for arm in there}
    for arm in there:
        rates = dict(zip("abc", rates_of(arm), strict=True)) | {"best": best[arm]}
        for name, rate in rates.items():
            losses = _losses(record, arm, rate)
            found[f"{arm}_loss_{name}"] = number(median(losses), 3)
            for what, values in (
                _costs(record, arm, rate).items() if arm != "no_layers" else ()
            ):
                unit = "%" if what == "share" else ""
                shown = values or [float("nan")]
                found.median(f"{arm}_{what}_{name}", shown, DIGITS[what], unit)
            other = best["pre"] if name == "best" and "pre" in best else rate
            base = _losses(record, "pre", other)
            if arm in ARMS[1:] and base:
                found.paired(f"{arm}_gap_{name}", losses, base)
    for arm, twin in FROZEN.items():
        for rate in set(_rates(record, arm)) & set(_rates(record, twin)):
            name = "abc"[RATES.index(rate)]
            trained, drawn = (_costs(record, one, rate)["upper"] for one in (arm, twin))
            found.median(f"{twin}_upper_at_{name}", drawn)
            found.paired(f"{arm}_beyond_{twin}_{name}", trained, drawn, 2)
    return found


def _runs(record) -> list[Run]:
    rows = record.select(quantity="loss")
    rows = [row for row in rows if row["rate"] is not None]
    return of_one_setting(rows, SIZES[record.size], lambda row: row["values"][0])


DESIGN = Design(
    says=("after_training", "differences"),
    arms=ARMS,
    without_layers="no_layers",
    frozen=FROZEN,
    runs=_runs,
    **design_words(__file__),
)

WORDS = figure_words(__file__)


def plot(record, words):
    from math import isfinite

    from scripts.measure import figures

    figure, (worth, losses) = figures.new_figure(words, record, rows=2, height=5.8)
    arms = _arms(record)
    for arm in (*ARMS, *CONTROLS):
        if arm not in arms:
            continue
        drawn = figures.style(arm if arm in ARMS else 0) | {"markersize": 4.5}
        if arm in CONTROLS:
            line = figures.LINES[CONTROLS.index(arm)]
            drawn = {"color": figures.MUTED, "linewidth": 1, "linestyle": line}
        panels = {losses: lambda rate, arm=arm: _losses(record, arm, rate)}
        if arm != "no_layers":
            panels[worth] = lambda rate, arm=arm: _costs(record, arm, rate)["upper"]
        for axis, of in panels.items():
            samples = {rate: of(rate) for rate in _rates(record, arm)}
            samples = {
                rate: values
                for rate, values in samples.items()
                if all(map(isfinite, values))
            }
            label = words[arm] if axis is losses else None
            band(axis, list(samples), list(samples.values()), drawn, label=label)
    every = sorted({*RATES, *CONTROL_RATES})
    for axis, title, left in ((worth, "worth", "increase"), (losses, "losses", "loss")):
        log_ticks(axis, every)
        name_axes(words, (axis, title, "rate", left))
    figures.legend(figure, *losses.get_legend_handles_labels())
    figures.footer(figure, record, words, words["band"])
    return figure
