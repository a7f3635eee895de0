"""What does a small language model lose without norms, and does nGPT save steps?

One decoder in eight versions: Pre-Norm with RMSNorm; DyT in the place of each norm,
with alpha starting at 0.5 and at 1; no norm at all; no norm, but a learned number on
every branch that starts at 1/sqrt(number of branches) (SkipInit) or at zero
(ReZero); and nGPT, whose matrices are put back on the sphere after every step. The
last one has both RMSNorm and SkipInit's numbers: it tells what the small branches do
from what the missing norms do. All but nGPT have one body: the attention with rotary
positions and the SwiGLU of the Llama page. nGPT's own layers have them too, and
matrices of the same shapes.

Every version is trained at every learning rate of one grid, with all seeds; the best
is the one of the least median held-out loss at the end. nGPT follows its recipe: no
weight decay, no warm-up. The others have both. RMSNorm and nGPT are also trained for an
eighth, a quarter and half of the steps, each with its own schedule, since "fewer steps
to the same loss" compares whole trainings, not points inside of one.

A row holds one quantity of one run: `values` are held-out losses in nats per byte
after the steps in `at`, null where the loss is not finite; or, for the control, the
loss of the bytes' frequencies.
"""

from functools import partial

from scripts.measure.design import Design, Run
from scripts.measure.draw import band, diverged, log_ticks, name_axes
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.fact_formatting import Found, best, with_inf
from scripts.measure.records import Step
from scripts.measure.spread import integer, number

SEEDS = tuple(range(5))
METHOD = (
    "AdamW with betas 0.9 and 0.95, gradients clipped at 1, learning rate falling "
    "linearly to zero; warm-up over the first tenth and weight decay 0.1 on matrices, "
    "both absent for nGPT; every matrix drawn with variance 1 / fan-in, embedding rows "
    "with variance 1, for nGPT then put on the sphere; random pieces of the standard "
    "library's sources, the last tenth of each module held out; the same held-out "
    "pieces for all runs; float32; all seeds and rates of one version as one stack"
)
PARALLEL = True
DYT = {"dyt_half": 0.5, "dyt_one": 1.0}  # where alpha starts
NORMED = ("rms_norm", "rms_norm_small")
# Where the numbers on the branches start; None: 1 / sqrt(number of branches).
STARTS = {"skip_init": None, "re_zero": 0.0, "rms_norm_small": None}
ARMS = (*NORMED, *DYT, "plain", "skip_init", "re_zero", "ngpt")
LENGTHS = ("rms_norm", "ngpt")  # trained for fewer steps, too
SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)  # of all steps
RATES = (4e-3, 1e-2, 2.5e-2, 6.25e-2, 0.16)
VOCABULARY = 256
WARM_UP, WEIGHT_DECAY, BETAS, LONGEST = 0.1, 0.1, (0.9, 0.95), 1.0
SIZES = {
    "tiny": {
        "d": 8,
        "layers": 2,
        "heads": 2,
        "hidden": 16,
        "context": 8,
        "batch": 2,
        "steps": 8,
        "rates": (1e-2, 3e-2),
    },
    "small": {
        "d": 32,
        "layers": 4,
        "heads": 4,
        "hidden": 88,
        "context": 32,
        "batch": 8,
        "steps": 400,
        "rates": RATES,
    },
    "full": {
        "d": 192,
        "layers": 6,
        "heads": 6,
        "hidden": 512,
        "context": 128,
        "batch": 16,
        "steps": 1200,
        "rates": tuple(rate / 4 for rate in RATES),
    },
}
EVALUATION = {"tiny": 1, "small": 16, "full": 16}  # batches of held-out pieces
MOMENTS = (1 / 24, 1 / 12, 1 / 6, 1 / 4, 3 / 8, 1 / 2, 5 / 8, 3 / 4, 7 / 8, 1)


