"""Which of LayerNorm's two steps does the work in training, centring or scaling?

LayerNorm subtracts the mean and divides by what is then the root mean square.
With each step on or off there are four layers: LayerNorm, RMSNorm, the centring
alone, and neither. All four have a gain and no bias, so the models have the same
parameters; the linear layers have biases, and a bias of the norm would add no
function. Small Pre-Norm decoders over bytes are trained with each of them, in five
settings:

- `shallow` and `deep`: two depths; every matrix with variance 1 / fan-in, biases
  zero, the stream enters with an RMS of 1.
- `scaled`: deep, and what writes to the stream is divided by the root of the number
  of branches, so that the stream grows little without any norm.
- `offset`: shallow, and every token embedding is shifted along the all-ones
  direction until that has nine tenths of the energy. Only for the two that do not
  centre: for the others the shift does not reach the loss.
- `long`: shallow, with three times the steps. Only with and without the scaling.

Every arm has the same learning rates to choose from, and the same seeds, data and
initial weights. A run has diverged if its held-out loss is not finite, or above
that of a uniform guess, ln 256.

A row holds one quantity of one run; `values` is the held-out loss in nats per
byte, alone, or one number for each place along the model: the share of the
energy on the all-ones direction (`share`) and the RMS (`rms`) at the input of
each norm, averaged over tokens, and the share after each activation (`hidden`).
Before training there is no learning rate (null).
"""

from functools import partial

from scripts.measure.design import Design, Run
from scripts.measure.draw import band, diverged
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.fact_formatting import Found, best, with_inf
from scripts.measure.records import Step
from scripts.measure.spread import integer, number, paired

PARALLEL = True
SEEDS = tuple(range(5))
METHOD = (
    "AdamW, weight decay 0.1 on matrices, gradients clipped at norm 1, warm-up, then "
    "linear decay to zero; the same random pieces of the standard library's sources "
    "for all arms and learning rates of a seed, the last tenth of each module held "
    "out; all seeds and learning rates of an arm trained as one stack"
)
ARMS = {  # centre, scale
    "layer_norm": (True, True),
    "rms_norm": (False, True),
    "centring": (True, False),
    "neither": (False, False),
}
SETTINGS = {  # arms
    "shallow": tuple(ARMS),
    "deep": tuple(ARMS),
    "scaled": tuple(ARMS),
    "offset": ("rms_norm", "neither"),
    "long": ("rms_norm", "neither"),
}
LONGER = 3  # times the steps
OFFSET = 3.0  # next to a standard deviation of 1: 9 / 10 of the energy
WARM_UP = 0.1  # of all steps
UNIFORM = 5.5452  # ln 256, the loss of a uniform guess
SIZES = {
    "tiny": dict(
        d=8,
        shallow=1,
        deep=2,
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
        deep=8,
        heads=2,
        context=32,
        batch=4,
        steps=350,
        pieces=256,
        rates=(3e-3, 1e-2, 3e-2, 1e-1, 3e-1),
    ),
    "full": dict(
        d=128,
        shallow=6,
        deep=12,
        heads=4,
        context=64,
        batch=16,
        steps=1500,
        pieces=512,
        rates=(1e-3, 3e-3, 1e-2, 3e-2, 1e-1),
    ),
}


def layers(setting: str, size: dict) -> int:
    return size["deep" if setting in ("deep", "scaled") else "shallow"]


def steps_of(setting: str, size: dict) -> int:
    return size["steps"] * (LONGER if setting == "long" else 1)


def fresh(arm: str, setting: str, size: dict, seed: int):
    """A model at initialization."""
    import torch

    from snippets.norm_family.steps import Steps
    from snippets.pre_norm_vs_post_norm.decoder import initialize
    from snippets.rms_norm.small_decoder import SmallDecoder

    model = SmallDecoder(
        size["d"],
        layers(setting, size),
        size["heads"],
        size["context"],
        norm=lambda d: Steps(d, *ARMS[arm]),
    )
    initialize(model, seed)
    with torch.no_grad():
        for table in (model.token, model.position):
            table.weight.mul_(0.5**0.5)  # their sum has an RMS of 1
        if setting == "scaled":
            for branch in model.branches:
                branch.body.writer.weight.mul_(len(model.branches) ** -0.5)
        if setting == "offset":
            model.token.weight.add_(OFFSET)
    return model


