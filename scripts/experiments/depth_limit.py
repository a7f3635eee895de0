"""Which placements of the norms let a stack learn, from 6 layers to 1000?

Decoders of the DeepNorm page: Post-Norm, Pre-Norm with its final norm, Sandwich
norm with LayerNorm (and a final norm), and DeepNorm with its alpha and beta for
their depth. A layer is two sublayers, attention and feed-forward, so that 1000
layers are 2000 sublayers. All draw the same matrices from a seed (Xavier normal);
DeepNorm's scaled ones are beta times as large. No biases but the norms' own, no
dropout, no position embedding, no clipping.

A thousand layers leave time for few steps of very narrow models, so the task is
one that such a model learns within them, and its best loss is known. Every
sequence has a favourite token, drawn anew: a token is the favourite with
probability FAVOURED, else a uniform draw from the vocabulary. A model that sees
no token cannot beat log(vocabulary), `unigram`. A stack that only passes its
input on can reach `last_token`: guess the last token again. Whoever weighs all
tokens so far, which takes attention, reaches `best`, Bayes' rule.

Embedding and head alone come close to `last_token`, so a loss that falls says
nothing about the layers between them. Two controls do, with the same seeds, data,
steps and learning rates: models without layers (`bare` is embedding and head,
`normed` has a LayerNorm between them), and each stack with its blocks frozen as
drawn, where embedding and head are trained and, behind Pre-Norm and sandwich norm,
the final norm; the last norm of the other two is in a frozen block. A stack is said
to train when it is ahead of both kinds: see `trains`.

Every learning rate is tried with every seed. A run counts as diverged when its loss
is not finite. A stack that is slow rather than stuck would look the same; `longer`
trains one of them again with more steps, and its controls with it.

A row holds one quantity of one run in `values`; `blocks` says whether they were
trained or frozen. loss: on held-out text, before and after training. gradient:
before training, norms for the last feed-forward matrix of five layers, from the
first over the quarters to the last. reference losses: of the three predictors on the
same held-out text.
"""

from functools import partial

from scripts.measure.design import Design, Run
from scripts.measure.draw import band, log_ticks, name_axes
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.fact_formatting import Found, ahead, best, gap, with_inf
from scripts.measure.records import Step
from scripts.measure.spread import integer, number

PARALLEL = True
METHOD = (
    "AdamW without weight decay or clipping, warm-up over a fifth of the steps, then "
    "linear decay to zero; fresh sequences with a favourite token at every step, the "
    "same for all models; the same held-out sequences for all; float32; all seeds and "
    "learning rates of a stack in one call"
)
SEEDS = tuple(range(5))
PLACEMENTS = {"post": "Post-Norm", "pre": "Pre-Norm", "deepnorm": "DeepNorm"}
ARMS = ("post", "pre", "sandwich", "deepnorm")
WITHOUT = ("bare", "normed")  # models without layers
REFERENCES = ("unigram", "last_token", "best")
FAVOURED, VOCABULARY = 0.8, 4
GRID = (3e-5, 1.2e-4, 5e-4, 2e-3, 8e-3, 3.2e-2, 1.28e-1)
DEPTHS = (6, 12, 24, 48, 200, 1000)
SIZES = {
    "tiny": dict(
        d=8,
        batch=2,
        context=4,
        steps=2,
        held_out=4,
        depths=(2, 3),
        rates=(1e-2, 4e-2),
        longer=[("post", 2, 3)],
    ),
    "small": dict(
        d=16,
        batch=4,
        context=8,
        steps=30,
        held_out=64,
        depths=DEPTHS,
        rates=GRID,
        deepest=("deepnorm",),  # 1000 layers are dear
    ),
    "full": dict(
        d=32,
        batch=16,
        context=16,
        steps=48,
        held_out=256,
        depths=DEPTHS,
        rates=GRID,
        longer=[("post", 48, 10)],
    ),
}


def arms_at(size: dict, layers: int) -> tuple:
    """The placements of a depth: fewer at the greatest, where the size says so."""
    deepest = layers == max(size["depths"])
    return size.get("deepest", ARMS) if deepest else ARMS


