"""What does warm-up do? Arms that take away one suspect at a time.

Small Post-Norm and Pre-Norm decoders on bytes of Python's standard library, each
arm at every rate of a grid. An arm makes one change to plain Adam without warm-up,
chosen so that the published explanations of warm-up disagree about it:

adam            no warm-up
warm_up         the rate rises linearly over the first WARM of the steps
filled_second   before the first step, the second moment alone is averaged over as
                many batches as the warm-up has steps, the weights standing still
                (Liu et al. 2019 call it Adam-2k): no variance, updates of full size
radam           Rectified Adam (Liu et al. 2019): a factor on each step
clipped         gradients no longer than CLIP
capped          no matrix moves further in a step than CAP times what Adam's first
                step would move it: a limit on its rotation, at no other time than
                when the gradients of several steps agree
upper_warm_up   warm-up for the upper half of the blocks, final norm and head alone
lower_warm_up   warm-up for the lower half of the blocks and the embedding alone
admin           norm(omega x + f(x)), omega from the variances of the branches
                (Liu et al. 2020); Post-Norm only
sgd, sgd_warm_up  momentum 0.9 and no second moment, with rates of their own

Controls: a model without layers, and Post-Norm with its blocks left as drawn.

A row holds one quantity of one run. `loss`: held-out loss before and after.
`rotation`: how far the update turns or stretches a matrix, its norm over the
matrix's, mean over matrices and over the first WARM of the steps, and over the
second half. `critical`: how long, as the RMS of an entry's change, a step along the
gradient as Adam scales it may be until it no longer lowers the loss of its batch, as
drawn and after the first WARM of the steps.
"""

from functools import partial

from scripts.measure.corpus import corpus, loss_of, sample
from scripts.measure.design import Design, Run
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.fact_formatting import Found, best, with_inf
from scripts.measure.records import Step
from scripts.measure.spread import integer, number

METHOD = (
    "Adam (betas 0.9 and 0.999) or SGD with momentum 0.9, no weight decay, LayerNorm "
    "everywhere; the rate falls linearly to zero; matrices drawn with variance "
    "1 / fan-in; random pieces of the standard library's sources, the last tenth of "
    "each module held out; a seed has the same draw of the weights and the same data "
    "in every cell; loss on the same held-out pieces for all runs"
)
SEEDS = tuple(range(5))
WARM = 0.3  # share of all steps
CLIP = 0.25  # the gradient's norm
CAP = 0.2  # of the length of Adam's first step
MARGIN = 0.05  # nats per byte below the frequencies' loss: else a run is stuck
SGD = ("sgd", "sgd_warm_up")
ARMS = {  # those that tell most apart stand first: a run may be stopped
    "post": (
        "adam",
        "warm_up",
        "filled_second",
        "upper_warm_up",
        "lower_warm_up",
        "capped",
        "admin",
        *SGD,
        "radam",
        "clipped",
    ),
    "pre": ("adam", "warm_up"),
}
CONTROLS = ("no_layers", "frozen")
RATES = (1e-3, 3e-3, 1e-2)
SGD_RATES = (3e-1, 1.0, 3.0)
SIZES = {
    "tiny": dict(
        d=8,
        heads=2,
        layers=2,
        context=8,
        batch=2,
        steps=10,
        rates=RATES[1:],
        sgd_rates=SGD_RATES[:2],
        pieces=16,
    ),
    "small": dict(
        d=16,
        heads=2,
        layers=6,
        context=16,
        batch=8,
        steps=400,
        rates=RATES,
        sgd_rates=SGD_RATES,
        pieces=256,
    ),
    "full": dict(
        d=64,
        heads=4,
        layers=12,
        context=64,
        batch=16,
        steps=2000,
        rates=RATES,
        sgd_rates=SGD_RATES,
        pieces=512,
    ),
}
LENGTHS = tuple(1e-5 * 2 ** (i / 2) for i in range(34))  # of the probing steps
PARALLEL = True


