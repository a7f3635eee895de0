"""Which control of the attention logits holds at which learning rate?

The question of qk_norm_stability one size up, with the controls that it lacks: a
Pre-Norm decoder on bytes with plain attention, QK-Norm, soft-capped logits and
QK-Clip, at learning rates from below the best to where nothing is learned. A rate
counts as learned at if every run there ends below every run of two controls at their
own best rates: a model without layers (embedding, norm and head) and the same model
with its blocks frozen as they were drawn. A third control freezes only the queries'
and keys' matrices: what breaks it is not growth of those two.

Models, corpus and what is looked at are those of qk_norm_stability; runs are trained
one by one, each a step of its own, so that an interrupted measurement goes on.
`frozen` is the control of the cap and of the clip as well: no logit of a model as
drawn comes near either (`largest_logit` at the first look).

A row holds one quantity of one run: `values` are one for each look, null where the
run had ended without a finite loss. `clipped` is one number, the share of (step,
layer, head) in which QK-Clip acted.
"""

from functools import partial

from scripts.measure.design import Design, Run, of_one_setting
from scripts.measure.draw import band, log_ticks, name_axes
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.fact_formatting import Found, best
from scripts.measure.records import Step
from scripts.measure.spread import integer, number, span

METHOD = (
    "AdamW, betas 0.9 and 0.95, no weight decay, gradients clipped at norm 1, warm-up "
    "over a tenth of the steps, then linear decay to zero; random pieces of the "
    "standard library's sources, the last tenth of each module held out; matrices "
    "drawn with variance 1 / fan-in, embeddings with variance 1; RMSNorm everywhere; "
    "the same initial matrices, text and seeds for all arms and rates; float32; each "
    "run alone, in a plain loop"
)
PARALLEL = True
CPU_SIZE = "medium"
SEEDS = (0, 1, 2)
ARMS = ("plain", "qk_norm", "soft_cap", "qk_clip")
FROZEN = {  # the same model with its blocks as drawn
    "plain": "frozen",
    "qk_norm": "frozen_qk_norm",
    "soft_cap": "frozen",
    "qk_clip": "frozen",
}
CONTROLS = ("no_layers", "frozen", "frozen_qk_norm", "frozen_scores")
CAP, TAU = 50.0, 100.0  # Gemma 2, Kimi K2
RATES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
SIZES = {
    "tiny": dict(d=8, layers=2, heads=2, time=8, batch=2, steps=4, texts=4),
    "medium": dict(d=64, layers=4, heads=4, time=64, batch=32, steps=750, texts=256),
    "full": dict(d=256, layers=12, heads=4, time=256, batch=32, steps=3000, texts=256),
}
VOCABULARY = 256
TOLD = {"lowest": 1e-3, "threefold": 3e-2, "tenfold": 1e-1, "thirtyfold": 3e-1}


def fresh(arm: str, size: dict, seed: int):
    """The model of an arm as drawn, with what its control freezes frozen."""
    from scripts.experiments import qk_norm_stability as small
    from scripts.measure.single import freeze

    attention = {"soft_cap": "soft_cap", "qk_norm": "qk_norm"}
    attention |= {"frozen_qk_norm": "qk_norm"}
    layers = {"layers": 0} if arm == "no_layers" else {}
    model = small.fresh(attention.get(arm, "plain"), size | layers, seed)
    if arm in ("frozen", "frozen_qk_norm"):
        freeze(model.blocks)
    if arm == "frozen_scores":
        for block in model.blocks[0::2]:
            freeze(block.sublayer.query)
            freeze(block.sublayer.key)
    return model


def texts(size: dict):
    """(training bytes, held-out pieces); the pieces are the same for all."""
    import torch

    from scripts.measure.corpus import corpus, sample

    training, held_out = corpus()
    generator = torch.Generator().manual_seed(1000)
    return training, sample(held_out, size["texts"], size["time"], generator)


def looked(model, arm: str, size: dict, text) -> dict[str, float]:
    """What is noted at a look; a model without layers has a loss alone."""
    import torch

    from scripts.experiments import qk_norm_stability as small
    from scripts.measure.corpus import loss_of

    with torch.no_grad():
        if arm == "no_layers":
            return {"loss": loss_of(model, text).item()}
        names = ("loss", "largest_logit", "entropy", "least_entropy")
        parts = text.split(64)  # all logits of a part at a time
        found = [small.watched(model, part, arm == "soft_cap") for part in parts]
        table = dict(zip(names, torch.tensor(found).double().T, strict=True))
        noted = {name: table[name].mean().item() for name in ("loss", "entropy")}
        noted["largest_logit"] = table["largest_logit"].amax().item()
        noted["least_entropy"] = table["least_entropy"].mean().item()
        if arm == "qk_norm":
            noted["bound"] = small.gain_bound(model.state_dict(), size).item()
    return noted


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


