"""How far do attention logits grow in training, and what holds them back?

A small Pre-Norm decoder is trained on bytes of Python's standard library at
learning rates from modest to absurd, with five kinds of attention: plain;
QK-Norm (RMSNorm with a gain on each head's queries and keys, before RoPE);
attention logits soft-capped at Gemma 2's 50; both; and plain attention with
QK-Clip after every optimizer step, at Kimi K2's threshold of 100. Dehghani et
al. (2023) and Wortsman et al. (2023) describe the growth and the cure, Zhai et
al. (2023) the entropy that goes with it.

All kinds start from the same matrices and see the same text. There is no weight
decay: only the loss holds the matrices back. (Wortsman et al. take 1e-4 of the
weights a step at most, which is little in so few steps.)

A row holds one quantity of one run: `values` are one for each of the moments,
on the same held-out text. `largest_logit` is the largest that the causal mask
lets through, over layers and heads, before any cap; `entropy` and
`least_entropy` are the attention's entropy over that of uniform attention,
averaged over tokens, layers and heads, and that of the sharpest head; `bound`
is what the gains of QK-Norm allow. `clipped` is one number, the share of
(step, layer, head) in which QK-Clip acted.
"""

from functools import cache, partial

from scripts.measure.design import Design, Run
from scripts.measure.draw import band, level, log_ticks, name_axes
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.fact_formatting import Found, best, with_inf
from scripts.measure.records import Step
from scripts.measure.spread import integer

METHOD = (
    "AdamW, betas 0.9 and 0.95, no weight decay, gradients clipped at norm 1, warm-up "
    "over a tenth of the steps, then linear decay to zero; random pieces of the "
    "standard library's sources, the last tenth of each module held out; matrices "
    "drawn with variance 1 / fan-in, embeddings with variance 1; RMSNorm everywhere; "
    "the same initial matrices, text and seeds for all kinds of attention and all "
    "learning rates"
)
SEEDS = tuple(range(5))
PARALLEL = True
ARMS = ("plain", "qk_norm", "soft_cap", "both", "qk_clip")
CAP = 50.0  # Gemma 2
TAU = 100.0  # Kimi K2
RATES = (3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)
SIZES = {
    "tiny": dict(d=16, layers=2, heads=2, time=8, batch=2, steps=4, texts=4),
    "small": dict(d=32, layers=4, heads=2, time=32, batch=8, steps=300, texts=64),
    "full": dict(d=128, layers=6, heads=4, time=128, batch=16, steps=1500, texts=64),
}
ALL_RATES_AT_ONCE = ("tiny", "full")  # a GPU has room for them
MOMENTS = (0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1)
VOCABULARY = 256


@cache
def classes():
    """Attention with the cap, and the pages' decoder with its attention logits."""
    import torch
    from torch import Tensor

    from snippets.pre_norm_vs_post_norm.decoder import Decoder
    from snippets.qk_norm.attention import Attention
    from snippets.soft_capping.attention import capped_attention

    class CappedAttention(Attention):
        def forward(self, x: Tensor) -> Tensor:
            q, k = self.queries_keys(x)
            v = self.split(self.value(x))
            y = capped_attention(q, k, v, CAP, scale=1.0)
            return self.output(y.transpose(1, 2).flatten(start_dim=2))

    class WatchedDecoder(Decoder):
        """With watch, also gives (layers, batch, heads, time, time) logits."""

        def forward(self, tokens: Tensor, watch: bool = False):
            x, seen = self.embedding(tokens), []
            for i, block in enumerate(self.blocks):
                if watch and i % 2 == 0:  # before mask and cap
                    seen.append(block.sublayer.logits(block.norm(x)))
                x = block(x)
            y = self.head(self.norm(x))
            return (y, torch.stack(seen)) if watch else y

    return CappedAttention, WatchedDecoder


def fresh(arm: str, size: dict, seed: int):
    """A decoder with one of the kinds of attention."""
    from snippets.pre_norm_vs_post_norm.decoder import initialize
    from snippets.qk_norm.attention import Attention
    from snippets.rms_norm.reference import RMSNorm

    capped, decoder = classes()
    d, heads = size["d"], size["heads"]
    kind = capped if arm in ("soft_cap", "both") else Attention
    norm = RMSNorm if arm in ("qk_norm", "both") else None
    model = decoder(d, size["layers"], heads, VOCABULARY)
    for block in model.blocks[0::2]:
        block.sublayer = kind(d, heads, norm=norm)
    return initialize(model, seed)


