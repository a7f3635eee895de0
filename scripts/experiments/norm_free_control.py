"""Do decoders without norm layers use their layers, and what do they lose?

The question of norm_free one size up, with the controls that it lacks. Six decoders
with one body: Pre-Norm with RMSNorm; the same with a learned number on every branch
that starts at 1 / sqrt(number of branches); DyT in the place of each norm; no norm;
no norm, with those numbers (SkipInit); and no norm, with numbers that start at zero
(ReZero). Each is trained at every rate, and so are its controls: the same model with
its blocks frozen at initialization, learned numbers and gains of the blocks included; a
model without layers that keeps the last norm; and one without layers or norm, which is
also what ReZero's frozen blocks leave. An arm has learned at a rate if every run there
ends below every run of its controls at their own best rates.

A row is one run: `values` are held-out losses in nats per byte, one for each look,
null where the run had ended without a finite loss.
"""

from functools import partial

from scripts.measure.design import Design, Run, of_one_setting
from scripts.measure.draw import band, diverged, log_ticks
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.fact_formatting import Found
from scripts.measure.records import Step
from scripts.measure.spread import integer, number, paired

METHOD = (
    "AdamW with betas 0.9 and 0.95, weight decay 0.1 on matrices, gradients clipped at "
    "1, warm-up over a tenth of the steps, then linear decay to zero; every matrix "
    "drawn with variance 1 / fan-in, embedding rows with variance 1; random pieces of "
    "the standard library's sources, the last tenth of each module held out; the same "
    "initial matrices, text and seeds for all arms and rates; float32; each run alone, "
    "in a plain loop"
)
PARALLEL = True
CPU_SIZE = "medium"
SEEDS = (0, 1, 2)
ARMS = ("rms_norm", "rms_norm_small", "dyt_half", "plain", "skip_init", "re_zero")
FROZEN = {arm: f"frozen_{arm}" for arm in ARMS} | {"re_zero": "no_layers_bare"}
CONTROLS = ("no_layers", *FROZEN.values())
RATES = (3e-3, 1e-2, 3e-2, 1e-1)
SIZES = {
    "tiny": {
        "d": 8,
        "layers": 2,
        "heads": 2,
        "hidden": 16,
        "context": 8,
        "batch": 2,
        "steps": 4,
        "pieces": 4,
        "rates": RATES,
    },
    "medium": {
        "d": 64,
        "layers": 6,
        "heads": 4,
        "hidden": 176,
        "context": 64,
        "batch": 32,
        "steps": 750,
        "pieces": 256,
        "rates": RATES,
    },
    "full": {
        "d": 256,
        "layers": 12,
        "heads": 4,
        "hidden": 688,
        "context": 256,
        "batch": 32,
        "steps": 3000,
        "pieces": 256,
        "rates": (1e-3, 3e-3, 1e-2, 3e-2),
    },
}
VOCABULARY, WEIGHT_DECAY = 256, 0.1


def fresh(arm: str, setting: dict, seed: int):
    """The model of an arm as drawn; in a control the blocks are frozen or absent."""
    from scripts.experiments import norm_free
    from scripts.measure.single import freeze

    if arm in ("no_layers", "no_layers_bare"):
        body = "plain" if arm.endswith("bare") else "rms_norm"
        return norm_free.fresh(body, setting | {"layers": 0}, seed)
    model = norm_free.fresh(arm.removeprefix("frozen_"), setting, seed)
    if arm.startswith("frozen_"):
        freeze(model.blocks)
    return model


def texts(setting: dict):
    """(training bytes, held-out pieces); the pieces are the same for all."""
    import torch

    from scripts.measure.corpus import corpus, sample

    training, held_out = corpus()
    generator = torch.Generator().manual_seed(2026)
    return training, sample(held_out, setting["pieces"], setting["context"], generator)


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