def bare(arm: str, setting: dict):
    """The model of an arm; its matrices are to be drawn."""
    from torch import nn

    from snippets.normalized_transformer.model import NormalizedTransformer
    from snippets.pre_norm_vs_post_norm.blocks import PreNormBlock
    from snippets.pre_norm_vs_post_norm.decoder import Decoder
    from snippets.rms_norm import small_decoder
    from snippets.rms_norm.reference import RMSNorm
    from snippets.transformer_block.decoder import Attention, Sizes, SwiGLU
    from snippets.without_normalization.reference import DynamicTanh
    from snippets.without_normalization.residual import ScaledResidual

    d, layers, heads = (setting[name] for name in ("d", "layers", "heads"))
    if arm == "ngpt":
        return NormalizedTransformer(VOCABULARY, d, layers, heads, setting["hidden"])
    sizes = Sizes(
        d=d,
        heads=heads,
        kv_heads=heads,
        width=d // heads,
        hidden=setting["hidden"],
        base=1e4,
    )

    def norm(d: int):
        if arm in DYT:
            return DynamicTanh(d, DYT[arm])
        return RMSNorm(d) if arm in NORMED else nn.Identity()

    def block(sublayer, norm):
        attends = isinstance(sublayer, small_decoder.Attention)
        body = Attention(sizes) if attends else SwiGLU(sizes)
        if arm in STARTS:
            start = STARTS[arm]
            start = (2 * layers) ** -0.5 if start is None else start
            return ScaledResidual(nn.Sequential(norm, body), start)
        return PreNormBlock(body, norm)

    return Decoder(d, layers, heads, VOCABULARY, block=block, norm=norm)


def fresh(arm: str, setting: dict, seed: int):
    """A model of an arm at its start."""
    from snippets.normalized_transformer.model import normalize_weights
    from snippets.pre_norm_vs_post_norm.decoder import initialize

    model = initialize(bare(arm, setting), seed)
    if arm == "ngpt":
        normalize_weights(model)
    return model


def to_sphere(parameters: dict) -> None:
    """normalize_weights on stacked parameters, (runs, out, in), in place."""
    from snippets.normalized_transformer.sphere import unit

    for name, each in parameters.items():
        if name.endswith(".weight"):
            writes = name.endswith("_out.weight")  # to the stream: columns
            each.copy_(unit(each, dim=1 if writes else 2))


def shorten(gradients: dict, longest: float) -> None:
    """Clip each run's gradient, in place; a learned number counts as a vector."""
    from scripts.measure.together import norms

    found = norms({name: each.unsqueeze(1) for name, each in gradients.items()})
    factors = (longest / (found + 1e-6)).clamp(max=1.0)
    for each in gradients.values():
        each.mul_(factors.reshape(-1, *[1] * (each.ndim - 1)))


def train(arm: str, models, data, steps: int, rates, seen) -> None:
    """Train all runs in place; `seen(step)` is called after each step, from 1 on.

    `rates` is one learning rate, or one for each run.
    """
    from scripts.measure.together import AdamW, warm_up

    on_sphere = arm == "ngpt"
    matrices = {name for name, each in models.parameters.items() if each.ndim > 2}
    optimizer = AdamW(
        models.parameters,
        rates,
        betas=BETAS,
        weight_decay=0.0 if on_sphere else WEIGHT_DECAY,
        decays=matrices.__contains__,
    )
    factor = warm_up(steps, 0 if on_sphere else max(1, round(WARM_UP * steps)))
    for step in range(steps):
        _, gradients = models.gradients(loss_of_run, data(step))
        shorten(gradients, LONGEST)
        optimizer.step(gradients, factor(step))
        if on_sphere:
            to_sphere(models.parameters)
        seen(step + 1)


def loss_of_run(model, text):
    from scripts.measure.corpus import loss_of

    return loss_of(model, text)