def largest_logits(model, text):
    """Of each head in the forward pass that predicts the text: (layers, heads)."""
    import torch

    from snippets.qk_norm.attention import largest_logit

    _, logits = model(text[:, :-1], watch=True)
    return torch.stack([largest_logit(layer) for layer in logits])


def watched(model, text, capped: bool) -> tuple:
    """(loss, largest logit, mean entropy, the sharpest head's), all scalars."""
    import torch
    from torch.nn import functional as F

    from snippets.qk_norm.attention import largest_logit
    from snippets.qk_norm.entropy import attention_entropy
    from snippets.soft_capping.reference import soft_cap

    y, logits = model(text[:, :-1], watch=True)
    loss = F.cross_entropy(y.flatten(0, 1), text[:, 1:].flatten())
    largest = torch.stack([largest_logit(layer) for layer in logits]).amax()
    time = logits.shape[-1]
    future = torch.ones(time, time, dtype=torch.bool, device=text.device).triu(1)
    seen = soft_cap(logits, CAP) if capped else logits
    entropy = attention_entropy(seen.masked_fill(future, -torch.inf))
    uniform = torch.arange(1, time + 1, device=text.device).log().mean()
    heads = entropy.mean(dim=(1, 3)) / uniform  # (layers, heads)
    return loss, largest, heads.mean(), heads.amin()


def gain_bound(model, size: dict):
    """The largest logit that the gains of one model's QK-Norm allow."""
    import contextlib
    import io

    import torch

    with contextlib.redirect_stdout(io.StringIO()):  # it prints the page's table
        from snippets.qk_norm.bound import logit_bound

    bounds = []
    for i in range(0, 2 * size["layers"], 2):
        name = f"blocks.{i}.sublayer"
        gains = [model[f"{name}.{part}_norm.gain"] for part in ("query", "key")]
        bounds.append(logit_bound(*gains, rotary=True))
    return torch.stack(bounds).amax()


def clip_heads(parameters, largest, tau: float = TAU):
    """snippets/qk_norm/clip.py on stacked parameters, in place.

    largest is (runs, layers, heads). Returns how many heads were clipped in each
    run: (runs,).
    """
    import torch

    factors = torch.where(largest > tau, tau / largest, torch.ones_like(largest))
    runs, layers, heads = largest.shape
    for layer in range(layers):
        root = factors[:, layer].sqrt()[:, :, None, None]
        for part in ("query", "key"):
            weight = parameters[f"blocks.{2 * layer}.sublayer.{part}.weight"]
            weight.view(runs, heads, -1, weight.shape[-1]).mul_(root)
    return (largest > tau).sum(dim=(1, 2))


def moments(size: dict) -> list[int]:
    """Numbers of steps after which the runs are looked at."""
    return sorted({round(share * size["steps"]) for share in MOMENTS})


def texts(size: dict):
    """(training bytes, held-out pieces); the pieces are the same for all."""
    import torch

    from scripts.measure.corpus import corpus, sample

    training, held_out = corpus()
    generator = torch.Generator().manual_seed(1000)
    return training, sample(held_out, size["texts"], size["time"], generator)


def train(arm: str, rates: tuple, size: dict, tau: float = TAU) -> tuple:
    """Train all seeds at some rates: (models, what was seen, heads clipped).

    What was seen is name -> one (runs,) tensor for each moment. Runs are in the
    order of the rates, then of the seeds.
    """
    import torch

    from scripts.measure import together
    from scripts.measure.corpus import loss_of, sample

    device = "cuda" if torch.cuda.is_available() else "cpu"
    training, held_out = texts(size)
    models = [fresh(arm, size, seed).to(device) for _ in rates for seed in SEEDS]
    models = together.Together(models)
    held_out = held_out.to(device).expand(models.runs, -1, -1)
    generators = [torch.Generator().manual_seed(seed) for seed in SEEDS]
    runs = [rate for rate in rates for _ in SEEDS]
    optimizer = together.AdamW(
        models.parameters, runs, betas=(0.9, 0.95), weight_decay=0.0
    )
    steps, looks = size["steps"], moments(size)
    factor = together.warm_up(steps, max(1, round(0.1 * steps)))
    look = partial(watched, capped=arm in ("soft_cap", "both"))
    seen, clipped = {}, torch.zeros(models.runs, dtype=torch.long, device=device)

    def note(name, values):
        seen.setdefault(name, []).append(values.double().cpu())

    for step in range(steps + 1):
        if step in looks:
            names = ("loss", "largest_logit", "entropy", "least_entropy")
            for name, values in zip(names, models.losses(look, held_out), strict=True):
                note(name, values)
            if arm in ("qk_norm", "both"):
                bounds = [gain_bound(models.state(i), size) for i in range(models.runs)]
                note("bound", torch.stack(bounds))
        if step == steps:
            break
        pieces = [sample(training, size["batch"], size["time"], g) for g in generators]
        text = torch.stack(pieces).to(device).repeat(len(rates), 1, 1)
        if arm == "qk_clip":
            largest = models.losses(largest_logits, text)
        _, gradients = models.gradients(loss_of, text)
        together.clip(gradients, 1.0)
        optimizer.step(gradients, factor(step))
        if arm == "qk_clip":
            clipped += clip_heads(models.parameters, largest, tau)
    return models, seen, clipped


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


