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
drawn, where embedding, final norm and head are trained. A stack is said to train
when it is ahead of both kinds: see `trains`.

Every learning rate is tried with every seed. A run counts as diverged when its loss
is not finite. A stack that is slow rather than stuck would look the same; `longer`
trains one of them again with more steps, and its controls with it.

A row holds one quantity of one run in `values`; `blocks` says whether they were
trained or frozen. loss: on held-out text, before and after training. gradient:
before training, norms for the last feed-forward matrix of five layers, from the
first over the quarters to the last. reference losses: of the three predictors on the
same held-out text. seconds: for one step of all runs of a stack, one number for each
round.
"""

from functools import partial

from scripts.measure.batching import ROUNDS, batching_facts, race
from scripts.measure.records import Step
from scripts.measure.spread import integer, number, span

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
STUDENT = 2.776  # two-sided 95 % with one seed fewer than there are: 4
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
        rounds=2,
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


def batching(size: dict) -> list[dict]:
    """Seconds for one step of all runs of a stack: a loop of models, and one call."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    layers = size["depths"][1]
    seeds = SEEDS * len(size["rates"])
    models = [fresh("pre", layers, size, seed).to(device) for seed in seeds]
    generator = torch.Generator().manual_seed(0)
    text = [sequences(size["batch"], size["context"], generator) for _ in models]
    text = torch.stack(text).to(device)
    found = race(models, loss_of, (text,), size.get("rounds", ROUNDS))
    names = ("seconds_one_by_one", "seconds_together")
    return [
        row("pre", layers, "trained", size, 1, None, None, name, seconds)
        for name, seconds in zip(names, found, strict=True)
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
        Step({"batching": "all runs"}, partial(batching, setting), timed=True, cost=1),
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
            loss = row["values"][1]
            found.setdefault(row["learning_rate"], []).append(
                float("inf") if loss is None else loss
            )
    return dict(sorted(found.items()))


def _best(by_rate: dict[float, list]) -> tuple[float, list]:
    """(learning rate, losses) of the least median."""
    from statistics import median

    return min(by_rate.items(), key=lambda item: median(item[1]))


def _controls(record, arm: str, layers: int, factor: int = 1) -> dict[str, list]:
    """Losses of the models without layers and of the frozen stack, at their best."""
    found = {name: _by_rate(record, name, 0, factor) for name in WITHOUT}
    found["frozen"] = _by_rate(record, arm, layers, factor, frozen=True)
    return {name: _best(by_rate)[1] for name, by_rate in found.items() if by_rate}


def _compared(losses: list, control: list) -> tuple[float, float, int]:
    """Losses less the control's, seed by seed: (mean, standard error, seeds ahead)."""
    from math import isfinite
    from statistics import mean, stdev

    gaps = [a - b for a, b in zip(losses, control, strict=True)]
    ahead = sum(gap < 0 for gap in gaps)
    if not all(map(isfinite, gaps)):
        return float("inf"), float("inf"), ahead
    return mean(gaps), stdev(gaps) / len(gaps) ** 0.5, ahead


def _ahead(losses: list, control: list) -> bool:
    """Whether the mean difference and its 95 % interval (Student) are below zero."""
    mean, error, _ = _compared(losses, control)
    return mean + STUDENT * error < 0


def trains(record, arm: str, layers: int, factor: int = 1) -> bool:
    """Whether a stack is ahead of the models without layers and of its frozen twin."""
    _, losses = _best(_by_rate(record, arm, layers, factor))
    controls = _controls(record, arm, layers, factor).values()
    return bool(controls) and all(_ahead(losses, control) for control in controls)


def _with_error(mean: float, error: float) -> str:
    """−0.12 ± 0.01."""
    return f"{number(mean)} ± {number(error)}"


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
    from math import inf
    from statistics import median

    size, depths = SIZES[record.size], _depths(record)
    most, unigram = depths[-1], _reference(record, "unigram")
    rates = list(_by_rate(record, ARMS[0], depths[0]))
    found = {
        "seeds": str(len(SEEDS)),
        "d": str(size["d"]),
        "batch": str(size["batch"]),
        "context": str(size["context"]),
        "steps": str(size["steps"]),
        "held_out": str(size["held_out"]),
        "tokens": integer(size["steps"] * size["batch"] * size["context"]),
        "vocabulary": str(VOCABULARY),
        "favoured": f"{100 * FAVOURED:.0f} %",
        "depths": ", ".join(map(str, depths)),
        "least": str(depths[0]),
        "most": str(most),
        "sublayers": str(2 * most),
        "rates": ", ".join(map(_rate, rates)),
        "student": f"{STUDENT:.1f}",
    }
    for name in REFERENCES:
        found[name] = number(_reference(record, name))

    def described(by_rate):
        rate, losses = _best(by_rate)
        return {
            "": number(median(losses)),
            "_range": span(losses),
            "_rate": _rate(rate),
        }

    def against(arm, depth, losses, factor=1):
        """The losses less each control's, and the verdict."""
        told = {}
        for name, control in _controls(record, arm, depth, factor).items():
            mean, error, ahead = _compared(losses, control)
            told[f"_less_{name}"] = _with_error(mean, error)
            told[f"_ahead_{name}"] = str(ahead)
            told[f"_{name}"] = number(median(control))
            told[f"_{name}_range"] = span(control)
        if told:
            told["_trains"] = "✓" if trains(record, arm, depth, factor) else "✗"
        return told

    edges, learned, chosen = 0, 0, {}
    for arm in ARMS:
        passed, beyond = [], []
        for depth in depths:
            by_rate, ratios = _by_rate(record, arm, depth), _ratios(record, arm, depth)
            if not by_rate:
                continue
            rate, losses = _best(by_rate)
            chosen[arm, depth] = losses
            if median(losses) < unigram:  # else no rate is better than another
                learned += 1
                edges += rate in (min(by_rate), max(by_rate))
                beyond.append(depth)
            if trains(record, arm, depth):
                passed.append(depth)
            one = described(by_rate) | against(arm, depth, losses)
            one |= {
                "_gradient_ratio": _size(median(ratios)),
                "_gradient_ratio_range": (
                    f"[{_size(min(ratios))}, {_size(max(ratios))}]"
                ),
            }
            labels = {depths[0]: "least", most: "most"}
            for label in {str(depth), labels.get(depth, str(depth))}:
                found |= {f"{arm}_{label}{end}": text for end, text in one.items()}
        found[f"{arm}_trains_at"] = ", ".join(map(str, passed)) or "0"
        found[f"{arm}_trains_count"] = str(len(passed))
        found[f"{arm}_passes_input_at"] = ", ".join(map(str, beyond)) or "0"
    for slow, depth, factor in _longer(record):
        by_rate = _by_rate(record, slow, depth, factor)
        told = described(by_rate) | against(slow, depth, _best(by_rate)[1], factor)
        found |= {f"longer{end}": text for end, text in told.items()}
        found |= {"longer_depth": str(depth), "longer_factor": str(factor)}
        found["steps_longer"] = str(factor * size["steps"])
    for name in WITHOUT:
        if control := _by_rate(record, name, 0):
            found |= {f"{name}{end}": text for end, text in described(control).items()}
    best = _reference(record, "best")
    threshold = unigram - 0.25 * (unigram - best)
    found |= {"share": "25 %", "threshold": number(threshold)}
    found["rates_most"] = ", ".join(map(_rate, _by_rate(record, "pre", most)))
    for (arm, depth), losses in chosen.items():
        count = str(sum(loss <= threshold for loss in losses))
        found[f"{arm}_{depth}_trained"] = count
    for slow, depth, factor in _longer(record):
        losses = _best(_by_rate(record, slow, depth, factor))[1]
        found["longer_trained"] = str(sum(loss <= threshold for loss in losses))
    found["edges"], found["choices"] = str(edges), str(learned)
    losses = [row["values"][1] for row in record.rows if row["quantity"] == "loss"]
    found["runs"] = str(len(losses))
    found["diverged"] = str(losses.count(None) + losses.count(inf))
    for other in ("pre", "sandwich"):
        for depth in depths:
            if (other, depth) not in chosen:
                continue
            gap = _compared(chosen["deepnorm", depth], chosen[other, depth])
            name = f"deepnorm_less_{other}_{depth}"
            found[name], found[f"{name}_seeds"] = _with_error(*gap[:2]), str(gap[2])
            pairs = zip(chosen["deepnorm", depth], chosen[other, depth], strict=True)
            found[f"{name}_range"] = span([a - b for a, b in pairs])
    seconds = [
        record.select(quantity=f"seconds_{name}")[0]["values"]
        for name in ("one_by_one", "together")
    ]
    raced = record.select(quantity="seconds_together")[0]["layers"]
    count = len(SEEDS) * len(rates)
    found |= batching_facts(*seconds, count, size["steps"])
    return found | {"raced": str(raced), "raced_runs": str(count)}


WORDS = {
    "zh": {
        "title": "多深还能训练？{steps} 步之后的损失",
        "post": "Post-Norm",
        "pre": "Pre-Norm",
        "sandwich": "夹心归一化",
        "deepnorm": "DeepNorm",
        "by_depth": "最佳学习率下，随层数变化",
        "by_rate": "{most} 层，随学习率变化",
        "by_layer": "训练前，首层梯度 ÷ 末层梯度",
        "depth": "层数（对数刻度）",
        "rate": "学习率（对数刻度）",
        "loss": "损失（nat）",
        "ratio": "比值（对数刻度）",
        "unigram": "什么都不看",
        "last_token": "只看上一个 token",
        "best": "能达到的最好",
        "band": (
            "线：{seeds} 个种子的中位数；色带：从最小到最大。"
            "空心标记：{longer_depth} 层的 Post-Norm，训练 {steps_longer} 步。"
            "比值为零的画在下边缘。"
        ),
        "caption": (
            "同样的窄解码器（d = {d}），四种归一化位置，{least} 到 {most} 层，"
            "各训练 {steps} 步：留出序列上的损失，{most} 层时各个学习率的结果，"
            "以及训练前首层与末层的梯度之比。"
        ),
        "alt": (
            "三幅折线图。上图横轴是层数，从 {least} 到 {most}，纵轴是训练后的损失，"
            "三条水平虚线依次是 {unigram}（什么都不看）、{last_token}"
            "（只看上一个 token）和 {best}（能达到的最好）。"
            "{most} 层时，Post-Norm 为 {post_most}，Pre-Norm {pre_most}，"
            "夹心归一化 {sandwich_most}，DeepNorm {deepnorm_most}；"
            "{least} 层时依次为 {post_least}、{pre_least}、{sandwich_least} 和 "
            "{deepnorm_least}。"
            "中图是 {most} 层时每个学习率的损失。下图是训练前首层与末层的梯度之比："
            "{most} 层时 Post-Norm {post_most_gradient_ratio}，Pre-Norm "
            "{pre_most_gradient_ratio}，夹心归一化 {sandwich_most_gradient_ratio}，"
            "DeepNorm {deepnorm_most_gradient_ratio}。"
        ),
    },
    "en": {
        "title": "How deep does it train? Loss after {steps} steps",
        "post": "Post-Norm",
        "pre": "Pre-Norm",
        "sandwich": "Sandwich norm",
        "deepnorm": "DeepNorm",
        "by_depth": "At the best learning rate, by depth",
        "by_rate": "{most} layers, by learning rate",
        "by_layer": "Before training, gradient of first / last layer",
        "depth": "number of layers (logarithmic)",
        "rate": "learning rate (logarithmic)",
        "loss": "loss (nats)",
        "ratio": "ratio (log.)",
        "unigram": "sees nothing",
        "last_token": "sees the last token only",
        "best": "best possible",
        "band": (
            "Line: median of {seeds} seeds. Band: least to greatest. Open marker: "
            "Post-Norm of {longer_depth} layers, trained for {steps_longer} steps. A "
            "ratio of zero stands at the lower edge."
        ),
        "caption": (
            "The same narrow decoder (d = {d}) with four placements of its norms, "
            "{least} to {most} layers, each trained for {steps} steps: the loss on "
            "held-out sequences, all learning rates at {most} layers, and the "
            "gradient of the first layer over that of the last before training."
        ),
        "alt": (
            "Three line charts. Top: loss after training against the number of layers, "
            "{least} to {most}; three dashed lines mark {unigram} (sees nothing), "
            "{last_token} (sees the last token only) and {best} (best possible). At "
            "{most} layers Post-Norm has {post_most}, Pre-Norm {pre_most}, Sandwich "
            "norm {sandwich_most} and DeepNorm {deepnorm_most}; at {least} layers "
            "{post_least}, {pre_least}, {sandwich_least} and {deepnorm_least}. "
            "Middle: the loss at {most} layers for every learning rate. Bottom: "
            "gradient of the first layer over that of the last before training; at "
            "{most} layers Post-Norm has {post_most_gradient_ratio}, Pre-Norm "
            "{pre_most_gradient_ratio}, Sandwich norm {sandwich_most_gradient_ratio} "
            "and DeepNorm {deepnorm_most_gradient_ratio}."
        ),
    },
}


LEAST = 1e-21  # the ratio of gradients where the figure ends


def plot(record, words):
    from statistics import median

    from matplotlib.ticker import FixedLocator, NullLocator

    from scripts.measure import look

    depths = _depths(record)
    most = depths[-1]
    references = {name: _reference(record, name) for name in REFERENCES}
    lowest, highest = references["best"], references["unigram"]
    top = highest + 0.25 * (highest - lowest)
    figure, (by_depth, by_rate, by_layer) = look.new_figure(
        words, record, rows=3, height=10.2
    )

    def draw(axis, series, arm, places, runs):
        drawn = {**look.style(series), "markersize": 4.5}
        axis.plot(places, list(map(median, runs)), label=words[arm], **drawn)
        low, high = list(map(min, runs)), list(map(max, runs))
        colour = drawn["color"]
        axis.fill_between(places, low, high, color=colour, alpha=0.13, linewidth=0)

    def shown(losses):  # diverged runs stand at the panel's upper edge
        return [min(loss, top) for loss in losses]

    rates = list(_by_rate(record, "deepnorm", most))
    for series, arm in enumerate(ARMS):
        found = {depth: _by_rate(record, arm, depth) for depth in depths}
        there = [depth for depth in depths if found[depth]]
        best = [shown(_best(found[depth])[1]) for depth in there]
        ratios = [[max(r, LEAST) for r in _ratios(record, arm, n)] for n in there]
        draw(by_depth, series, arm, there, best)
        draw(by_layer, series, arm, there, ratios)
        if most in there:
            each = [shown(found[most][rate]) for rate in rates]
            draw(by_rate, series, arm, rates, each)
    for slow, depth, factor in _longer(record):
        _, losses = _best(_by_rate(record, slow, depth, factor))
        hollow = look.style(ARMS.index(slow)) | {"linestyle": "none", "markersize": 7}
        hollow |= {"markerfacecolor": "none", "markeredgewidth": 1.5}
        by_depth.plot([depth], [min(median(losses), top)], **hollow)

    dashed = dict(color=look.MUTED, linewidth=1.0, linestyle=look.LINES[1])
    for axis in (by_depth, by_rate):
        for name, loss in references.items():
            axis.axhline(loss, marker="none", **dashed)
            if axis is by_depth and name == "last_token":
                continue  # lines are in its way; the panel below says it
            place = (0.01, loss - 0.01)
            axis.annotate(
                words[name],
                place,
                xycoords=("axes fraction", "data"),
                color=look.MUTED,
                fontsize=look.SMALL,
                va="top",
            )
        axis.set_ylim(lowest - 0.12 * (highest - lowest), top)
        axis.set_ylabel(words["loss"])
    by_layer.set_yscale("log")
    by_layer.set_ylabel(words["ratio"])
    by_layer.yaxis.set_minor_locator(NullLocator())
    for axis, ticks, title, below in (
        (by_depth, depths, "by_depth", "depth"),
        (by_rate, rates, "by_rate", "rate"),
        (by_layer, depths, "by_layer", "depth"),
    ):
        axis.set_title(words[title])
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(FixedLocator(ticks))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.set_xticks(
            ticks, [f"{tick:.8f}".rstrip("0").rstrip(".") for tick in ticks]
        )
        axis.set_xlabel(words[below])
    look.legend(figure)
    look.footer(figure, record, words, words["band"])
    return figure