def moments(steps: int) -> list[int]:
    """Steps after which the held-out loss is taken; 0 is before the first."""
    return sorted({0, *(max(1, round(share * steps)) for share in MOMENTS)})


def held_out_pieces(size: str):
    """(batches, batch, context + 1), the same for all runs of a size."""
    import torch

    from scripts.measure.corpus import corpus, sample

    setting, generator = SIZES[size], torch.Generator().manual_seed(2026)
    _, held_out = corpus()
    return torch.stack(
        [
            sample(held_out, setting["batch"], setting["context"], generator)
            for _ in range(EVALUATION[size])
        ]
    )


def stream(size: str, seed: int):
    """data(step) of one run: the same pieces in the same order for every arm."""
    import torch

    from scripts.measure.corpus import corpus, sample

    setting, generator = SIZES[size], torch.Generator().manual_seed(seed)
    training, _ = corpus()
    return lambda: sample(training, setting["batch"], setting["context"], generator)


def row(arm, steps, rate, seed, quantity, at, values) -> dict:
    return {
        "arm": arm,
        "steps": steps,
        "rate": rate,
        "seed": seed,
        "quantity": quantity,
        "at": at,
        "values": values,
    }


def runs(size: str, arm: str, share: float) -> list[dict]:
    """Train all seeds of one arm at every learning rate."""
    from math import isfinite

    import torch

    from scripts.measure.together import Together

    setting = SIZES[size]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    steps = max(1, round(share * setting["steps"]))
    each = [(rate, seed) for rate in setting["rates"] for seed in SEEDS]
    models = Together([fresh(arm, setting, seed).to(device) for _, seed in each])
    batches = held_out_pieces(size).to(device)
    streams = [stream(size, seed) for seed in SEEDS]
    wanted, at, losses = moments(steps), [], []

    def data(step):
        texts = torch.stack([draw() for draw in streams])
        return texts.repeat(len(setting["rates"]), 1, 1).to(device)

    def seen(step):
        if step in wanted:
            shared = [text.expand(len(each), -1, -1) for text in batches]
            found = sum(models.losses(loss_of_run, text) for text in shared)
            at.append(step)
            losses.append((found / len(shared)).tolist())

    seen(0)
    train(arm, models, data, steps, [rate for rate, _ in each], seen)
    return [
        row(
            arm,
            steps,
            rate,
            seed,
            "held_out",
            at,
            [value if isfinite(value) else None for value in values],
        )
        for (rate, seed), values in zip(each, zip(*losses, strict=True), strict=True)
    ]


def frequencies(size: str) -> list[dict]:
    """The held-out loss of a model that knows the bytes' frequencies alone."""
    import torch

    from scripts.measure.corpus import corpus

    training, _ = corpus()
    counts = torch.bincount(training, minlength=VOCABULARY).double() + 1
    following = held_out_pieces(size)[..., 1:].flatten()
    loss = -(counts / counts.sum()).log()[following].mean()
    return [row(None, None, None, None, "frequencies", None, [loss.item()])]


def measure(size: str) -> list[Step]:
    """One step trains all seeds of one arm at every learning rate."""
    trained = [
        (arm, share)
        for arm in ARMS
        for share in (SHARES if arm in LENGTHS else SHARES[-1:])
    ]
    steps = [
        Step(
            {"arm": arm, "share": share},
            partial(runs, size, arm, share),
            cost=share * (1.5 if arm == "ngpt" else 1.0),
        )
        for arm, share in trained
    ]
    steps.append(Step({"frequencies": size}, partial(frequencies, size), cost=0.01))
    return steps


# What the page says -------------------------------------------------------

LENGTH_NAMES = ("shortest", "short", "long", "longest")  # of the trainings


def _quantity(record, quantity) -> list[dict]:
    return [row for row in record.rows if row["quantity"] == quantity]


def _lengths(record) -> list[int]:
    """The trainings' numbers of steps, least first."""
    return sorted({row["steps"] for row in _quantity(record, "held_out")})