def evaluate(model, text) -> dict[str, list[float | None]]:
    """A model's loss on the text, and what goes into its norms and out of its GELUs."""
    from math import isfinite

    import torch

    from scripts.measure.corpus import loss_of
    from snippets.rms_norm.centring import mean_share

    found = {"loss": [], "share": [], "rms": [], "hidden": []}

    def into(module, inputs):
        (x,) = inputs
        found["share"].append(mean_share(x).mean().item())
        found["rms"].append(x.square().mean(-1).sqrt().mean().item())

    def out_of(module, inputs, output):
        found["hidden"].append(mean_share(output).mean().item())

    norms = [branch.norm for branch in model.branches] + [model.norm]
    activations = [branch.body.activation for branch in model.branches[1::2]]
    hooks = [norm.register_forward_pre_hook(into) for norm in norms]
    hooks += [each.register_forward_hook(out_of) for each in activations]
    with torch.no_grad():
        found["loss"].append(loss_of(model, text).item())
    for hook in hooks:
        hook.remove()
    return {
        quantity: [value if isfinite(value) else None for value in values]
        for quantity, values in found.items()
    }


def pieces(size: dict, seed: int, steps: int):
    """The training text of a seed, (steps, batch, context + 1)."""
    import torch

    from scripts.measure.corpus import corpus, sample

    generator = torch.Generator().manual_seed(seed)
    return sample(
        corpus()[0], steps * size["batch"], size["context"], generator
    ).unflatten(0, (steps, -1))


def held_out(size: dict):
    """The same held-out text for all runs."""
    import torch

    from scripts.measure.corpus import corpus, sample

    generator = torch.Generator().manual_seed(0)
    return sample(corpus()[1], size["pieces"], size["context"], generator)


def row(arm, setting, rate, seed, stage, quantity, values) -> dict:
    return {
        "arm": arm,
        "setting": setting,
        "rate": rate,
        "seed": seed,
        "stage": stage,
        "quantity": quantity,
        "values": values,
    }


def train(arm: str, setting: str, size: dict):
    """All runs of an arm from a setting, trained: (seed, rate) of each, models."""
    import torch

    from scripts.measure import together
    from scripts.measure.corpus import loss_of

    device = "cuda" if torch.cuda.is_available() else "cpu"
    runs = [(seed, rate) for seed in SEEDS for rate in size["rates"]]
    steps = steps_of(setting, size)
    models = together.Together(
        [fresh(arm, setting, size, seed).to(device) for seed, _ in runs]
    )
    text = torch.stack([pieces(size, seed, steps) for seed in SEEDS]).to(device)
    together.train(
        models,
        loss_of,
        lambda step: (text[:, step].repeat_interleave(len(size["rates"]), dim=0),),
        steps,
        [rate for _, rate in runs],
        schedule=together.warm_up(steps, max(1, round(WARM_UP * steps))),
        most=1.0,
        weight_decay=0.1,
        decays=lambda name: name.endswith("weight"),
    )
    return runs, models


def arm_runs(arm: str, setting: str, size: dict) -> list[dict]:
    """Rows of all seeds and learning rates of an arm in a setting."""
    from scripts.measure.together import alone

    runs, models = train(arm, setting, size)
    text = held_out(size).to(next(iter(models.parameters.values())).device)
    rows = []
    for seed in SEEDS:
        model = fresh(arm, setting, size, seed).to(text.device)
        for quantity, values in evaluate(model, text).items():
            rows.append(row(arm, setting, None, seed, "before", quantity, values))
    for run, (seed, rate) in enumerate(runs):
        for quantity, values in evaluate(alone(models, run), text).items():
            rows.append(row(arm, setting, rate, seed, "after", quantity, values))
    return rows


def measure(size: str) -> list[Step]:
    """One step trains all seeds and learning rates of one arm in one setting."""
    chosen = SIZES[size]
    return [
        Step(
            {"setting": setting, "arm": arm},
            partial(arm_runs, arm, setting, chosen),
            cost=(2 + layers(setting, chosen)) * steps_of(setting, chosen),
        )
        for setting, arms in SETTINGS.items()
        for arm in arms
    ]