def train(arm: str, rate: float, seed: int, setting: dict) -> tuple:
    """One run: (model, one held-out loss a look)."""
    import torch

    from scripts.measure.corpus import loss_of, sample
    from scripts.measure.single import moments, train

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = fresh(arm, setting, seed).to(device)
    training, held_out = texts(setting)
    generator = torch.Generator().manual_seed(seed)
    losses = []

    def draw():
        pieces = sample(training, setting["batch"], setting["context"], generator)
        return pieces.to(device)

    def note(step):
        with torch.no_grad():
            parts = held_out.to(device).split(64)
            losses.append(sum(loss_of(model, part).item() for part in parts))
            losses[-1] /= len(parts)

    looks = moments(setting["steps"])
    train(
        model,
        loss_of,
        draw,
        setting["steps"],
        rate,
        weight_decay=WEIGHT_DECAY,
        looks=looks,
        seen=note,
    )
    return model, losses + [float("nan")] * (len(looks) - len(losses))


def trained(arm: str, rate: float, seed: int, setting: dict) -> list[dict]:
    """The row of one run."""
    return [row(arm, rate, seed, "held_out", train(arm, rate, seed, setting)[1])]


def frequencies(setting: dict) -> list[dict]:
    """The held-out loss of predicting each byte by its frequency in training."""
    training, held_out = texts(setting)
    counts = training.bincount(minlength=VOCABULARY).double() + 1
    chances = (counts / counts.sum()).log()
    loss = -chances[held_out[:, 1:]].mean().item()
    return [row(None, None, None, "frequencies", [loss])]


def measure(size: str) -> list[Step]:
    """One step trains one seed of one arm at one rate."""
    setting = SIZES[size]
    costs = {"no_layers": 0.05, "no_layers_bare": 0.05}
    return [
        Step(
            {"arm": arm, "rate": rate, "seed": seed},
            partial(trained, arm, rate, seed, setting),
            cost=costs.get(arm, 0.8 if arm in CONTROLS else 1.0),
        )
        for seed in SEEDS
        for rate in setting["rates"]
        for arm in (*ARMS, *CONTROLS)
    ] + [Step({"loss": "frequencies"}, partial(frequencies, setting), cost=0.01)]


# What the page says -------------------------------------------------------


def _rates(record) -> list[float]:
    return sorted({row["rate"] for row in record.rows} - {None})


def _losses(record, arm: str, rate: float) -> list[float]:
    """Final losses, in the order of the seeds; no number is infinity."""
    from math import inf

    rows = record.select(quantity="held_out", arm=arm, rate=rate)
    ends = [row["values"][-1] for row in rows]
    return [inf if end is None else end for end in ends]


def _best(record, arm: str) -> float:
    """The rate with the least median loss."""
    from statistics import median

    return min(_rates(record), key=lambda rate: median(_losses(record, arm, rate)))


def _learned(record, arm: str) -> list[float]:
    """Rates at which every run ends below every run of its controls at their best."""
    controls = {"no_layers", FROZEN.get(arm, "no_layers_bare")}
    mark = min(min(_losses(record, each, _best(record, each))) for each in controls)
    return [rate for rate in _rates(record) if max(_losses(record, arm, rate)) < mark]


def _listed(rates: list[float]) -> str:
    return ", ".join(f"{rate:g}" for rate in rates) or "\u2013"