def _rates(record) -> list[float]:
    return sorted({row["rate"] for row in _quantity(record, "held_out")})


def _runs(record, arm, rate, steps=None) -> list[list[float]]:
    """Held-out losses of each seed at the moments; infinite where not finite."""
    steps = steps or _lengths(record)[-1]
    found = sorted(
        (row["seed"], row["values"])
        for row in _quantity(record, "held_out")
        if (row["arm"], row["rate"], row["steps"]) == (arm, rate, steps)
    )
    return [with_inf(values) for _, values in found]


def _ends(record, arm, rate, steps=None) -> list[float]:
    return [values[-1] for values in _runs(record, arm, rate, steps)]


def _best(record, arm, steps=None) -> float:
    return best(_rates(record), lambda rate: _ends(record, arm, rate, steps))


def _best_ends(record, arm, steps=None) -> list[float]:
    return _ends(record, arm, _best(record, arm, steps), steps)


def _moments(record, steps=None) -> list[int]:
    steps = steps or _lengths(record)[-1]
    (found, *_) = (
        row["at"] for row in _quantity(record, "held_out") if row["steps"] == steps
    )
    return found


def _guess(record) -> float:
    return _quantity(record, "frequencies")[0]["values"][0]


def _diverged(record, arm, rates) -> int:
    """Runs that end no better than the bytes' frequencies, or not finite."""
    ends = [end for rate in rates for end in _ends(record, arm, rate)]
    return sum(not end < _guess(record) for end in ends)


def _steps_to(curve: list[tuple[int, float]], loss: float) -> tuple[str, float]:
    """(sign, steps) a training must have to end at a loss; curve: (steps, loss).

    Between two trainings, on a straight line in the logarithm of the steps.
    Beyond the longest the sign is ">", below the shortest "<".
    """
    from itertools import pairwise
    from math import exp, log

    if loss > curve[0][1]:
        return "< ", curve[0][0]
    for (few, high), (many, low) in pairwise(curve):
        if low <= loss <= high:
            share = (high - loss) / (high - low) if high > low else 0.0
            return "", exp(log(few) + share * log(many / few))
    return "> ", curve[-1][0]