# What the page says -------------------------------------------------------

GAPS = (  # name, and of which two arms it is the first's loss less the second's
    ("no_centring", "rms_norm", "layer_norm"),
    ("no_centring_unscaled", "neither", "centring"),
    ("no_scaling", "neither", "rms_norm"),
)


def _values(record, **wanted) -> list[list]:
    """The values of the rows that match, in the order of the seeds."""
    return [row["values"] for row in record.select(**wanted)]


def _losses(record, setting: str, arm: str, rate: float) -> list[float]:
    """Held-out losses after training, one for each seed; infinite if not finite."""
    wanted = dict(setting=setting, arm=arm, rate=rate, stage="after", quantity="loss")
    return with_inf(loss for (loss,) in _values(record, **wanted))


def _rates(record) -> list[float]:
    return sorted({row["rate"] for row in record.rows} - {None})


def _best(record, setting: str, arm: str) -> float:
    return best(_rates(record), lambda rate: _losses(record, setting, arm, rate))


def _profile(record, setting: str, arm: str, stage: str, quantity: str) -> list[list]:
    """For each place the values of all seeds; after training, at the best rate.

    A run that diverged has none.
    """
    rate = _best(record, setting, arm) if stage == "after" else None
    wanted = dict(setting=setting, arm=arm, rate=rate, stage=stage, quantity=quantity)
    whole = [values for values in _values(record, **wanted) if None not in values]
    return list(map(list, zip(*whole, strict=True)))


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%"


def _rate(value: float) -> str:
    return f"{value:.10g}"


def facts(record) -> dict[str, str]:
    from statistics import mean, median

    size = SIZES[record.size]
    rates = _rates(record)
    found = Found({n: str(size[n]) for n in ("d", "shallow", "deep", "steps")})
    found |= {
        "seeds": str(len(record.provenance["seeds"])),
        "long_steps": str(LONGER * size["steps"]),
        "tokens": str(size["batch"] * size["context"]),
        "held_out": integer(size["pieces"] * size["context"]),
        "least_rate": _rate(rates[0]),
        "most_rate": _rate(rates[-1]),
        "rates": str(len(rates)),
        "chance": _percent(1 / size["d"]),
        "uniform": f"{UNIFORM:.2f}",
    }
    at_best = {}
    for setting, arms in SETTINGS.items():
        for arm in arms:
            name, rate = f"{setting}_{arm}", _best(record, setting, arm)
            at_best[name] = _losses(record, setting, arm, rate)
            found.median(name, at_best[name], 3)
            every = [x for r in rates for x in _losses(record, setting, arm, r)]
            found |= {
                f"{name}_rate": _rate(rate),
                f"{name}_diverged": str(sum(loss > UNIFORM for loss in every)),
            }
            for stage in ("before", "after"):
                shares = _profile(record, setting, arm, stage, "share")
                means = [mean(values) for values in shares]
                found[f"{name}_share_{stage}"] = _percent(mean(means))
                found[f"{name}_share_{stage}_highest"] = _percent(max(means))
                sizes = _profile(record, setting, arm, stage, "rms")
                found[f"{name}_rms_{stage}"] = number(median(sizes[-1]), 1)
    found["at_edge"] = str(
        sum(
            found[f"{name}_rate"] in (_rate(rates[0]), _rate(rates[-1]))
            for name in at_best
        )
    )
    pairs = {
        f"{setting}_{name}": (f"{setting}_{first}", f"{setting}_{second}")
        for setting, arms in SETTINGS.items()
        for name, first, second in GAPS
        if {first, second} <= set(arms)
    }
    pairs |= {
        f"offset_cost_{arm}": (f"offset_{arm}", f"shallow_{arm}")
        for arm in SETTINGS["offset"]
    }
    for name, (first, second) in pairs.items():
        pair = at_best[first], at_best[second]
        found.against(name, *pair)
    whole = [setting for setting, arms in SETTINGS.items() if len(arms) == len(ARMS)]
    gaps = [
        paired(*(_losses(record, setting, arm, rate) for arm in GAPS[0][1:]))
        for setting in whole
        for rate in rates
    ]  # RMSNorm less LayerNorm, in every cell that has both
    found["no_centring_cells"] = str(len(gaps))
    found["no_centring_resolved"] = str(sum(gap.resolved for gap in gaps))
    found["no_centring_worst_bound"] = number(max(gap.resolvable for gap in gaps), 2)
    for name, wanted in (("with", True), ("without", False)):
        found[f"diverged_{name}_scaling"] = str(
            sum(
                int(found[f"{setting}_{arm}_diverged"])
                for setting in whole
                for arm, (_, scale) in ARMS.items()
                if scale == wanted
            )
        )
    most = [
        median(_losses(record, setting, arm, rates[-1]))
        for setting in whole
        for arm, (_, scale) in ARMS.items()
        if scale
    ]
    found["scaling_at_most_least"] = number(min(most))
    found["scaling_at_most_greatest"] = number(max(most))
    shares = [
        mean(map(mean, _profile(record, setting, arm, "before", "share")))
        for setting in whole
        for arm in ARMS
    ]
    found["least_share_before"] = _percent(min(shares))
    found["most_share_before"] = _percent(max(shares))
    runs = len(rates) * len(record.provenance["seeds"])
    found["cells"] = str(len(at_best))
    found["compared_runs"] = str(runs * 2 * len(whole))
    return found


