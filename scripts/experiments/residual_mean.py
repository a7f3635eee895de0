"""How much of the residual stream lies on the all-ones direction?

LayerNorm subtracts the mean of each token vector, RMSNorm does not. What the
subtraction removes is the part of the vector along (1, ..., 1); its share of
the vector's energy says how much the two norms can differ. A small Pre-Norm
decoder is trained on bytes of Python's standard library. Before and after
training, on held-out text, the share is averaged over tokens at the input of
every norm and, for contrast, after the activation of every feed-forward
branch. The trained LayerNorm models are then evaluated again with their norms
swapped for RMSNorm, with and without the centring folded in first.

A row holds one number of one run: `quantity` names it, `place` is the index
of the norm or of the feed-forward branch along the model (for a loss: null),
`value` is a share in [0, 1] or a loss in nats per byte.
"""

from functools import partial

from scripts.measure.corpus import corpus, loss_of, sample
from scripts.measure.design import Design, Run
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.records import Step

PARALLEL = True
SEEDS = tuple(range(5))
METHOD = (
    "AdamW, weight decay 0.1, warm-up, then linear decay to zero; random pieces of "
    "the standard library's sources, the last tenth of each module held out; shares "
    "averaged over the tokens of the same held-out batches for all models"
)
VARIANTS = (  # norm, activation
    ("LayerNorm", "GELU"),
    ("LayerNorm", "ReLU"),
    ("LayerNorm", "SiLU"),
    ("RMSNorm", "GELU"),
)
SIZES = {
    "tiny": dict(d=16, layers=2, heads=2, context=16, batch=4, steps=3, lr=4e-3),
    "small": dict(d=64, layers=4, heads=4, context=64, batch=16, steps=400, lr=4e-3),
    "full": dict(d=256, layers=8, heads=8, context=128, batch=64, steps=1500, lr=2e-3),
}
EVALUATION_BATCHES = {"tiny": 1, "small": 8, "full": 16}
WARM_UP = 0.1  # of all steps; the learning rate then falls linearly to zero


def evaluate(model, batches):
    """(loss, shares at the norms' inputs, shares after the activations)."""
    import torch

    from snippets.rms_norm.centring import mean_share

    norms = [branch.norm for branch in model.branches] + [model.norm]
    activations = [
        branch.body.activation
        for branch in model.branches
        if hasattr(branch.body, "activation")
    ]
    sums = {module: 0.0 for module in norms + activations}

    def before(module, inputs):
        sums[module] += mean_share(inputs[0]).mean().item()

    def after(module, inputs, output):
        sums[module] += mean_share(output).mean().item()

    hooks = [norm.register_forward_pre_hook(before) for norm in norms]
    hooks += [act.register_forward_hook(after) for act in activations]
    with torch.no_grad():
        loss = sum(loss_of(model, text).item() for text in batches)
    for hook in hooks:
        hook.remove()
    count = len(batches)
    return (
        loss / count,
        [sums[norm] / count for norm in norms],
        [sums[activation] / count for activation in activations],
    )


def train(model, data, setting, generator, device):
    """AdamW with warm-up and linear decay, on random pieces of data."""
    import torch

    steps = setting["steps"]
    warm_up = max(1, round(WARM_UP * steps))
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=setting["lr"], weight_decay=0.1
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: min((step + 1) / warm_up, (steps - step) / (steps - warm_up)),
    )
    for _ in range(steps):
        text = sample(data, setting["batch"], setting["context"], generator)
        loss = loss_of(model, text.to(device))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