def train(arm: str, rate: float, seed: int, size: dict, tau: float = TAU) -> tuple:
    """One run: (model, quantity -> one number a look, heads clipped)."""
    import torch
    from torch.nn import functional as F

    from scripts.measure.corpus import sample
    from scripts.measure.single import moments, train
    from snippets.qk_norm.attention import largest_logit
    from snippets.qk_norm.clip import qk_clip

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = fresh(arm, size, seed).to(device)
    training, held_out = texts(size)
    held_out = held_out.to(device)
    generator = torch.Generator().manual_seed(seed)
    seen: dict[str, list] = {}
    largest, clipped = [], [0]

    def draw():
        pieces = sample(training, size["batch"], size["time"], generator)
        return pieces.to(device)

    def loss(model, text):
        y = model(text[:, :-1], watch=arm == "qk_clip")
        if arm == "qk_clip":  # the largest logits of this very forward pass
            y, logits = y
            largest[:] = [largest_logit(layer.detach()) for layer in logits]
        return F.cross_entropy(y.flatten(0, 1), text[:, 1:].flatten())

    def clip():
        if arm == "qk_clip":
            for block, heads in zip(model.blocks[0::2], largest, strict=True):
                qk_clip(block.sublayer, heads, tau)
                clipped[0] += int((heads > tau).sum())

    def note(step):
        for name, value in looked(model, arm, size, held_out).items():
            seen.setdefault(name, []).append(value)

    looks = moments(size["steps"])
    train(model, loss, draw, size["steps"], rate, looks=looks, seen=note, after=clip)
    for values in seen.values():
        values += [float("nan")] * (len(looks) - len(values))
    return model, seen, clipped[0]


def trained(arm: str, rate: float, seed: int, size: dict) -> list[dict]:
    """The rows of one run."""
    _, seen, clipped = train(arm, rate, seed, size)
    rows = [row(arm, rate, seed, name, values) for name, values in seen.items()]
    if arm == "qk_clip":
        acted = clipped / (size["steps"] * size["layers"] * size["heads"])
        rows.append(row(arm, rate, seed, "clipped", [acted]))
    return rows


def frequencies(size: dict) -> list[dict]:
    """The held-out loss of predicting each byte by its frequency in training."""
    training, held_out = texts(size)
    counts = training.bincount(minlength=VOCABULARY).double() + 1
    chances = (counts / counts.sum()).log()
    loss = -chances[held_out[:, 1:]].mean().item()
    return [row(None, None, None, "frequency_loss", [loss])]


def measure(size: str) -> list[Step]:
    """One step trains one seed of one arm at one rate."""
    setting = SIZES[size]
    costs = {"qk_clip": 1.3, "no_layers": 0.1, "frozen": 0.8, "frozen_qk_norm": 0.8}
    return [
        Step(
            {"arm": arm, "rate": rate, "seed": seed},
            partial(trained, arm, rate, seed, setting),
            cost=costs.get(arm, 1.0),
        )
        for seed in SEEDS
        for rate in RATES
        for arm in (*ARMS, *CONTROLS)
    ] + [Step({"loss": "byte frequencies"}, partial(frequencies, setting), cost=0.01)]


# What the page says -------------------------------------------------------


def _values(record, quantity: str, arm: str, rate: float) -> list[list[float]]:
    """The values of each seed, in the order of the seeds; no number is infinity."""
    from math import inf

    return [
        [inf if value is None else value for value in row["values"]]
        for row in record.select(quantity=quantity, arm=arm, rate=rate)
    ]


def _rates(record) -> list[float]:
    return sorted({row["rate"] for row in record.rows} - {None})


def _losses(record, arm: str, rate: float) -> list[float]:
    return [values[-1] for values in _values(record, "loss", arm, rate)]


def _best(record, arm: str) -> float:
    """The rate with the least median loss."""
    return best(_rates(record), lambda rate: _losses(record, arm, rate))


def _learned(record, arm: str) -> list[float]:
    """Rates at which every run ends below every run of both controls at their best."""
    controls = ("no_layers", FROZEN.get(arm, "frozen"))
    mark = min(min(_losses(record, each, _best(record, each))) for each in controls)
    return [rate for rate in _rates(record) if max(_losses(record, arm, rate)) < mark]


def _large(value: float) -> str:
    """Two digits: 1.8, 85, 1800, 18,000."""
    return integer(float(f"{value:.2g}")) if value >= 10 else number(value, 1)


def _listed(rates: list[float]) -> str:
    return ", ".join(f"{rate:g}" for rate in rates) or "\u2013"