def _runs(record) -> list[Run]:
    size = SIZES[record.size]
    return [
        Run(
            row["arm"],
            row["seed"],
            cell=(row["setting"],),
            rate=row["rate"],
            width=size["d"],
            steps=steps_of(row["setting"], size),
            loss=row["values"][0],
        )
        for row in record.select(stage="after", quantity="loss")
    ]


DESIGN = Design(
    says=("after_training", "differences"),
    arms=tuple(ARMS),
    runs=_runs,
    **design_words(__file__),
)

WORDS = figure_words(__file__)


def plot(record, words):
    from statistics import median

    from matplotlib.ticker import MaxNLocator

    from scripts.measure import figures

    rates = _rates(record)
    whole = [setting for setting, arms in SETTINGS.items() if len(arms) == len(ARMS)]
    lost = {
        (setting, arm): [_losses(record, setting, arm, rate) for rate in rates]
        for setting in whole
        for arm in ARMS
    }
    least = min(min(map(min, losses)) for losses in lost.values())
    figure, grid = figures.new_figure(words, record, rows=2, columns=2, height=5.6)
    axes = grid.flat
    for axis, setting in zip(axes, whole, strict=False):
        for arm in ARMS:
            style = figures.style(arm) | {"label": words[arm]}
            band(axis, rates, lost[setting, arm], style)
        arms = [(figures.style(arm)["color"], lost[setting, arm]) for arm in ARMS]
        diverged(axis, rates, arms)
        axis.set_title(words[setting])
        axis.set_xscale("log")
        axis.set_xlabel(words["rate"])
        axis.set_ylim(least - 0.05, least + 1.05)
        figures.plain_log(axis.xaxis)
    last = grid[1, 1]
    for arm in ARMS:
        places = [
            [100 * value for value in values]
            for values in _profile(record, "scaled", arm, "after", "share")
        ]
        numbers = range(1, len(places) + 1)
        band(last, numbers, places, figures.style(arm), label="_after")
    before = _profile(record, "scaled", "rms_norm", "before", "share")
    drawn = figures.style("rms_norm") | {
        "markerfacecolor": "none",
        "markeredgewidth": 1.2,
    }
    middles = [100 * median(values) for values in before]
    last.plot(numbers, middles, label=words["before"], **drawn)
    last.axhline(
        100 / SIZES[record.size]["d"],
        color=figures.MUTED,
        linewidth=1.2,
        linestyle=figures.LINES[2],
        label=words["chance"],
    )
    last.set_title(words["shares"])
    last.set_xlabel(words["norms"])
    last.set_ylabel(words["share"])
    last.set_ylim(bottom=0)
    last.xaxis.set_major_locator(MaxNLocator(integer=True))
    for axis in grid[:, 0]:
        axis.set_ylabel(words["loss"])
    first, rest = axes[0].get_legend_handles_labels(), last.get_legend_handles_labels()
    figures.legend(figure, first[0] + rest[0], first[1] + rest[1])
    figures.footer(figure, record, words, words["band"])
    return figure