def fresh(arm: str, layers: int, size: dict, seed: int, frozen: bool = False):
    """A model at initialization: (batch, time) tokens to logits."""
    import torch
    from torch import nn

    from snippets.deepnorm.block import Attention, FeedForward, initialize
    from snippets.deepnorm.stacks import stack
    from snippets.sandwich_norm.blocks import SandwichNorm

    d = size["d"]
    torch.manual_seed(seed)
    embedding, head = nn.Embedding(VOCABULARY, d), nn.Linear(d, VOCABULARY, bias=False)
    if arm in WITHOUT:
        blocks = nn.Sequential(*[nn.LayerNorm(d)][: arm == "normed"])
    elif arm in PLACEMENTS:
        blocks = stack(PLACEMENTS[arm], layers, d).float()
    else:
        blocks = nn.Sequential()
        for _ in range(layers):  # drawn in the order of stack
            for branch in (Attention(d, heads=2), FeedForward(d)):
                initialize(branch, 1.0)
                blocks.append(SandwichNorm(branch, d, nn.LayerNorm))
        blocks.append(nn.LayerNorm(d))
    if frozen:
        freeze(blocks[: 2 * layers])
    return nn.Sequential(embedding, *blocks, head)


def freeze(blocks) -> None:
    """Make every parameter a buffer, in place: it counts, but is not trained."""
    for module in blocks.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            delattr(module, name)
            module.register_buffer(name, parameter.detach())


def sequences(count: int, context: int, generator):
    """(count, context + 1) tokens, each row with a favourite of its own."""
    import torch

    shape = (count, context + 1)
    favourite = torch.randint(VOCABULARY, (count, 1), generator=generator)
    others = torch.randint(VOCABULARY, shape, generator=generator)
    favoured = torch.rand(shape, generator=generator) < FAVOURED
    return torch.where(favoured, favourite, others)


def held_out(size: dict):
    import torch

    generator = torch.Generator().manual_seed(1000)
    return sequences(size["held_out"], size["context"], generator)


def references(text) -> dict[str, float]:
    """Losses of the three predictors: nothing, the last token, all tokens seen.

    Each token seen speaks for its favourite with odds of `high` to `low`.
    """
    from torch.nn import functional as F

    low = (1 - FAVOURED) / VOCABULARY
    high = FAVOURED + low
    seen = F.one_hot(text[:, :-1], VOCABULARY).double()
    losses = {}
    for name, evidence in zip(
        REFERENCES, (0 * seen, seen, seen.cumsum(dim=1)), strict=True
    ):
        favourite = ((high / low) ** evidence).log().softmax(dim=-1)
        chances = low + (high - low) * favourite
        losses[name] = -chances.gather(-1, text[:, 1:, None]).log().mean().item()
    return losses


def loss_of(model, text):
    """Mean cross-entropy of the next token; text is (batch, context + 1)."""
    from torch.nn import functional as F

    return F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())


def row(arm, layers, blocks, size, steps, rate, seed, quantity, values) -> dict:
    from math import isfinite

    return {
        "placement": arm,
        "layers": layers,
        "blocks": blocks,
        "d": size["d"],
        "steps": steps,
        "learning_rate": rate,
        "seed": seed,
        "quantity": quantity,
        "values": [value if isfinite(value) else None for value in values],
    }