def facts(record) -> dict[str, str]:
    from math import isfinite, isinf
    from statistics import median

    setting, rates = SIZES[record.size], _rates(record)
    names = ("d", "layers", "context", "steps")
    found = {name: str(setting[name]) for name in names}
    found |= {
        "seeds": str(len(SEEDS)),
        "bytes": integer(setting["batch"] * setting["context"] * setting["steps"]),
        "rates": _listed(rates),
        "runs_per_arm": str(len(rates) * len(SEEDS)),
    }
    best = {arm: _best(record, arm) for arm in (*ARMS, *CONTROLS)}
    ends = {arm: _losses(record, arm, rate) for arm, rate in best.items()}
    for arm, rate in best.items():
        learned, finite = _learned(record, arm), all(map(isfinite, ends[arm]))
        every = [loss for rate in rates for loss in _losses(record, arm, rate)]
        found |= {
            f"{arm}_rate": f"{rate:g}",
            f"{arm}_end": number(median(ends[arm]), 3) if finite else "\u2013",
            f"{arm}_lost": str(sum(map(isinf, every))),
            f"{arm}_greatest_learned": _listed(learned[-1:]),
        }
        for other in ("rms_norm", "rms_norm_small"):
            if other == arm or not all(map(isfinite, ends[arm] + ends[other])):
                continue
            gap = paired(ends[arm], ends[other])
            found[f"{arm}_minus_{other}"] = gap.text()
            found[f"{arm}_minus_{other}_bound"] = gap.bound()
    return found | _one_rate_higher(record, best["rms_norm"])


def _one_rate_higher(record, best: float) -> dict[str, str]:
    """Differences from RMSNorm one rate above its best; dashes if that is the last."""
    above = [rate for rate in _rates(record) if rate > best][:1]
    found = Found(rate_higher=_listed(above))
    for arm in ("rms_norm_small", "dyt_half", "skip_init", "re_zero"):
        name = f"{arm}_minus_rms_norm_higher"
        found |= {name: "\u2013", f"{name}_bound": "\u2013"}
        if above:
            found.paired(
                name, *(_losses(record, each, *above) for each in (arm, "rms_norm"))
            )
    return found


def _runs(record) -> list[Run]:
    rows = record.select(quantity="held_out")
    return of_one_setting(rows, SIZES[record.size], lambda row: row["values"][-1])


DESIGN = Design(
    says=("trains", "after_training", "differences"),
    arms=ARMS,
    without_layers="no_layers",
    frozen=FROZEN,
    runs=_runs,
    **design_words(__file__),
)

WORDS = figure_words(__file__)


def plot(record, words):
    from scripts.measure import figures

    figure, axis = figures.new_figure(words, record, height=5.4)
    rates = _rates(record)
    losses = {
        arm: [_losses(record, arm, rate) for rate in rates]
        for arm in (*ARMS, *CONTROLS)
    }
    places = {"rms_norm": 0, "rms_norm_small": 0, "dyt_half": 1, "skip_init": 3}
    places |= {"re_zero": 4, "plain": 0}  # as in norm_free
    drawn = {arm: figures.style(places[arm]) | {"markersize": 4.5} for arm in ARMS}
    hollow = {"markerfacecolor": "none", "markeredgewidth": 1.2}
    drawn["rms_norm_small"] |= hollow | {"linestyle": figures.LINES[2]}
    drawn["plain"] |= {
        "color": figures.MUTED,
        "marker": "*",
        "linestyle": figures.LINES[2],
    }
    for arm in ARMS:
        band(axis, rates, losses[arm], drawn[arm] | {"label": words[arm]})
    diverged(axis, rates, [(drawn[arm]["color"], losses[arm]) for arm in ARMS])
    named = set()
    for arm in CONTROLS:
        kind = "no_layers" if arm.startswith("no_layers") else "frozen"
        muted = {"color": figures.MUTED, "marker": "none", "linewidth": 1.2}
        muted["linestyle"] = figures.LINES[1 if kind == "no_layers" else 2]
        muted["label"] = None if kind in named else words[kind]
        band(axis, rates, losses[arm], muted)
        named.add(kind)
    least = min(min(runs) for arm in ARMS for runs in losses[arm])
    top = 1.15 * max(losses["no_layers"][0])
    axis.set_ylim(least - 0.1 * (top - least), top)
    log_ticks(axis, rates)
    axis.set_xlabel(words["rate"])
    axis.set_ylabel(words["loss"])
    figures.legend(figure, columns=2)
    figures.footer(figure, record, words, words["band"])
    return figure
