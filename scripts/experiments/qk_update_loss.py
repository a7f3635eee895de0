"""What does QK-Norm give at high rates: its bound, its gain, or smaller updates?

QK-Norm bounds the logits and makes the query and key matrices scale-invariant, so
that their effective rate falls as they grow. Four controls take it apart: QK-Norm
with its gains fixed at one (the tightest bound, no learned temperature), QK-Norm with
each head's query and key matrices scaled back to their first length after every step
(the bound without smaller updates), plain attention whose query and key matrices have
a tenth of the rate (smaller updates, no bound), and plain attention with these
matrices as drawn (no updates). The decoders are those of qk_norm_stability; every arm
has the same rates, seeds, text and initial matrices.

A row is one quantity of one run at its end, on held-out text: `loss` in nats per byte,
`largest_logit` before softmax (null: the run ended without a finite loss).
"""

from functools import partial

from scripts.measure.design import Design, Run, of_one_setting
from scripts.measure.draw import band, diverged, log_ticks, name_axes
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.fact_formatting import Found, gap, with_inf
from scripts.measure.records import Step
from scripts.measure.spread import integer, number

METHOD = (
    "AdamW, betas 0.9 and 0.95, no weight decay, gradients clipped at norm 1, warm-up "
    "over a tenth of the steps, then linear decay to zero; random pieces of the "
    "standard library's sources, the last tenth of each module held out; matrices "
    "drawn with variance 1 / fan-in, embeddings with variance 1; RMSNorm everywhere; "
    "float32; each run alone, in a plain loop"
)
PARALLEL = True
SEEDS = (0, 1, 2)
ARMS = ("plain", "qk_norm", "no_gain", "held", "slow_scores", "frozen_scores")
CONTROLS = ("no_layers",)
SLOW = 0.1  # of the rate, for the query and key matrices of slow_scores
RATES = (3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
SIZES = {
    "tiny": dict(d=8, layers=2, heads=2, time=8, batch=2, steps=4, texts=4),
    "small": dict(d=64, layers=4, heads=4, time=32, batch=16, steps=400, texts=128),
}


def scores(model) -> list:
    """The query and key matrices of all layers."""
    layers = [block.sublayer for block in model.blocks[0::2]]
    return [p for each in layers for p in (each.query.weight, each.key.weight)]


def fresh(arm: str, size: dict, seed: int):
    """The model of an arm as drawn."""
    from scripts.experiments import qk_norm_stability as small

    normed = arm in ("qk_norm", "no_gain", "held")
    layers = {"layers": 0} if arm == "no_layers" else {}
    model = small.fresh("qk_norm" if normed else "plain", size | layers, seed)
    fixed = scores(model) if arm == "frozen_scores" else []
    if arm == "no_gain":
        for name, parameter in model.named_parameters():
            if "norm" in name.partition("sublayer.")[2]:
                fixed.append(parameter)
    for parameter in fixed:
        parameter.requires_grad_(False)
    return model


def lengths(weight, heads: int):
    """The norm of each head's rows: (heads, 1, 1)."""
    return weight.detach().unflatten(0, (heads, -1)).norm(dim=(1, 2), keepdim=True)


def hold(weight, first) -> None:
    """Scale each head's rows to a given norm: QK-Norm computes the same as before."""
    rows = weight.detach().unflatten(0, (len(first), -1))
    rows.mul_(first / lengths(weight, len(first)))


def train(arm: str, rate: float, seed: int, size: dict):
    """One trained model; None where a loss was not finite."""
    import torch

    from scripts.measure.corpus import corpus, loss_of, sample
    from scripts.measure.together import warm_up

    model = fresh(arm, size, seed)
    slow = {id(p) for p in scores(model)} if arm == "slow_scores" else set()
    held = [(p, lengths(p, size["heads"])) for p in scores(model) if arm == "held"]
    free = [p for p in model.parameters() if p.requires_grad]
    groups = [([p for p in free if id(p) not in slow], 1.0)]
    groups += [([p for p in free if id(p) in slow], SLOW)] if slow else []
    optimizer = torch.optim.AdamW(
        [{"params": parameters, "share": share} for parameters, share in groups],
        lr=rate,
        betas=(0.9, 0.95),
        weight_decay=0.0,
    )
    factor = warm_up(size["steps"], max(1, size["steps"] // 10))
    generator = torch.Generator().manual_seed(seed)
    for step in range(size["steps"]):
        text = sample(corpus()[0], size["batch"], size["time"], generator)
        loss = loss_of(model, text)
        if not loss.isfinite():
            return None
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(free, 1.0)
        for group in optimizer.param_groups:
            group["lr"] = rate * factor(step) * group["share"]
        optimizer.step()
        for weight, first in held:
            hold(weight, first)
    return model


def looked(model, arm: str, size: dict) -> dict[str, float]:
    """What is noted at the end; a model without layers has a loss alone."""
    import torch

    from scripts.experiments import qk_norm_stability as small
    from scripts.measure.corpus import corpus, loss_of, sample

    fixed = torch.Generator().manual_seed(1000)
    text = sample(corpus()[1], size["texts"], size["time"], fixed)
    with torch.no_grad():
        if arm == "no_layers":
            return {"loss": loss_of(model, text).item()}
        loss, largest, *_ = small.watched(model, text, capped=False)
    return {"loss": loss.item(), "largest_logit": largest.item()}


def trained(arm: str, rate: float, seed: int, size: dict) -> list[dict]:
    """The rows of one run."""
    from math import isfinite

    model = train(arm, rate, seed, size)
    names = ("loss",) if arm == "no_layers" else ("loss", "largest_logit")
    found = looked(model, arm, size) if model else dict.fromkeys(names, float("inf"))
    return [
        {
            "arm": arm,
            "rate": rate,
            "seed": seed,
            "quantity": name,
            "value": value if isfinite(value) else None,
        }
        for name, value in found.items()
    ]


def measure(size: str) -> list[Step]:
    """One step trains one seed of one arm at one rate."""
    setting = SIZES[size]
    return [
        Step(
            {"arm": arm, "rate": rate, "seed": seed},
            partial(trained, arm, rate, seed, setting),
            cost=0.1 if arm == "no_layers" else 1.0,
        )
        for seed in SEEDS
        for rate in RATES
        for arm in (*ARMS, *CONTROLS)
    ]


# What the page says -------------------------------------------------------


def _values(record, quantity: str, arm: str, rate: float) -> list[float]:
    """One number a seed; infinite where the run gave none."""
    rows = record.select(quantity=quantity, arm=arm, rate=rate)
    return with_inf(row["value"] for row in rows)


def facts(record) -> dict[str, str]:
    from statistics import median

    size = SIZES[record.size]
    found = Found({name: str(size[name]) for name in ("d", "layers", "steps")})
    found |= {
        "seeds": str(len(SEEDS)),
        "slower": f"{1 / SLOW:g}",
        "tokens": integer(size["batch"] * size["time"] * size["steps"]),
    }
    names = dict(zip("abcdef", RATES, strict=True))
    found |= {f"rate_{name}": f"{rate:g}" for name, rate in names.items()}
    for arm in ARMS:
        for name, rate in names.items():
            losses = _values(record, "loss", arm, rate)
            found.median(f"{arm}_loss_{name}", losses, 2)
            largest = median(_values(record, "largest_logit", arm, rate))
            shown = integer(round(largest)) if largest < float("inf") else "∞"
            found[f"{arm}_logit_{name}"] = shown
            ours = _values(record, "loss", "qk_norm", rate)
            if arm != "qk_norm" and gap(losses, ours):
                found.paired(f"{arm}_gap_{name}", losses, ours)
    for name in "de":
        held, frozen = (
            _values(record, "loss", arm, names[name])
            for arm in ("held", "frozen_scores")
        )
        found.paired(f"held_over_frozen_{name}", held, frozen)
    known = [_values(record, "loss", "no_layers", rate) for rate in RATES]
    found["no_layers_loss"] = number(min(median(each) for each in known))
    return found


def _runs(record) -> list[Run]:
    rows = record.select(quantity="loss")
    return of_one_setting(rows, SIZES[record.size], lambda row: row["value"])


DESIGN = Design(
    says=("after_training", "differences"),
    arms=ARMS,
    without_layers="no_layers",
    runs=_runs,
    **design_words(__file__),
)

WORDS = figure_words(__file__)


def plot(record, words):
    from scripts.measure import figures

    figure, (top, bottom) = figures.new_figure(words, record, rows=2, height=5.2)

    def samples(quantity, arm):
        return [_values(record, quantity, arm, rate) for rate in RATES]

    for series, arm in enumerate(ARMS):
        style = figures.style(series) | {"markersize": 4.5}
        band(top, RATES, samples("loss", arm), style | {"label": words[arm]})
        band(bottom, RATES, samples("largest_logit", arm), style)
    muted = {"color": figures.MUTED, "linestyle": figures.LINES[1], "marker": "none"}
    muted["label"] = words["no_layers"]
    band(top, RATES, samples("loss", "no_layers"), muted)
    colors = [figures.style(series)["color"] for series in range(len(ARMS))]
    lost = [samples("loss", arm) for arm in ARMS]
    diverged(top, RATES, list(zip(colors, lost, strict=True)))
    bottom.set_yscale("log")
    for axis, title, left in ((top, "losses", "loss"), (bottom, "largest", "logit")):
        log_ticks(axis, RATES)
        name_axes(words, (axis, title, "rate", left))
    figures.legend(figure, columns=2)
    figures.footer(figure, record, words, words["band"])
    return figure