def run(size: str, norm: str, activation: str, seed: int) -> list[dict]:
    """Train one model; measure it before, after, and with swapped norms."""
    import copy

    import torch
    from torch import nn

    from snippets.rms_norm.folding import centre_stream, swap_norms
    from snippets.rms_norm.reference import RMSNorm
    from snippets.rms_norm.small_decoder import SmallDecoder

    setting = SIZES[size]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    training, held_out = corpus()
    fixed = torch.Generator().manual_seed(0)  # the same held-out text for all
    batches = [
        sample(held_out, setting["batch"], setting["context"], fixed).to(device)
        for _ in range(EVALUATION_BATCHES[size])
    ]
    torch.manual_seed(seed)
    model = SmallDecoder(
        *(setting[name] for name in ("d", "layers", "heads", "context")),
        norm={"LayerNorm": nn.LayerNorm, "RMSNorm": RMSNorm}[norm],
        activation=getattr(nn, activation),
    ).to(device)

    rows = []

    def note(stage, quantity, place, value):
        rows.append(
            {
                "norm": norm,
                "activation": activation,
                "seed": seed,
                "d": setting["d"],
                "stage": stage,
                "quantity": quantity,
                "place": place,
                "value": value,
            }
        )

    def measure_at(stage):
        loss, stream, hidden = evaluate(model, batches)
        note(stage, "loss", None, loss)
        for quantity, shares in (("stream", stream), ("hidden", hidden)):
            for place, share in enumerate(shares):
                note(stage, quantity, place, share)

    measure_at("before")
    train(model, training, setting, torch.Generator().manual_seed(seed), device)
    measure_at("after")
    if norm == "LayerNorm":
        for quantity, changes in (
            ("loss_swapped", (swap_norms,)),
            ("loss_folded", (centre_stream, swap_norms)),
        ):
            changed = copy.deepcopy(model)
            for change in changes:
                change(changed)
            note("after", quantity, None, evaluate(changed, batches)[0])
    return rows


def measure(size: str) -> list[Step]:
    """One step trains one model."""
    return [
        Step(
            {"norm": norm, "activation": activation, "seed": seed},
            partial(run, size, norm, activation, seed),
        )
        for seed in SEEDS
        for norm, activation in VARIANTS
    ]


# What was asked, and how it was held equal ---------------------------------


def _runs(record) -> list[Run]:
    """Each model before training and after it, at the one learning rate."""
    setting = SIZES[record.size]
    return [
        Run(
            f"{row['norm']}, {row['activation']}",
            row["seed"],
            rate=setting["lr"] if row["stage"] == "after" else None,
            width=row["d"],
            steps=setting["steps"] if row["stage"] == "after" else 0,
            loss=row["value"],
        )
        for row in record.select(quantity="loss")
    ]


DESIGN = Design(
    says=("at_initialization", "after_training"),
    arms=tuple(f"{norm}, {activation}" for norm, activation in VARIANTS),
    runs=_runs,
    **design_words(__file__),
)


# What the page says -------------------------------------------------------


def _values(record, **wanted) -> list[float]:
    """Values of the rows that match, in the order of the seeds."""
    return [row["value"] for row in record.select(**wanted)]


def _profile(record, **wanted) -> list[tuple[float, float, float]]:
    """(mean, least, greatest) over the seeds, one for each place."""
    profile = []
    for place in sorted({row["place"] for row in record.select(**wanted)}):
        values = _values(record, place=place, **wanted)
        profile.append((sum(values) / len(values), min(values), max(values)))
    return profile


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%"