def facts(record) -> dict[str, str]:
    from math import isfinite
    from statistics import median

    size, rates = SIZES[record.size], _rates(record)
    names = ("d", "layers", "steps")
    found = Found({name: str(size[name]) for name in names})
    ((frequency,),) = (
        row["values"] for row in record.select(quantity="frequency_loss")
    )
    found |= {
        "seeds": str(len(SEEDS)),
        "tokens": integer(size["batch"] * size["time"] * size["steps"]),
        "rates": _listed(rates),
        "rate_highest": f"{rates[-1]:g}",
        **{f"rate_{word}": f"{rate:g}" for word, rate in TOLD.items()},
        "cap": f"{CAP:g}",
        "tau": f"{TAU:g}",
        "frequency_loss": number(frequency),
    }
    best = {arm: _best(record, arm) for arm in (*ARMS, *CONTROLS)}
    ends = {arm: _losses(record, arm, best[arm]) for arm in best}
    for arm, rate in best.items():
        learned = _learned(record, arm)
        found |= {
            f"{arm}_best_rate": f"{rate:g}",
            f"{arm}_best_loss": number(median(ends[arm]), 3),
            f"{arm}_best_loss_range": span(ends[arm], 3),
            f"{arm}_greatest_learned": _listed(learned[-1:]),
            f"{arm}_not_finite": str(
                sum(not isfinite(x) for r in rates for x in _losses(record, arm, r))
            ),
        }
        if arm != "plain":
            found.paired(f"{arm}_minus_plain", ends[arm], ends["plain"])
        if arm == "no_layers":
            continue
        for word, at in ({"highest": rates[-1]} | TOLD).items():
            peaks = [max(v) for v in _values(record, "largest_logit", arm, at)]
            found[f"{arm}_logit_{word}"] = _large(median(peaks))
    for word, at in TOLD.items():
        plain = _losses(record, "plain", at)
        for arm in best:
            losses = _losses(record, arm, at)
            found.median(f"{arm}_loss_{word}", losses, 3)
            if arm != "plain":
                found.paired(f"{arm}_minus_plain_{word}", losses, plain)
        for arm in ARMS:
            ends = [v[-1] for v in _values(record, "entropy", arm, at)]
            found[f"{arm}_entropy_{word}"] = number(median(ends))
    (clips,) = zip(*_values(record, "clipped", "qk_clip", best["qk_clip"]), strict=True)
    found["clipped_best"] = f"{100 * median(clips):.1f}%"
    return found


def _runs(record) -> list[Run]:
    rows = record.select(quantity="loss")
    return of_one_setting(rows, SIZES[record.size], lambda row: row["values"][-1])


DESIGN = Design(
    says=("trains", "after_training", "differences"),
    arms=(*ARMS, "frozen_scores"),
    without_layers="no_layers",
    frozen=FROZEN | {"frozen_scores": "frozen"},
    runs=_runs,
    **design_words(__file__),
)

WORDS = figure_words(__file__)


def plot(record, words):
    from matplotlib.ticker import NullLocator

    from scripts.measure import figures

    figure, (top, bottom) = figures.new_figure(words, record, rows=2, height=5.9)
    rates = _rates(record)
    shown = (*ARMS, "no_layers", "frozen", "frozen_qk_norm", "frozen_scores")

    def style(arm):
        if arm in ARMS:
            return figures.style(arm) | {"markersize": 4.5}
        place = CONTROLS.index(arm)
        muted = {
            "color": figures.MUTED,
            "linestyle": figures.LINES[place],
            "marker": "none",
        }
        return muted | {"linewidth": 1.2}

    def draw(axis, arm, runs, label=None):
        band(axis, rates, runs, style(arm), label=label)

    for arm in shown:
        draw(top, arm, [_losses(record, arm, r) for r in rates], words[arm])
        if arm == "no_layers":
            continue
        peaks = [
            [max(v for v in values if v < float("inf")) for values in runs]
            for runs in (_values(record, "largest_logit", arm, r) for r in rates)
        ]
        draw(bottom, arm, peaks)
    bottom.set_yscale("log")
    ticks = {10: "10", 1e3: "1000", 1e5: "10⁵", 1e7: "10⁷", 1e9: "10⁹"}
    bottom.set_yticks(list(ticks), list(ticks.values()))
    bottom.yaxis.set_minor_locator(NullLocator())
    for axis, title, left in ((top, "by_rate", "loss"), (bottom, "largest", "logit")):
        log_ticks(axis, rates)
        name_axes(words, (axis, title, "rate", left))
    figures.legend(figure, columns=3)
    figures.footer(figure, record, words, words["band"])
    return figure
