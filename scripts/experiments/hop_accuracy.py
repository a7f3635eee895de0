"""How many hops of a chain of pointers does a stack learn to follow?

A task that embedding and head alone cannot begin, and that needs more than one layer
to go on. A sequence is a list of entries. Each has a name (no two alike), a value and
a pointer: the name of one of the `reach` entries before it. Head k names, at every
entry, the value that is reached after k hops. One hop needs attention, which finds the
name that a pointer asks for. Two hops need the result of the first, and so a layer
behind it; a layer can double the hops that the one before it has resolved. Names,
pointers and values are drawn anew for every sequence, and where a chain has left the
sequence nothing is asked. A model that sees its own entry only cannot beat a loss of
log(values), `chance`.

Decoders of the DeepNorm page: Post-Norm, Pre-Norm with its final norm, sandwich norm
with LayerNorm (and a final norm), and DeepNorm with its alpha and beta for their
depth; all draw the same matrices from a seed. Two controls run with the same rates,
seeds, steps and data: a model without layers (embedding, norm, head), and each stack
with its blocks frozen as drawn. Steps stand in an order that leaves a run which was
cut off balanced: the seeds one after the other, all arms in each.

A row holds one quantity of one run; `values` has one number for each hop (`hop_loss`,
`hop_accuracy`, on held-out sequences after training) or one (`loss`, their mean;
`asked`, the share of held-out entries at which a hop is asked, arm null). null stands
for a run that diverged.
"""

from functools import partial

from scripts.measure.design import Design, Run
from scripts.measure.draw import MARKS, band
from scripts.measure.findings import Found, ahead, best, with_inf
from scripts.measure.records import Step
from scripts.measure.spread import integer, number
from scripts.measure.texts import design_words, figure_words

METHOD = (
    "causal decoders without position embedding, LayerNorm, ReLU, four heads; Xavier "
    "normal matrices, embeddings with variance 1; AdamW, betas 0.9 and 0.95, no weight "
    "decay, gradients clipped at norm 1, warm-up over a tenth of the steps, then "
    "linear decay to zero; fresh sequences at every step, the same for all arms and "
    "rates; the same held-out sequences for all; float32; each run alone, in a plain "
    "loop"
)
PARALLEL = True
CPU_SIZE = "medium"
SEEDS = (0, 1, 2)
ARMS = ("post", "pre", "sandwich", "deepnorm")
FROZEN = {arm: f"frozen_{arm}" for arm in ARMS}
CONTROLS = ("no_layers", *FROZEN.values())
RATES = (1e-3, 4e-3, 1.6e-2)  # first runs with 2.5e-4 in place of 1.6e-2 left 4e-3 best
IGNORED = -100  # where a chain has left the sequence, as in cross_entropy
SIZES = {
    "tiny": dict(
        d=8,
        heads=2,
        context=6,
        reach=2,
        hops=2,
        kinds=4,
        batch=2,
        steps=4,
        held_out=4,
        depths=(1, 2),
    ),
    "medium": dict(
        d=64,
        heads=4,
        context=32,
        reach=4,
        hops=6,
        kinds=8,
        batch=32,
        steps=1500,
        held_out=256,
        depths=(4, 12),
    ),
    "full": dict(
        d=256,
        heads=4,
        context=64,
        reach=4,
        hops=12,
        kinds=8,
        batch=64,
        steps=10_000,
        held_out=1024,
        depths=(3, 6, 12, 24, 48),
    ),
}


def device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def sequences(count: int, size: dict, generator):
    """(entries, answers): (count, time, 3) names, pointers and values; (.., hops)."""
    import torch

    time, kinds = size["context"], size["kinds"]
    names = torch.rand(count, time, generator=generator).argsort(dim=1)
    values = torch.randint(kinds, (count, time), generator=generator)
    places = torch.arange(time)
    far = places.clamp(min=1, max=size["reach"])
    back = (torch.rand(count, time, generator=generator) * far).long()
    before = places - 1 - back  # -1 for the first entry, which points at itself
    pointers = names.gather(1, before.clamp(min=0))
    answers, at = [], before
    for _ in range(size["hops"]):
        found = values.gather(1, at.clamp(min=0))
        answers.append(found.where(at >= 0, IGNORED))
        at = before.gather(1, at.clamp(min=0)).where(at >= 0, -1)
    entries = torch.stack([names, pointers, values], dim=-1)
    return entries, torch.stack(answers, dim=-1)


def held_out(size: dict):
    import torch

    return sequences(size["held_out"], size, torch.Generator().manual_seed(1000))