def facts(record) -> dict[str, str]:
    from math import asin, degrees, sqrt

    from scripts.measure.spread import paired

    def mean(values):
        return sum(values) / len(values)

    def share(norm, activation, stage, quantity):
        wanted = dict(norm=norm, activation=activation, stage=stage)
        return mean(_values(record, quantity=quantity, **wanted))

    def losses(norm, quantity="loss", activation="GELU"):
        wanted = dict(norm=norm, activation=activation, stage="after")
        return _values(record, quantity=quantity, **wanted)

    d, setting = record.rows[0]["d"], SIZES[record.size]
    stream = dict(activation="GELU", stage="after", quantity="stream")
    own, swapped = losses("LayerNorm"), losses("LayerNorm", "loss_swapped")
    after = share("LayerNorm", "GELU", "after", "stream")
    found = {
        "seeds": str(len(own)),
        "d": str(d),
        "layers": str(setting["layers"]),
        "steps": str(setting["steps"]),
        "rate": f"{setting['lr']:g}",
        "chance": _percent(1 / d),
        "hidden_chance": _percent(1 / (4 * d)),
        "stream_before": _percent(share("LayerNorm", "GELU", "before", "stream")),
        "stream_before_rms_norm": _percent(
            share("RMSNorm", "GELU", "before", "stream")
        ),
        "angle_after": f"{degrees(asin(sqrt(after))):.1f}°",
        "loss": f"{mean(own):.3f}",
        "loss_swapped": f"{mean(swapped):.3f}",
        "loss_seed_range": f"{max(own) - min(own):.3f}",
        "loss_rms_norm": f"{mean(losses('RMSNorm')):.3f}",
        "rms_norm_gap": (gap := paired(losses("RMSNorm"), own)).text(),
        "rms_norm_gap_bound": gap.bound(),
        "swap_cost": f"{mean(swapped) - mean(own):.4f}",
    }
    for name, norm in (("", "LayerNorm"), ("_rms_norm", "RMSNorm")):
        means = [middle for middle, _, _ in _profile(record, norm=norm, **stream)]
        found[f"stream_after{name}"] = _percent(mean(means))
        found[f"stream_after{name}_highest"] = _percent(max(means))
    for activation in ("ReLU", "GELU", "SiLU"):
        for stage in ("before", "after"):
            value = share("LayerNorm", activation, stage, "hidden")
            found[f"{activation.lower()}_{stage}"] = _percent(value)
    return found


WORDS = figure_words(__file__)


def plot(record, words):
    from matplotlib.ticker import MaxNLocator

    from scripts.measure import figures

    d = record.rows[0]["d"]
    figure, (top, bottom) = figures.new_figure(
        words, record, rows=2, height=5.6, sharey=True
    )

    def draw(axis, series, label, stage, quantity, **wanted):
        profile = _profile(record, stage=stage, quantity=quantity, **wanted)
        places = range(1, len(profile) + 1)
        middle, low, high = ([100 * values[i] for values in profile] for i in range(3))
        drawn = figures.style(series)
        if stage == "before":
            drawn |= {"markerfacecolor": "none", "markeredgewidth": 1.2}
        axis.plot(places, middle, label=label, **drawn)
        if stage == "after":
            axis.fill_between(
                places, low, high, color=drawn["color"], alpha=0.15, linewidth=0
            )

    def chance(axis, share, label):
        axis.axhline(
            100 * share,
            color=figures.MUTED,
            linewidth=1.2,
            linestyle=figures.LINES[2],
            label=words[label],
        )

    chance(top, 1 / d, "chance")
    gelu = dict(quantity="stream", activation="GELU")
    draw(top, "layer_norm", words["before"], "before", norm="LayerNorm", **gelu)
    draw(top, "layer_norm", words["after"], "after", norm="LayerNorm", **gelu)
    draw(top, "rms_norm", words["rms_norm"], "after", norm="RMSNorm", **gelu)
    chance(bottom, 1 / (4 * d), "hidden_chance")
    for series, activation in enumerate(("ReLU", "GELU", "SiLU")):
        hidden = dict(quantity="hidden", norm="LayerNorm", activation=activation)
        draw(bottom, series, activation, "after", **hidden)
        draw(bottom, series, "_before", "before", **hidden)

    for axis, title, below in (
        (top, "stream", "norms"),
        (bottom, "hidden", "layers"),
    ):
        figures.legend(axis)
        axis.set_title(words[title], pad=44)
        axis.set_xlabel(words[below])
        axis.set_yscale("log")
        axis.set_ylabel(words["share"])
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        figures.plain_log(axis.yaxis)
    figures.footer(figure, record, words, words["band"])
    return figure