def trained(arm: str, rates: tuple, size: dict) -> list[dict]:
    """The rows of all seeds of one kind of attention at some rates."""
    import torch

    _, seen, clipped = train(arm, rates, size)
    runs = [(rate, seed) for rate in rates for seed in SEEDS]
    rows = [
        row(arm, *run, quantity, values)
        for quantity, looks in seen.items()
        for run, values in zip(runs, torch.stack(looks, dim=1).tolist(), strict=True)
    ]
    if arm == "qk_clip":
        acted = clipped / (size["steps"] * size["layers"] * size["heads"])
        for run, share in zip(runs, acted.tolist(), strict=True):
            rows.append(row(arm, *run, "clipped", [share]))
    return rows


def frequencies(size: dict) -> list[dict]:
    """The held-out loss of predicting each byte by its frequency in training."""
    training, held_out = texts(size)
    counts = training.bincount(minlength=VOCABULARY).double() + 1
    chances = (counts / counts.sum()).log()
    loss = -chances[held_out[:, 1:]].mean().item()
    return [row(None, None, None, "frequency_loss", [loss])]


def measure(size: str) -> list[Step]:
    """One step trains all seeds of one kind of attention at one or all rates."""
    setting = SIZES[size]
    groups = [RATES] if size in ALL_RATES_AT_ONCE else [(rate,) for rate in RATES]
    cost = setting["steps"] * len(groups[0])
    return [
        Step(
            {"arm": arm, "rates": list(rates)},
            partial(trained, arm, rates, setting),
            cost=cost * (1.35 if arm == "qk_clip" else 1.0),
        )
        for rates in groups
        for arm in ARMS
    ] + [
        Step({"loss": "byte frequencies"}, partial(frequencies, setting), cost=1.0),
    ]


# What the page says -------------------------------------------------------

# Rates that facts name by a word.
NAMED = {
    "lowest": 3e-3,
    "low": 1e-2,
    "modest": 3e-2,
    "high": 1e-1,
    "higher": 3e-1,
    "highest": 1.0,
}


def _runs(record, quantity: str, arm: str, rate: float) -> list[list]:
    """The values of each seed, in the order of the seeds; no number is infinity."""
    return [
        with_inf(row["values"])
        for row in record.rows
        if (row["quantity"], row["arm"], row["rate"]) == (quantity, arm, rate)
    ]


def _last(record, quantity: str, arm: str, rate: float) -> list[float]:
    return [values[-1] for values in _runs(record, quantity, arm, rate)]


def _capped_losses(record, arm: str, rate: float) -> list[float]:
    """Final losses, none above that at initialization."""
    return [min(run[-1], run[0]) for run in _runs(record, "loss", arm, rate)]


def _sensitivities(record, arm: str) -> list[float]:
    """Per seed, the mean over the rates of how far the loss is above the best."""
    found = []
    for losses in zip(*(_capped_losses(record, arm, r) for r in RATES), strict=True):
        found.append(sum(losses) / len(losses) - min(losses))
    return found


def _best(record, arm: str) -> float:
    return best(RATES, lambda rate: _last(record, "loss", arm, rate))


def _large(value: float) -> str:
    """Two digits: 1.8, 85, 1800, 18,000."""
    return integer(float(f"{value:.2g}")) if value >= 10 else f"{value:.1f}"


def _percent(share: float) -> str:
    value = 100 * share
    if value >= 10:
        return f"{value:.0f}%"
    return f"{value:.1f}%" if value >= 0.1 else "< 0.1%"