def train_all(arm: str, layers: int, frozen: bool, size: dict, steps: int):
    """Rows of every seed with every learning rate, all trained at once."""
    import torch

    from scripts.measure.together import Together, train, warm_up

    device = "cuda" if torch.cuda.is_available() else "cpu"
    rates = size["rates"]
    runs = [(rate, seed) for rate in rates for seed in SEEDS]
    models = [fresh(arm, layers, size, seed, frozen).to(device) for seed in SEEDS]
    models = Together(models * len(rates))
    generators = [torch.Generator().manual_seed(seed) for seed in SEEDS]
    quarters = [max(i * layers // 4 - 1, 0) for i in range(5)]
    names = [f"{2 * layer + 2}.branch.down.weight" for layer in quarters]
    gradients = []

    def data(step):
        text = [sequences(size["batch"], size["context"], g) for g in generators]
        return (torch.stack(text).to(device).repeat(len(rates), 1, 1),)

    def seen(step, found):
        if step == 0 and layers and not frozen:
            norms = [found[name].flatten(1).norm(dim=1) for name in names]
            gradients.extend(torch.stack(norms, dim=1)[: len(SEEDS)].tolist())

    def evaluate():
        text = held_out(size).to(device).expand(len(runs), -1, -1)
        return models.losses(loss_of, text).tolist()

    before = evaluate()
    train(
        models,
        loss_of,
        data,
        steps,
        [rate for rate, _ in runs],
        schedule=warm_up(steps, max(1, steps // 5)),
        seen=seen,
        weight_decay=0.0,
    )
    after = evaluate()
    note = partial(row, arm, layers, "frozen" if frozen else "trained", size, steps)
    return [
        note(rate, seed, "loss", pair)
        for (rate, seed), *pair in zip(runs, before, after, strict=True)
    ] + [
        note(None, seed, "gradient", norms)
        for seed, norms in zip(SEEDS, gradients, strict=False)
    ]


def reference_rows(size: dict) -> list[dict]:
    return [
        row(None, None, None, size, None, None, None, name, [loss])
        for name, loss in references(held_out(size)).items()
    ]


def measure(size: str) -> list[Step]:
    """One step trains all seeds and learning rates of one stack."""
    setting = SIZES[size]
    steps = setting["steps"]
    stacks = [(arm, 0, False, steps) for arm in WITHOUT]
    stacks += [
        (arm, layers, frozen, steps)
        for layers in setting["depths"]
        for arm in arms_at(setting, layers)
        for frozen in (False, True)
    ]
    for slow, depth, factor in setting.get("longer", ()):
        stacks += [(arm, 0, False, factor * steps) for arm in WITHOUT]
        stacks += [(slow, depth, frozen, factor * steps) for frozen in (False, True)]
    return [
        Step(
            {"placement": arm, "layers": layers, "frozen": frozen, "steps": steps},
            partial(train_all, arm, layers, frozen, setting, steps),
            cost=max(1, layers) * steps * (0.6 if frozen else 1),
        )
        for arm, layers, frozen, steps in stacks
    ] + [
        Step({"quantity": "references"}, partial(reference_rows, setting), cost=1),
    ]


# What the page says -------------------------------------------------------


def _depths(record) -> list[int]:
    depths = {row["layers"] for row in record.rows if row["quantity"] == "loss"}
    return sorted(depths - {0})


def _reference(record, name: str) -> float:
    return record.select(quantity=name)[0]["values"][0]


def _by_rate(
    record, arm: str, layers: int, factor: int = 1, frozen: bool = False
) -> dict[float, list]:
    """Learning rate -> losses after training, in the order of the seeds.

    A loss that is not finite is infinite here: diverged runs come last.
    """
    steps = factor * SIZES[record.size]["steps"]
    blocks = "frozen" if frozen else "trained"
    found = {}
    for row in record.select(
        placement=arm, layers=layers, steps=steps, quantity="loss"
    ):
        if row.get("blocks", "trained") == blocks:  # older records have no controls
            found.setdefault(row["learning_rate"], []).extend(
                with_inf(row["values"][1:2])
            )
    return dict(sorted(found.items()))


def _best(by_rate: dict[float, list]) -> tuple[float, list]:
    """(learning rate, losses) of the least median."""
    rate = best(by_rate, by_rate.get)
    return rate, by_rate[rate]


def _controls(record, arm: str, layers: int, factor: int = 1) -> dict[str, list]:
    """Losses of the models without layers and of the frozen stack, at their best."""
    found = {name: _by_rate(record, name, 0, factor) for name in WITHOUT}
    found["frozen"] = _by_rate(record, arm, layers, factor, frozen=True)
    return {name: _best(by_rate)[1] for name, by_rate in found.items()}


def trains(record, arm: str, layers: int, factor: int = 1) -> bool:
    """Whether a stack is ahead of the models without layers and of its frozen twin.

    Ahead: the mean difference over seeds is below zero, and a paired t test at 5 %
    tells it from zero.
    """
    _, losses = _best(_by_rate(record, arm, layers, factor))
    return ahead(losses, _controls(record, arm, layers, factor).values())


def _rate(value: float) -> str:
    return f"{value:.8f}".rstrip("0")


def _size(value: float) -> str:
    """A positive number of any size, two digits."""
    if not value or 0.01 <= value < 1000:
        return f"{value:.0f}" if value >= 100 else f"{value:.2g}"
    digits, power = f"{value:.1e}".split("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digits} × 10{raised}"


def _longer(record) -> list[tuple]:
    """(placement, layers, factor) of the stacks that also ran for more steps."""
    steps = SIZES[record.size]["steps"]
    return sorted(
        {
            (row["placement"], row["layers"], row["steps"] // steps)
            for row in record.select(quantity="loss")
            if row["layers"] and row["steps"] > steps
        }
    )


def _ratios(record, arm: str, layers: int) -> list[float]:
    """Gradient of the first layer over that of the last, one a seed."""
    steps = SIZES[record.size]["steps"]
    found = record.select(
        placement=arm, layers=layers, steps=steps, quantity="gradient"
    )
    return [row["values"][0] / row["values"][-1] for row in found]


def facts(record) -> dict[str, str]:
    from statistics import median

    size, depths = SIZES[record.size], _depths(record)
    second, most = depths[-2:]
    rates = list(_by_rate(record, ARMS[0], depths[0]))
    sizes = ("d", "batch", "context", "steps", "held_out")
    found = Found({name: str(size[name]) for name in sizes})
    found |= {
        "seeds": str(len(SEEDS)),
        "tokens": integer(size["steps"] * size["batch"] * size["context"]),
        "vocabulary": str(VOCABULARY),
        "favoured": f"{100 * FAVOURED:.0f}%",
        "depths": ", ".join(map(str, depths)),
        "least": str(depths[0]),
        "second": str(second),
        "most": str(most),
        "rates": ", ".join(map(_rate, rates)),
    }
    for name in REFERENCES:
        found[name] = number(_reference(record, name))

    def described(by_rate):
        rate, losses = _best(by_rate)
        told = Found(_rate=_rate(rate))
        told.median("", losses)
        return told

    def against(arm, depth, losses, factor=1):
        """The losses less each control's, and the verdict."""
        told = Found(_trains="✓" if trains(record, arm, depth, factor) else "✗")
        controls = _controls(record, arm, depth, factor)
        compared = [("", name, losses) for name in controls]
        for which, name, ours in (*compared, ("frozen_", "normed", controls["frozen"])):
            if each := gap(ours, controls[name]):
                told[f"_{which}less_{name}"] = each.text(2)
                told[f"_{which}bound_{name}"] = each.bound(2)
        for name, control in controls.items():
            told.median(f"_{name}", control)
        return told

    for arm in ARMS:
        passed = []
        for depth in depths:
            by_rate, ratios = _by_rate(record, arm, depth), _ratios(record, arm, depth)
            if not by_rate:
                continue
            losses = _best(by_rate)[1]
            if trains(record, arm, depth):
                passed.append(depth)
            one = described(by_rate) | against(arm, depth, losses)
            one |= {
                "_gradient_ratio": _size(median(ratios)),
                "_gradient_ratio_range": (
                    f"[{_size(min(ratios))}, {_size(max(ratios))}]"
                ),
            }
            labels = {"least": depths[0], "second": second, "most": most}
            labels = [name for name, at in labels.items() if at == depth]
            for label in (str(depth), *labels):
                found |= {f"{arm}_{label}{end}": text for end, text in one.items()}
        found[f"{arm}_trains_at"] = ", ".join(map(str, passed)) or "0"
        # The greatest depth that trains, as do all that were tried below it.
        unbroken = [n for n, at in zip(passed, depths, strict=False) if n == at]
        found[f"{arm}_trains_up_to"] = str(max(unbroken, default=0))
    for name in WITHOUT:
        control = described(_by_rate(record, name, 0))
        found |= {f"{name}{end}": text for end, text in control.items()}
    return found


FROZEN = dict(zip(ARMS, map("frozen_{}".format, ARMS), strict=True))


def _runs(record) -> list[Run]:
    """Loss after training; the model without layers is the one with a norm."""
    found = []
    for row in record.select(quantity="loss"):
        if row["placement"] != "bare" and row["steps"] == SIZES[record.size]["steps"]:
            frozen = row["blocks"] == "frozen"
            found.append(
                Run(
                    FROZEN[row["placement"]] if frozen else row["placement"],
                    row["seed"],
                    cell=(row["layers"],) if row["layers"] else None,
                    rate=row["learning_rate"],
                    width=row["d"],
                    steps=row["steps"],
                    loss=row["values"][1],
                )
            )
    return found


DESIGN = Design(
    says=("trains", "after_training", "differences"),
    arms=ARMS,
    without_layers="normed",
    frozen=FROZEN,
    runs=_runs,
    **design_words(__file__),
)

WORDS = figure_words(__file__)


def _tick(value: float) -> str:
    """A number short enough to stand beside its neighbours: 200, 0.002, 3e-5."""
    if value >= 1e-3:
        return f"{value:g}"
    digits, power = f"{value:e}".split("e")
    return f"{float(digits):g}e{int(power)}"


def plot(record, words):
    from statistics import median

    from scripts.measure import figures

    depths = _depths(record)
    most = depths[-1]
    marks = {name: _reference(record, name) for name in ("unigram", "best")}
    marks["normed"] = median(_best(_by_rate(record, "normed", 0))[1])
    lowest, highest = marks["best"], marks["unigram"]
    figure, (by_depth, by_rate) = figures.new_figure(words, record, rows=2, height=5.6)

    rates = list(_by_rate(record, "deepnorm", most))
    for arm in ARMS:
        for frozen in (False, True):
            drawn = {**figures.style(arm), "markersize": 4.5, "label": words[arm]}
            if frozen:
                drawn |= {"linestyle": "--", "linewidth": 0.9, "markersize": 3}
                drawn["label"] = None
            found = {n: _by_rate(record, arm, n, frozen=frozen) for n in depths}
            there = [depth for depth in depths if found[depth]]
            least = [_best(found[depth])[1] for depth in there]
            band(by_depth, there, least, drawn)
            if arm == "deepnorm":
                each = [found[most][rate] for rate in rates]
                band(by_rate, rates, each, drawn)
    for slow, depth, factor in _longer(record):
        _, losses = _best(_by_rate(record, slow, depth, factor))
        hollow = figures.style(slow) | {"linestyle": "none", "markersize": 7}
        hollow |= {"markerfacecolor": "none", "markeredgewidth": 1.5}
        by_depth.plot([depth], [median(losses)], **hollow)

    level = dict(color=figures.MUTED, linewidth=1.0, linestyle=figures.LINES[1])
    by_rate.sharey(by_depth)
    by_rate.set_ylim(bottom=lowest - 0.12 * (highest - lowest))
    for axis in (by_depth, by_rate):
        for loss in marks.values():
            axis.axhline(loss, marker="none", **level)
        ends = [(loss, words[name], figures.MUTED) for name, loss in marks.items()]
        figures.label_ends(axis, ends)
    for axis, ticks in ((by_depth, depths), (by_rate, rates)):
        log_ticks(axis, ticks, _tick)
    name_axes(
        words,
        (by_depth, "by_depth", "depth", "loss"),
        (by_rate, "by_rate", "rate", "loss"),
    )
    figures.legend(figure, *by_depth.get_legend_handles_labels())
    figures.footer(figure, record, words, words["band"])
    return figure