def blocks(arm: str, layers: int, size: dict) -> list:
    """The sublayers of a placement as drawn, and its final norm."""
    from torch import nn

    from snippets.deepnorm.block import Attention, DeepNorm, FeedForward, initialize
    from snippets.deepnorm.coefficients import Coefficients, coefficients
    from snippets.deepnorm.stacks import PreNorm
    from snippets.sandwich_norm.blocks import SandwichNorm

    d, (alpha, beta) = size["d"], Coefficients(1.0, 1.0)
    if arm == "deepnorm":
        alpha, beta = coefficients(decoder_layers=layers)["decoder"]
    found = []
    for _ in range(layers):
        for branch in (Attention(d, size["heads"]), FeedForward(d)):
            initialize(branch, beta)
            if arm == "pre":
                found.append(PreNorm(branch, d))
            elif arm == "sandwich":
                found.append(SandwichNorm(branch, d, nn.LayerNorm))
            else:
                found.append(DeepNorm(branch, d, alpha))
    final = arm in ("pre", "sandwich", "no_layers")
    return found + [nn.LayerNorm(d)][: int(final)]


def fresh(arm: str, layers: int, size: dict, seed: int):
    """A model as drawn: (batch, time, 3) entries to (batch, time, hops, kinds)."""
    import torch
    from torch import nn

    from scripts.measure.single import freeze

    placement = {twin: own for own, twin in FROZEN.items()}.get(arm, arm)
    d, time, kinds, hops = (size[k] for k in ("d", "context", "kinds", "hops"))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleList(nn.Embedding(n, d) for n in (time, time, kinds))
            self.head = nn.Linear(d, hops * kinds, bias=False)
            self.blocks = nn.Sequential(*blocks(placement, layers, size))

        def forward(self, entries):
            x = sum(
                part(entries[..., i]) for i, part in enumerate(self.parts)
            )  # (batch, time, d)
            return self.head(self.blocks(x)).unflatten(-1, (hops, kinds))

    torch.manual_seed(seed)
    model = Model()
    if arm in FROZEN.values():
        freeze(model.blocks[: 2 * layers])
    return model


def loss_of(model, drawn):
    """Mean cross-entropy over all hops that are asked."""
    from torch.nn import functional as F

    entries, answers = drawn
    logits = model(entries).flatten(0, 2)
    return F.cross_entropy(logits, answers.flatten(), ignore_index=IGNORED)


def examine(model, size: dict) -> dict[str, list[float]]:
    """Loss, and loss and accuracy of each hop, on the held-out sequences."""
    import torch
    from torch.nn import functional as F

    entries, answers = (each.to(device()) for each in held_out(size))
    found = {"loss": [], "hop_loss": [], "hop_accuracy": []}
    with torch.no_grad():
        logits = model(entries)
        for hop in range(size["hops"]):
            asked = answers[..., hop] != IGNORED
            guesses, wanted = logits[..., hop, :][asked], answers[..., hop][asked]
            found["hop_loss"].append(F.cross_entropy(guesses, wanted).item())
            right = (guesses.argmax(-1) == wanted).double().mean()
            found["hop_accuracy"].append(right.item())
        found["loss"].append(loss_of(lambda entries: logits, (entries, answers)).item())
    return found


def row(arm, layers, rate, seed, quantity, values) -> dict:
    from math import isfinite

    values = [value if isfinite(value) else None for value in values]
    return {
        "arm": arm,
        "layers": layers,
        "rate": rate,
        "seed": seed,
        "quantity": quantity,
        "values": values,
    }


def train(arm: str, layers: int, rate: float, seed: int, size: dict):
    """One trained model."""
    import torch

    from scripts.measure import single

    model = fresh(arm, layers, size, seed).to(device())
    generator = torch.Generator().manual_seed(seed)

    def draw():
        drawn = sequences(size["batch"], size, generator)
        return [each.to(device()) for each in drawn]

    single.train(model, loss_of, draw, size["steps"], rate)
    return model


def trained(arm: str, layers: int, rate: float, seed: int, size: dict) -> list[dict]:
    """The rows of one run."""
    found = examine(train(arm, layers, rate, seed, size), size)
    return [row(arm, layers, rate, seed, name, each) for name, each in found.items()]


def asked(size: dict) -> list[dict]:
    """At what share of the entries each hop stays inside the sequence."""
    answers = held_out(size)[1]
    shares = (answers != IGNORED).double().mean(dim=(0, 1)).tolist()
    return [row(None, None, None, None, "asked", shares)]


def measure(size: str) -> list[Step]:
    """One step trains one seed of one arm at one rate; all cost the same on paper,
    so that they run in this order."""
    setting = SIZES[size]
    stacks = [("no_layers", 0)]
    for layers in setting["depths"]:
        stacks += [(arm, layers) for arm in (*ARMS, *FROZEN.values())]
    return [
        Step({"quantity": "asked"}, partial(asked, setting)),
        *(
            Step(
                {"arm": arm, "layers": layers, "rate": rate, "seed": seed},
                partial(trained, arm, layers, rate, seed, setting),
            )
            for seed in SEEDS
            for arm, layers in stacks
            for rate in RATES
        ),
    ]


