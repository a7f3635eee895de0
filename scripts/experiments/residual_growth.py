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
number (losses). null stands for no number.
"""

from functools import partial

from scripts.measure.design import Design, Run
from scripts.measure.draw import band, level, name_axes
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.fact_formatting import Found, best, with_inf
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
        at_once=4,
    ),
}
WARM_UP = 0.1  # of all steps


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
    found = _runs(record, arm, layers, "loss", rate=rate)
    return with_inf(value for (value,) in found)


def _best(record, arm, layers) -> float:
    return best(_rates(record), lambda rate: _losses(record, arm, layers, rate))


def _frequency_loss(record) -> float:
    (found,) = (r for r in record.rows if r["quantity"] == "frequency_loss")
    return found["values"][0]


def _costs(record, arm, layers, rate) -> list[list[float]]:
    """Loss increase without each layer, for each seed, in nats per byte."""
    whole = _losses(record, arm, layers, rate)
    parts = _runs(record, arm, layers, "without_layer", rate=rate)
    return [
        [part - loss for part in values]
        for values, loss in zip(parts, whole, strict=True)
        if None not in values
    ]


def _half_costs(record, arm, layers, rate, side="upper") -> list[float]:
    """Loss increase without half of the layers at once, one number a seed."""
    return [
        value - loss
        for (value,), loss in zip(
            _runs(record, arm, layers, f"without_{side}_half", rate=rate),
            _losses(record, arm, layers, rate),
            strict=True,
        )
        if value is not None
    ]


def _line(places: list[float], values: list[float]) -> tuple[float, float]:
    """(slope, R squared) of the least squares line."""
    from statistics import correlation, linear_regression

    if len(set(values)) < 2:
        return 0.0, 1.0
    slope = linear_regression(places, values).slope
    return slope, correlation(places, values) ** 2


def _shape(rms: list[float], first: int = 1) -> dict[str, float]:
    """Mean square behind layers first, ...: a power of l, or an exponential in l?

    `exponent` is the p of c * l ** p, `percent` how much the RMS grows a layer in
    c * g ** l; `power` and `exponential` are R squared of the two fits of its log.
    """
    from math import exp, log

    layers = list(range(first, len(rms) + 1))
    sizes = [2 * log(size) for size in rms[first - 1 :]]
    exponent, power = _line(list(map(log, layers)), sizes)
    slope, exponential = _line(layers, sizes)
    return {
        "exponent": exponent,
        "percent": 100 * (exp(slope / 2) - 1),
        "power": power,
        "exponential": exponential,
    }


def exponent(rms: list[float]) -> float:
    """The p of the law: mean square behind layer l = c * l ** p."""
    return _shape(rms)["exponent"]


def _alignment(rms: list[float], update: list[float]) -> list[float]:
    """Of each layer but the first: the cosine of its update and its input.

    Weighted by size: from the mean squares of input, update and their sum.
    """
    return [
        ((after / before) ** 2 - 1 - share**2) / (2 * share)
        for before, after, share in zip(rms, rms[1:], update[1:], strict=False)
    ]


def _states(record, arm, layers, stage, rate) -> dict[str, list[float]]:
    """One number a seed of the upper half and of the stream of a stack."""
    from statistics import mean

    half = layers // 2

    def runs(quantity):
        found = _runs(record, arm, layers, quantity, stage, rate)
        return [run for run in found if None not in run]

    rms, update = runs("rms"), runs("update")
    found = {
        "rms": [run[-1] for run in rms],
        "exponent": [exponent(run) for run in rms],
        "cosine": [mean(run[layers - half :]) for run in runs("cosine")],
        "alignment": [
            mean(_alignment(*pair)[layers - half - 1 :])
            for pair in zip(rms, update, strict=True)
        ],
        # how much more the last layer writes than the second
        "writes": [
            share[-1] * size[-2] / (share[1] * size[0])
            for size, share in zip(rms, update, strict=True)
        ],
    }
    if stage == "after":
        costs = _costs(record, arm, layers, rate)
        upper = [sum(run[layers - half :]) for run in costs]
        found |= {
            "one": [total / half for total in upper],
            "sum": upper,
            "share": [
                100 * part / sum(run) for part, run in zip(upper, costs, strict=True)
            ],
            "upper": _half_costs(record, arm, layers, rate),
        }
    return found


DIGITS = dict(cosine=3, writes=1, one=3, share=0, loss=3)  # of the others 2
LETTERS = "abcde"  # of the rates, from the least


def _named(record) -> dict[str, float]:
    return dict(zip(LETTERS, _rates(record), strict=False))


def facts(record) -> dict[str, str]:
    depths, rates, size = _depths(record), _rates(record), SIZES[record.size]
    most = depths[-1]
    found = Found({name: str(size[name]) for name in ("d", "steps")})
    found |= {
        "seeds": str(len(record.provenance["seeds"])),
        "least": str(depths[0]),
        "most": str(most),
        "half": str(most // 2),
        "two_thirds": str(1 + most // 3),  # the first layer of the upper two thirds
        "bytes": str(size["batch"] * size["context"]),
        "held_out": integer(size["held_out"] * size["context"]),
        "rates": str(len(rates)),
        "frequency_loss": number(_frequency_loss(record), 2),
    }
    found |= {f"rate_{name}": f"{rate:g}" for name, rate in _named(record).items()}
    found["grid"] = " / ".join(f"{rate:g}" for rate in rates)

    def note(name, values, what):
        unit = "%" if what == "share" else ""
        found.median(name, values or [float("nan")], DIGITS.get(what, 2), unit)

    for arm in ARMS:
        name, chosen = f"{arm}_most", _best(record, arm, most)
        found[f"{name}_rate"] = f"{chosen:g}"
        for letter, rate in (_named(record) | {"best": chosen}).items():
            note(f"{name}_loss_{letter}", _losses(record, arm, most, rate), "loss")
            for what, values in _states(record, arm, most, "after", rate).items():
                note(f"{name}_{what}_{letter}", values, what)
        for what, values in _states(record, arm, most, "before", None).items():
            note(f"{name}_{what}_before", values, what)
        for what in ("upper", "rms"):
            at = [found[f"{name}_{what}_{letter}"] for letter in _named(record)]
            found[f"{arm}_{what}_by_rate"] = " / ".join(at)
    return found | _gaps(record) | _fits(record)


def _gaps(record) -> dict[str, str]:
    """Differences to Pre-Norm, seed by seed: mean and standard error."""
    depths, found = _depths(record), Found()

    def gap(name, ours, theirs):
        if found.paired(name, ours, theirs):
            worse = sum(a > b for a, b in zip(ours, theirs, strict=True))
            found[f"{name}_worse"] = f"{worse}/{len(ours)}"

    places = _named(record) | {"best": None}
    for arm in ARMS:
        for letter, rate in places.items():

            def of(values, arm, layers, rate=rate):
                return values(record, arm, layers, rate or _best(record, arm, layers))

            least, most = depths[0], depths[-1]
            gap(
                f"{arm}_depth_gap_{letter}",
                of(_losses, arm, most),
                of(_losses, arm, least),
            )
            if arm == "pre":
                continue
            for name, values, layers in (
                ("least_gap", _losses, least),
                ("most_gap", _losses, most),
                ("upper_gap", _half_costs, most),
            ):
                pair = (of(values, each, layers) for each in (arm, "pre"))
                gap(f"{arm}_{name}_{letter}", *pair)
    return found


def _fits(record) -> dict[str, str]:
    """Of Pre-Norm's deep stack: which law the growth follows, at every rate."""
    from statistics import median

    layers, found = _depths(record)[-1], {}
    for part, first in (("all", 1), ("upper", 1 + layers // 3)):
        for letter, rate in _named(record).items():
            runs = _runs(record, "pre", layers, "rms", rate=rate)
            shapes = [_shape(run, first) for run in runs if None not in run]
            if not shapes:
                continue
            name = f"pre_{part}_{{}}_{letter}"
            wins = sum(shape["exponential"] > shape["power"] for shape in shapes)
            found[name.format("exponential_wins")] = f"{wins}/{len(shapes)}"
            for law in ("power", "exponential"):
                found[name.format(law)] = span([shape[law] for shape in shapes], 3)
            percents = [shape["percent"] for shape in shapes]
            found[name.format("percent")] = f"{number(median(percents), 1)}%"
    return found


def _design_runs(record) -> list[Run]:
    size = SIZES[record.size]
    return [
        Run(
            row["arm"],
            row["seed"],
            cell=(row["layers"],),
            rate=row["rate"],
            width=size["d"],
            steps=size["steps"],
            loss=row["values"][0],
        )
        for row in record.select(quantity="loss", stage="after")
    ]


DESIGN = Design(
    says=("after_training", "differences"),
    arms=ARMS,
    runs=_design_runs,
    **design_words(__file__),
)

WORDS = figure_words(__file__)


def plot(record, words):
    from statistics import median

    from matplotlib.ticker import MaxNLocator, NullLocator

    from scripts.measure import figures

    depths, rates = _depths(record), _rates(record)
    most = depths[-1]
    figure, (worth, stream, tuning) = figures.new_figure(
        words, record, rows=3, height=6.6
    )

    for arm in ARMS:
        drawn = figures.style(arm) | {"markersize": 4.5}
        costs = {rate: _half_costs(record, arm, most, rate) for rate in rates}
        known = [rate for rate in rates if costs[rate]]
        if arm != "post" and known:  # its upper half learned nothing: see the page
            # The scale is logarithmic: what is below a thousandth is drawn there.
            samples = [[max(x, 1e-3) for x in costs[rate]] for rate in known]
            band(worth, known, samples, drawn)
        shallow, deep = (
            [_losses(record, arm, layers, r) for r in rates]
            for layers in (depths[0], most)
        )
        dashed = drawn | {"linewidth": 0.9, "linestyle": "--"}
        tuning.plot(rates, list(map(median, shallow)), **dashed)
        band(tuning, rates, deep, drawn, label=words[arm])

    places, ends = range(1, most + 1), []
    stacks = [("before", None)] + [("after", rate) for rate in rates]
    for series, (stage, rate) in enumerate(stacks):
        runs = _runs(record, "pre", most, "rms", stage, rate)
        samples = list(zip(*[run for run in runs if None not in run], strict=True))
        if not samples:
            continue
        drawn = figures.ramp(series - 1) | {"markersize": 3.5}
        text = words["untrained"] if rate is None else f"{rate:g}"
        if rate is None:
            drawn |= {"color": figures.MUTED, "linestyle": figures.LINES[1]}
        band(stream, places, samples, drawn)
        ends.append((median(samples[-1]), text, drawn["color"]))

    level(tuning, rates[0], _frequency_loss(record), words["frequency"], line=2)
    for axis in (worth, stream):
        axis.set_yscale("log")
        figures.plain_log(axis.yaxis)
    for axis in (worth, tuning):
        axis.set_xscale("log")
        axis.set_xticks(rates, [f"{rate:g}" for rate in rates])
        axis.xaxis.set_minor_locator(NullLocator())
    stream.xaxis.set_major_locator(MaxNLocator(integer=True))
    name_axes(
        words,
        (worth, "worth", "rate", "increase"),
        (stream, "stream", "layer", "rms"),
        (tuning, "tuning", "rate", "loss"),
    )
    figures.label_ends(stream, ends)
    figures.legend(figure, *tuning.get_legend_handles_labels())
    figures.footer(figure, record, words, words["band"])
    return figure