def facts(record) -> dict[str, str]:
    from statistics import median

    size = SIZES[record.size]
    (frequency,) = record.select(quantity="frequency_loss")[0]["values"]
    seeds, sizes = len(record.provenance["seeds"]), ("d", "layers", "heads")
    found = Found(
        {name: str(size[name]) for name in (*sizes, "time", "batch", "steps")}
    )
    found |= {
        "seeds": str(seeds),
        "runs_all": str(seeds * len(RATES) * len(ARMS)),
        "width": str(size["d"] // size["heads"]),
        "held_out": integer(size["texts"] * size["time"]),
        "rates": ", ".join(f"{rate:g}" for rate in RATES),
        "cap": f"{CAP:g}",
        "tau": f"{TAU:g}",
        "frequency_loss": f"{frequency:.2f}",
    }
    found |= {f"rate_{word}": f"{rate:g}" for word, rate in NAMED.items()}

    for arm in ARMS:
        last = {rate: _last(record, "loss", arm, rate) for rate in RATES}
        every = [loss for losses in last.values() for loss in losses]
        found[f"{arm}_diverged"] = str(sum(not loss < frequency for loss in every))
        rate, sensitivities = _best(record, arm), _sensitivities(record, arm)
        found[f"{arm}_best_rate"] = f"{rate:g}"
        found.median(f"{arm}_best_loss", last[rate])
        found.median(f"{arm}_sensitivity", sensitivities)
        others = [other for other in ("plain", "qk_norm") if other != arm]
        for other in others:
            theirs = _last(record, "loss", other, _best(record, other))
            found.against(f"{arm}_best_minus_{other}", last[rate], theirs)
            theirs = _sensitivities(record, other)
            found.against(f"{arm}_sensitivity_minus_{other}", sensitivities, theirs)
        for word, rate in NAMED.items():
            losses = last[rate]
            found.median(f"{arm}_loss_{word}", losses)
            for other in others:
                theirs = _last(record, "loss", other, rate)
                found.against(f"{arm}_minus_{other}_{word}", losses, theirs, 2)
            peaks = [max(run) for run in _runs(record, "largest_logit", arm, rate)]
            found[f"{arm}_logit_{word}"] = _large(median(peaks))
            for quantity in ("entropy", "least_entropy"):
                shares = _last(record, quantity, arm, rate)
                found[f"{arm}_{quantity}_{word}"] = _percent(median(shares))
            if arm == "qk_norm":
                bounds = [max(run) for run in _runs(record, "bound", arm, rate)]
                found[f"qk_norm_bound_{word}"] = _large(median(bounds))
            if arm == "qk_clip":
                acted = _last(record, "clipped", arm, rate)
                found[f"qk_clip_clipped_{word}"] = _percent(median(acted))
    found["diverged_all"] = str(sum(int(found[f"{arm}_diverged"]) for arm in ARMS))
    starts = [run[0] for run in _runs(record, "bound", "qk_norm", RATES[0])]
    found["bound_start"] = _large(median(starts))
    return found


def _design_runs(record) -> list[Run]:
    size = SIZES[record.size]
    return [
        Run(
            row["arm"],
            row["seed"],
            rate=row["rate"],
            width=size["d"],
            steps=size["steps"],
            loss=row["values"][-1],
        )
        for row in record.select(quantity="loss")
    ]


DESIGN = Design(
    says=("after_training", "differences"),
    arms=ARMS,
    runs=_design_runs,
    **design_words(__file__),
)

WORDS = figure_words(__file__)


def plot(record, words):
    from matplotlib.ticker import NullLocator

    from scripts.measure import figures

    steps = moments(SIZES[record.size])
    figure, (top, middle, bottom) = figures.new_figure(
        words, record, rows=3, height=7.2
    )

    for arm in ARMS:
        drawn = figures.style(arm) | {"markersize": 4.5, "label": words[arm]}
        losses = [_last(record, "loss", arm, rate) for rate in RATES]
        band(top, RATES, losses, drawn)
        for axis, quantity, factor in (
            (middle, "largest_logit", 1),
            (bottom, "entropy", 100),
        ):
            runs = _runs(record, quantity, arm, NAMED["high"])
            looks = zip(*runs, strict=True)
            looks = [[factor * value for value in values] for values in looks]
            band(axis, steps, looks, drawn)
    for row in record.rows:
        if row["quantity"] == "frequency_loss":
            (height,) = row["values"]
            level(top, RATES[0], height, words["frequency"])
    top.set_ymargin(0.08)
    log_ticks(top, RATES)
    middle.set_yscale("log")
    figures.plain_log(middle.yaxis)
    middle.yaxis.set_minor_locator(NullLocator())
    bottom.set_ylim(0, 100)
    name_axes(
        words,
        (top, "by_rate", "rate", "loss"),
        (middle, "largest", "step", "logit"),
        (bottom, "entropy", "step", "share"),
    )
    figures.legend(figure, columns=3)
    figures.footer(figure, record, words, words["band"])
    return figure