def facts(record) -> dict[str, str]:
    from statistics import median

    setting = SIZES[record.size]
    lengths, rates = _lengths(record), _rates(record)
    most = lengths[-1]
    sizes = ("d", "layers", "context", "batch", "steps")
    found = Found({name: str(setting[name]) for name in sizes})
    found |= {
        "seeds": str(len(SEEDS)),
        "guess": number(_guess(record)),
        "rates": ", ".join(f"{rate:g}" for rate in rates),
        "runs_per_arm": str(len(SEEDS) * len(rates)),
        "lengths": ", ".join(map(str, lengths)),
        "bytes": str(most * setting["batch"] * setting["context"]),
        "held_out": integer(
            EVALUATION[record.size] * setting["batch"] * setting["context"]
        ),
    }

    def against(name, arm, other, steps=most):
        pair = (_best_ends(record, each, steps) for each in (arm, other))
        found.paired(name, *pair, end="_paired")

    at = _moments(record)
    places = {"start": 0, "after_first": 1, "after_half": at.index(most // 2)}
    found["first"], found["half"] = str(at[1]), str(most // 2)
    at_edge = []
    for arm in ARMS:
        rate = _best(record, arm)
        found.median(f"{arm}_end", _best_ends(record, arm))
        against(f"{arm}_gap", arm, "rms_norm")
        found[f"{arm}_diverged"] = str(_diverged(record, arm, rates))
        if rate in (rates[0], rates[-1]):
            at_edge.append(arm)
        for name, place in places.items():
            loss = median(values[place] for values in _runs(record, arm, rate))
            found[f"{arm}_{name}"] = number(loss, 0 if loss > 1000 else 2)
    found["at_edge"] = str(len(at_edge))

    fast = rates[-2]  # what a version without norms pays below the greatest rate
    found["rate_fast"] = f"{fast:g}"
    pair = (_ends(record, each, fast) for each in ("plain", "rms_norm"))
    found.paired("plain_gap_fast", *pair, end="_paired")
    against("norms_less_gap", "skip_init", "rms_norm_small")  # small branches in both
    curves: dict[str, list] = {arm: [] for arm in LENGTHS}
    for name, steps in zip(LENGTH_NAMES, lengths, strict=True):
        found[name] = str(steps)
        for arm, curve in curves.items():
            curve.append((steps, median(_best_ends(record, arm, steps))))
            found[f"{arm}_{name}_rate"] = f"{_best(record, arm, steps):g}"
        against(f"ngpt_gap_{name}", "ngpt", "rms_norm", steps)
    sign, needed = _steps_to(curves["rms_norm"], curves["ngpt"][-1][1])
    found["rms_norm_steps_for_longest"] = f"{sign}{needed:.0f}"
    return found


def _design_runs(record) -> list[Run]:
    setting = SIZES[record.size]
    return [
        Run(
            row["arm"],
            row["seed"],
            cell=(row["steps"],),
            rate=row["rate"],
            width=setting["d"],
            steps=row["steps"],
            loss=row["values"][-1],
        )
        for row in record.select(quantity="held_out")
    ]


DESIGN = Design(
    says=("after_training", "differences"),
    arms=ARMS,
    runs=_design_runs,
    **design_words(__file__),
)

WORDS = figure_words(__file__)


def plot(record, words):

    from scripts.measure import figures

    rates, lengths, guess = _rates(record), _lengths(record), _guess(record)
    figure, (top, middle, bottom) = figures.new_figure(
        words, record, rows=3, height=7.6
    )
    least = min(min(_best_ends(record, arm)) for arm in ARMS)
    ceiling = guess + 0.08 * (guess - least)

    def style(arm):
        if arm == "plain":  # the control
            drawn = {
                "color": figures.MUTED,
                "marker": "*",
                "linestyle": figures.LINES[2],
            }
            return drawn | {"markersize": 6.5}
        if arm == "rms_norm_small":
            own = {"marker": "o", "markerfacecolor": "none", "markeredgewidth": 1.2}
            return (
                figures.style(0)
                | own
                | {"linestyle": figures.LINES[2], "markersize": 4.5}
            )
        series = ("rms_norm", *DYT, "skip_init", "re_zero", "ngpt").index(arm)
        return figures.style(series) | {"markersize": 4.5}

    def draw(axis, arm, places, samples):
        band(axis, places, samples, style(arm), label=words[arm])

    ends = {arm: [_ends(record, arm, rate) for rate in rates] for arm in ARMS}
    for arm in ARMS:
        draw(top, arm, rates, ends[arm])
        curves = _runs(record, arm, _best(record, arm))
        draw(middle, arm, _moments(record), list(zip(*curves, strict=True)))
        if arm in LENGTHS:
            draw(bottom, arm, lengths, [_best_ends(record, arm, n) for n in lengths])
    diverged(top, rates, [(style(arm)["color"], ends[arm]) for arm in ARMS])
    dashed = dict(color=figures.MUTED, linewidth=1.2, linestyle=figures.LINES[1])
    for axis in (top, middle):
        axis.axhline(guess, marker="none", label=words["guess"], **dashed)
        axis.set_ylim(least - 0.04 * (guess - least), ceiling)
    name_axes(
        words,
        (top, "by_rate", "rate", "loss"),
        (middle, "by_step", "step", "loss"),
        (bottom, "by_length", "length", "loss"),
    )
    log_ticks(top, rates)
    log_ticks(bottom, lengths)
    figures.legend(figure)
    figures.footer(figure, record, words, words["band"])
    return figure