def admin_block(branch, norm, d: int):
    """norm(omega x + f(x)) with a learned omega of d numbers, one at first."""
    import torch
    from torch import nn

    class Admin(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.sublayer, self.norm = branch, norm
            self.omega = nn.Parameter(torch.ones(d))

        def forward(self, x):
            return self.norm(self.omega * x + self.sublayer(x))

    return Admin()


def profile(model, text) -> None:
    """Set every omega to the root of 1 + the variances of the branches before it."""
    import torch

    variances = []
    hooks = [
        block.sublayer.register_forward_hook(
            lambda _, read, wrote: variances.append(wrote.var(unbiased=False).item())
        )
        for block in model.blocks
    ]
    with torch.no_grad():
        model(text)
        for i, block in enumerate(model.blocks):
            block.omega.fill_((1 + sum(variances[:i])) ** 0.5)
    for hook in hooks:
        hook.remove()


def fresh(placement: str, arm: str, size: dict, seed: int):
    """A model at initialization, with the same draw for every placement and arm."""
    import torch
    from torch import nn

    from snippets.pre_norm_vs_post_norm.blocks import PostNormBlock, PreNormBlock
    from snippets.pre_norm_vs_post_norm.decoder import Decoder, initialize

    d = size["d"]
    block = PreNormBlock if placement == "pre" else PostNormBlock
    if arm == "admin":
        block = partial(admin_block, d=d)
    model = Decoder(
        d,
        size["layers"],
        size["heads"],
        256,
        block=block,
        norm=nn.LayerNorm,
        final_norm=placement == "pre" or arm == "no_layers",
    )
    initialize(model, seed)
    if arm == "no_layers":
        model.blocks = nn.ModuleList()
    if arm == "admin":
        generator = torch.Generator().manual_seed(3000 + seed)
        text = sample(corpus()[0], size["batch"], size["context"], generator)
        profile(model, text[:, :-1])
    return model


def cells(size: dict, arm: str) -> list[tuple[float, int]]:
    """(learning rate, seed) of every run of an arm."""
    rates = size["sgd_rates" if arm in SGD else "rates"]
    return [(rate, seed) for rate in rates for seed in SEEDS]


def texts(size: dict, runs: int, device: str):
    """A call gives the next texts, (runs, batch, context + 1): a stream a seed."""
    import torch

    training, _ = corpus()
    generators = [torch.Generator().manual_seed(seed) for seed in SEEDS]

    def data():
        pieces = torch.stack(
            [sample(training, size["batch"], size["context"], g) for g in generators]
        )
        return pieces.to(device).repeat(runs // len(SEEDS), 1, 1)

    return data


def held_out(size: dict):
    """Pieces of held-out text, the same for all: (pieces, context + 1)."""
    import torch

    fixed = torch.Generator().manual_seed(0)
    return sample(corpus()[1], size["pieces"], size["context"], fixed)


def evaluate(models, size: dict, device: str) -> list:
    """The held-out loss of every run, None where it is no number."""
    import torch

    parts = held_out(size).to(device).split(128)
    losses = torch.stack(
        [models.losses(loss_of, part.expand(models.runs, -1, -1)) for part in parts]
    ).mean(0)
    return _finite(losses)


def _finite(values) -> list:
    both = zip(values.tolist(), values.isfinite().tolist(), strict=True)
    return [value if finite else None for value, finite in both]


def rectified(step: int, second: float = 0.999) -> float | None:
    """RAdam's factor at step 1, 2, ...; None where there is no variance to mend."""
    most = 2 / (1 - second) - 1
    now = most - 2 * step * second**step / (1 - second**step)
    if now <= 5:  # as in the authors' code and in torch; the paper has 4
        return None
    over = (now - 4) * (now - 2) * most
    return (over / ((most - 4) * (most - 2) * now)) ** 0.5


def slowed(name: str, arm: str, layers: int) -> bool:
    """Whether the arm's warm-up holds for the parameter."""
    if arm in ("warm_up", "sgd_warm_up"):
        return True
    if arm not in ("upper_warm_up", "lower_warm_up"):
        return False
    parts = name.split(".")
    upper = int(parts[1]) >= layers if parts[0] == "blocks" else parts[0] != "embedding"
    return upper == (arm == "upper_warm_up")


class Optimizer:
    """Adam or SGD on stacked parameters, with what the arm changes about it."""

    def __init__(self, models, arm: str, rates, layers: int) -> None:
        import torch

        self.parameters, self.arm, self.layers = models.parameters, arm, layers
        self.rates = torch.as_tensor(rates)
        self.means = {k: torch.zeros_like(v) for k, v in models.parameters.items()}
        self.squares = {k: torch.zeros_like(v) for k, v in models.parameters.items()}
        self.mean_steps = self.square_steps = 0
        self.betas = (0.9, 0.999)

    def fill(self, gradients: dict, first: bool, second: bool) -> None:
        """Average the gradients into the moments."""
        self.mean_steps += first
        self.square_steps += second
        for name, slope in gradients.items():
            if first:
                self.means[name].lerp_(slope, 1 - self.betas[0])
            if second:
                square = self.squares[name].mul_(self.betas[1])
                square.addcmul_(slope, slope, value=1 - self.betas[1])

    def direction(self, name: str):
        """What Adam subtracts at a rate of one."""
        mean = self.means[name] / (1 - self.betas[0] ** self.mean_steps)
        factor = 1.0
        if self.arm == "radam":
            factor = rectified(self.square_steps, self.betas[1])
            if factor is None:
                return mean
        square = self.squares[name] / (1 - self.betas[1] ** self.square_steps)
        return factor * mean / (square.sqrt_() + 1e-8)

    def step(self, gradients: dict, factor: float, slow: float):
        """One update; the mean over matrices of the update's share: (runs,)."""
        import torch

        if self.arm == "clipped":
            from scripts.measure.together import clip

            clip(gradients, CLIP)
        adam = self.arm not in SGD
        if adam:
            self.fill(gradients, True, True)
        turns = []
        for name, parameter in self.parameters.items():
            if self.arm == "frozen" and name.startswith("blocks."):
                continue
            along = (-1, *[1] * (parameter.ndim - 1))
            rate = self.rates.to(parameter).reshape(along) * factor
            if slowed(name, self.arm, self.layers):
                rate = rate * slow
            if adam:
                change = self.direction(name)
            else:
                change = self.means[name].mul_(0.9).add_(gradients[name])
            if parameter.ndim > 2:
                length = change.flatten(1).norm(dim=1)
                if self.arm == "capped":
                    most = CAP * change[0].numel() ** 0.5
                    change = change * (most / length).clamp(max=1).reshape(along)
                    length = length.clamp(max=most)
                size = parameter.flatten(1).norm(dim=1)
                turns.append(rate.flatten() * length / size)
            parameter.sub_(rate * change)
        return torch.stack(turns).mean(0)


def critical(models, optimizer: Optimizer, text):
    """The longest step along the scaled gradient that lowers text's loss: (runs,).

    The gradient is scaled as Adam does it, without momentum. A length is the RMS over
    all entries; the least one if none lowers the loss.
    """
    import torch

    _, gradients = models.gradients(loss_of, text)
    left = 1 - optimizer.betas[1] ** optimizer.square_steps
    changes = {
        name: slope / ((optimizer.squares[name] / left).sqrt() + 1e-8)
        for name, slope in gradients.items()
    }
    square = sum(each.flatten(1).square().sum(1) for each in changes.values())
    rms = (square / sum(each[0].numel() for each in changes.values())).sqrt()
    kept = dict(models.parameters)
    before = models.losses(loss_of, text)
    found, still = torch.full_like(before, LENGTHS[0]), torch.ones_like(before).bool()
    for length in LENGTHS:
        for name, each in changes.items():
            along = (-1, *[1] * (each.ndim - 1))
            models.parameters[name] = kept[name] - length * each / rms.reshape(along)
        still &= models.losses(loss_of, text) < before
        found[still] = length
    models.parameters.update(kept)
    return found


def run(name: str, placement: str, arm: str) -> list[dict]:
    """Train every rate and seed of one arm side by side."""
    import torch

    from scripts.measure.together import Together, warm_up

    size = SIZES[name]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    own = cells(size, arm)
    models = [fresh(placement, arm, size, seed).to(device) for _, seed in own]
    models = Together(models)
    before = evaluate(models, size, device)
    optimizer = Optimizer(models, arm, [rate for rate, _ in own], size["layers"])
    data = texts(size, len(own), device)
    steps = size["steps"]
    warm = round(WARM * steps)
    if arm == "filled_second":
        for _ in range(warm):
            _, gradients = models.gradients(loss_of, data())
            optimizer.fill(gradients, False, True)
        data = texts(size, len(own), device)  # the run sees what the others see
    falls, rises = warm_up(steps, 0), warm_up(steps, warm)
    turned, probes = [], []
    probed = arm in ("adam", "warm_up")
    for step in range(steps):
        text = data()
        _, gradients = models.gradients(loss_of, text)
        if probed and step in (0, warm):
            trial = optimizer
            if step == 0:  # nothing was averaged yet: Adam's first step
                trial = Optimizer(models, arm, optimizer.rates, size["layers"])
                trial.fill(gradients, True, True)
            probes.append(critical(models, trial, text))
        fall = falls(step)
        turned.append(optimizer.step(gradients, fall, rises(step) / fall))
    after = evaluate(models, size, device)
    turned = torch.stack(turned)
    early, late = turned[:warm].mean(0), turned[steps // 2 :].mean(0)
    found = {
        "loss": (before, after),
        "rotation": (_finite(early), _finite(late)),
    }
    if probed:
        found["critical"] = tuple(map(_finite, probes))
    return [
        row(placement, arm, size, cell, quantity, list(values))
        for quantity, pair in found.items()
        for cell, values in zip(own, zip(*pair, strict=True), strict=True)
    ]


def row(placement, arm, size, cell, quantity, values) -> dict:
    rate, seed = cell
    return {
        "placement": placement,
        "arm": arm,
        "d": size["d"],
        "layers": 0 if arm == "no_layers" else size["layers"],
        "learning_rate": rate,
        "seed": seed,
        "quantity": quantity,
        "values": values,
    }


def frequencies(name: str) -> list[dict]:
    """The held-out loss of the training bytes' frequencies: no context at all."""
    import torch

    size = SIZES[name]
    counts = torch.bincount(corpus()[0], minlength=256).double() + 1
    loss = -(counts / counts.sum()).log()[held_out(size)[:, 1:]].mean()
    cell = (None, None)
    return [row(None, None, size, cell, "frequencies", [loss.item()])]


def measure(size: str) -> list[Step]:
    """One step trains all rates and seeds of one arm."""
    arms = [(placement, arm) for placement in ARMS for arm in ARMS[placement]]
    arms[9:9] = [("post", arm) for arm in CONTROLS]
    return [
        Step(
            {"placement": placement, "arm": arm},
            partial(run, size, placement, arm),
            cost=0.3 if arm == "no_layers" else 1.0,
        )
        for placement, arm in arms
    ] + [Step({"frequencies": "bytes"}, partial(frequencies, size), cost=0.1)]


# What it declares -----------------------------------------------------------


def _runs(record) -> list[Run]:
    return [
        Run(
            row["arm"],
            row["seed"],
            cell=None if row["arm"] == "no_layers" else (row["placement"],),
            rate=row["learning_rate"],
            width=row["d"],
            steps=SIZES[record.size]["steps"],
            loss=row["values"][1],
        )
        for row in record.select(quantity="loss")
    ]


DESIGN = Design(
    says=("after_training", "differences"),
    arms=ARMS["post"],
    without_layers="no_layers",
    frozen={"adam": "frozen"},
    runs=_runs,
    **design_words(__file__),
)


# What the page says -------------------------------------------------------

RATE_WORDS = ("least", "lower", "highest")  # of Adam, or of SGD
OUTCOMES = ("below", "plateau", "above", "diverged")


def _frequencies(record) -> float:
    (row,) = (r for r in record.rows if r["quantity"] == "frequencies")
    return row["values"][0]


def outcome(before: float, after: float | None, frequencies: float) -> str:
    """Where a run ended: below the frequencies' loss, on it, above it, or nowhere."""
    if after is None or after > before:
        return "diverged"
    apart = after - frequencies
    return "plateau" if abs(apart) <= MARGIN else "above" if apart > 0 else "below"


def _losses(record, placement: str, arm: str) -> dict[float, list[float]]:
    """By rate, the final losses as they are, in the order of the seeds."""
    found: dict[float, list[float]] = {}
    for row in record.select(placement=placement, arm=arm, quantity="loss"):
        found.setdefault(row["learning_rate"], []).append(row["values"][1])
    return {rate: with_inf(losses) for rate, losses in found.items()}


def _named(losses: dict) -> dict[str, list[float]]:
    """The same by the rate's word; the highest is the last."""
    rates = sorted(losses)
    return dict(zip(RATE_WORDS[-len(rates) :], map(losses.get, rates), strict=True))


def facts(record) -> dict[str, str]:
    from math import inf

    size = SIZES[record.size]
    frequencies = _frequencies(record)
    rates = size["rates"]
    found = Found({name: str(size[name]) for name in ("d", "layers", "steps")})
    found |= {
        "seeds": str(len(record.provenance["seeds"])),
        "tokens": str(size["batch"] * size["context"]),
        "held_out": integer(size["pieces"] * size["context"]),
        "warm": f"{100 * WARM:.0f}%",
        "margin": f"{MARGIN:g}",
        "rates": str(len(rates)),
        "sgd_rates_list": ", ".join(f"{rate:g}" for rate in size["sgd_rates"]),
        "frequencies": number(frequencies, 2),
        "radam_factor": number(rectified(size["steps"]) or 0, 2),
    }
    found |= _named({rate: f"{rate:g}" for rate in rates})

    arms = [(placement, arm) for placement in ARMS for arm in ARMS[placement]]
    for placement, arm in [*arms, *(("post", arm) for arm in CONTROLS)]:
        name = f"{placement}_{arm}"
        losses = _losses(record, placement, arm)
        ends: dict[float, list[str]] = {}
        for row in record.select(placement=placement, arm=arm, quantity="loss"):
            end = outcome(*row["values"], frequencies)
            ends.setdefault(row["learning_rate"], []).append(end)
        for word, each in _named(ends).items():
            for end in OUTCOMES:
                found[f"{name}_{word}_{end}"] = str(each.count(end))
        for word, each in _named(losses).items():
            found[f"{name}_{word}"] = "\u2014"  # where a run has no loss
            if inf not in each:
                found.median(f"{name}_{word}", each)
        rate = best(losses, losses.get)
        if inf not in losses[rate]:
            found.median(f"{name}_best", losses[rate])

    named = {
        arm: _named(_losses(record, "post", arm))
        for arm in ("adam", "warm_up", "radam")
    }
    adam, warm, radam = named.values()
    for word in adam:
        found.paired(f"warm_up_gain_{word}", adam[word], warm[word], 2)
    lower = adam["lower"], warm["highest"]  # the control: less rate, no warm-up
    found.paired("lower_rate_less_warm_up", *lower, 2)
    found.paired("lower_rate_gain", adam["highest"], adam["lower"], 2)
    found.paired("radam_less_lower", radam["highest"], warm["lower"])
    return found


WORDS = figure_words(__file__)


def plot(record, words):
    """All final losses as they are: a dot a run, a colour a rate."""
    from math import isfinite

    from scripts.measure import figures

    frequencies = _frequencies(record)
    counts = [len(arms) for arms in ARMS.values()]
    figure, axes = figures.new_figure(
        words, record, rows=2, height=7.4, sharex=True, height_ratios=counts
    )
    every = [
        loss
        for row in record.select(quantity="loss")
        if row["arm"] not in CONTROLS and (loss := row["values"][1]) is not None
    ]
    low, high = min(every), max(every)
    edge = high + 0.06 * (high - low)
    for axis, (placement, arms) in zip(axes, ARMS.items(), strict=True):
        for i, arm in enumerate(arms):
            every_rate = _losses(record, placement, arm).items()
            for series, (rate, losses) in enumerate(every_rate):
                dots = figures.ramp(series) | {"linestyle": "none"}
                place = i + 0.26 * (series - 1)
                ended = list(filter(isfinite, losses))
                if ended:
                    label = f"{words['rate']} {rate:g}" if not i else None
                    heights = [place] * len(ended)
                    axis.plot(ended, heights, markersize=4, label=label, **dots)
                else:
                    text = dict(color=dots["color"], fontsize="x-small", va="center")
                    axis.text(edge, place, words["diverged"], ha="right", **text)
        dashes = dict(color=figures.MUTED, linewidth=1, linestyle=figures.LINES[1])
        axis.axvline(frequencies, **dashes)
        axis.set_yticks(range(len(arms)), [words[arm] for arm in arms])
        axis.set_ylim(len(arms) - 0.4, -0.6)
        axis.set_title(words[placement])
    axes[-1].set_xlabel(words["loss"])
    figures.legend(figure, columns=3)
    figures.footer(figure, record, words, words["band"])
    return figure