# What the page says -------------------------------------------------------


def _values(record, quantity: str, arm: str, layers: int, rate) -> list[list[float]]:
    """The values of each seed, in the order of the seeds; no number is infinity."""
    rows = record.select(quantity=quantity, arm=arm, layers=layers, rate=rate)
    return [with_inf(r["values"]) for r in sorted(rows, key=lambda r: r["seed"])]


def _losses(record, arm: str, layers: int, rate) -> list[float]:
    return [values[0] for values in _values(record, "loss", arm, layers, rate)]


def _there(record) -> list[tuple[str, int]]:
    """The (arm, layers) with all rates and seeds: a record may be partial."""
    stacks = {
        (row["arm"], row["layers"]) for row in record.rows if row["quantity"] == "loss"
    }
    return sorted(
        (arm, layers)
        for arm, layers in stacks
        if all(len(_losses(record, arm, layers, r)) == len(SEEDS) for r in RATES)
    )


def _best(record, arm: str, layers: int) -> float:
    return best(RATES, lambda rate: _losses(record, arm, layers, rate))


def _controls(arm: str, layers: int) -> list[tuple[str, int]]:
    return [("no_layers", 0), (FROZEN[arm], layers)]


def _at_best(record, arm: str, layers: int) -> list[float]:
    return _losses(record, arm, layers, _best(record, arm, layers))


def facts(record) -> dict[str, str]:
    from math import log

    size = SIZES[record.size]
    names = ("d", "context", "reach", "hops", "kinds", "batch", "steps", "held_out")
    found = Found({name: str(size[name]) for name in names})
    found |= {
        "seeds": str(len(SEEDS)),
        "depths": ", ".join(map(str, size["depths"])),
        "rates": ", ".join(f"{rate:g}" for rate in RATES),
        "tokens": integer(size["batch"] * size["context"] * size["steps"]),
        "chance": number(log(size["kinds"])),
        "chance_accuracy": f"{100 / size['kinds']:.0f} %",
    }
    there = _there(record)
    for arm, layers in there:
        rate, losses = _best(record, arm, layers), _at_best(record, arm, layers)
        accuracy = _values(record, "hop_accuracy", arm, layers, rate)
        name = arm if arm == "no_layers" else f"{arm}_{layers}"
        found.median(name, losses)
        found[f"{name}_rate"] = f"{rate:g}"
        for hop, values in enumerate(zip(*accuracy, strict=True), start=1):
            shares = [100 * value for value in values]
            found.median(f"{name}_hop_{hop}", shares, 0, " %")
        if arm in CONTROLS or not all(c in there for c in _controls(arm, layers)):
            continue
        controls = [_at_best(record, *each) for each in _controls(arm, layers)]
        found[f"{name}_learns"] = "✓" if ahead(losses, controls) else "✗"
        for label, theirs in zip(("no_layers", "frozen"), controls, strict=True):
            found.paired(f"{name}_less_{label}", losses, theirs, 2)
    return found


def _runs(record) -> list[Run]:
    size = SIZES[record.size]
    return [
        Run(
            row["arm"],
            row["seed"],
            cell=None if row["arm"] == "no_layers" else (row["layers"],),
            rate=row["rate"],
            width=size["d"],
            steps=size["steps"],
            loss=row["values"][0],
        )
        for row in record.select(quantity="loss")
    ]


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
    from scripts.measure import look

    size, there = SIZES[record.size], _there(record)
    depths = size["depths"]
    figure, axes = look.new_figure(words, record, rows=len(depths), height=8.2)
    hops = list(range(1, size["hops"] + 1))
    for axis, layers in zip(axes, depths, strict=True):
        stacks = [(arm, layers) for arm in (*ARMS, *FROZEN.values())]
        for arm, at in (*stacks, ("no_layers", 0)):
            if (arm, at) not in there:
                continue
            own = arm.removeprefix("frozen_")
            drawn = look.style((*ARMS, "no_layers").index(own)) | {"markersize": MARKS}
            drawn["label"] = words[arm] if arm == own else None
            if arm != own:
                drawn |= {"linestyle": "--", "linewidth": 0.9}
            runs = _values(record, "hop_accuracy", arm, at, _best(record, arm, at))
            by_hop = [[100 * v for v in values] for values in zip(*runs, strict=True)]
            band(axis, hops, by_hop, drawn)
        chance = 100 / size["kinds"]
        axis.axhline(chance, color=look.MUTED, linewidth=1.0, marker="none")
        axis.set_title(f"{words['depth']}{layers}")
        axis.set_xticks(hops)
        axis.set_ylim(0, 105)
        axis.set_xlabel(words["hop"])
        axis.set_ylabel(f"{words['accuracy']} (%)")
    look.legend(figure, *axes[0].get_legend_handles_labels())
    look.footer(figure, record, words, words["band"])
    return figure
