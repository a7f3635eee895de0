"""What does BatchNorm do inside a decoder, against LayerNorm in the same one?

A small Pre-Norm decoder is trained on bytes of Python's standard library, with
the BatchNorm of the page (one mean and variance for each feature, over all
tokens of the batch) in the place of every norm. All batch sizes see the same
number of tokens, so small batches take more steps; as a control, BatchNorm with
the smallest batch is also trained for only as many steps as the second smallest.
The same held-out text is then scored

- with running statistics, as the model would be used (quantity `loss`; LayerNorm
  and RMSNorm have no other),
- with `exact` statistics, those of one large training batch at the final weights,
- with the statistics of its own batch, as in training (`loss_batch`),
- and again so (`loss_no_future`), but with every token that follows the predicting
  one replaced by other held-out text, once for each position.

What `loss_no_future` is above `loss_batch` the model owes to tokens that it could
not have seen; what `loss` is above `loss_no_future` it owes to the change of
statistics. `reach`: how far the log-probabilities at earlier positions move when
the last byte of a sequence changes. `fluctuation`: how far a batch's statistics
are from the running ones during training, in running standard deviations (mean) or
relative (variance); `training`: the loss in training, both in equal parts of the
steps. `shared`: of the variance at the input of a norm, the share
that the tokens of a sequence have in common (intraclass correlation). Padding: the
same real tokens, padded further and further (`pad_...`), with the padding pooled
into the statistics or masked, in models that were trained without padding, with
it pooled and with it masked.

A row holds one quantity of one run, at one norm (`place`) or of the whole model;
losses are in nats per byte, an infinite one or NaN is null.
"""

from functools import cache, partial

from scripts.measure.design import Design, Run
from scripts.measure.draw import band
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.fact_formatting import Found, apart, with_inf
from scripts.measure.records import Step
from scripts.measure.spread import integer, number

PARALLEL = True  # untimed steps share the cores
SEEDS = tuple(range(5))
METHOD = (
    "AdamW, weight decay 0.1, gradient norms clipped at 1, warm-up, then linear decay "
    "to zero; random pieces of the standard library's sources, the last tenth of each "
    "module held out; equal numbers of tokens for all batch sizes; for each batch "
    "size the same learning rates for every norm, the best by the median held-out "
    "loss with running statistics; same initial weights and data order for all norms"
)
SIZES = {
    "tiny": dict(
        d=8, layers=1, heads=1, context=8, batches=(1, 4), reference=4, tokens=64
    ),
    "small": dict(
        d=32,
        layers=2,
        heads=2,
        context=32,
        batches=(1, 4, 16, 64),
        reference=16,  # batch size of RMSNorm and of everything padded
        tokens=2**17,  # of one run, padding included
    ),
    "full": dict(
        d=128,
        layers=4,
        heads=4,
        context=128,
        batches=(1, 4, 16, 64),
        reference=16,
        tokens=3 * 2**19,
    ),
}
HELD_OUT = {"tiny": 8, "small": 256, "full": 256}  # sequences
LARGE = {"tiny": 8, "small": 512, "full": 512}  # sequences of the exact statistics
RATES = (1e-3, 4e-3, 1.6e-2, 6.4e-2)  # for every norm and batch size
WARM_UP = 0.1  # of all steps
MOMENTUM = 0.1  # of the running statistics, torch's default
BINS = {"tiny": 2, "small": 16, "full": 16}  # of what is followed over training
CHUNK = {"tiny": None, "small": 5, "full": None}  # runs evaluated at a time
PAD = 0  # a byte that no Python source holds


# The model ------------------------------------------------------------------


@cache
def classes():
    """(decoder, BatchNorm) as the page has them, made to be stacked.

    vmap cannot write the running statistics of a stack of models. Training never
    reads them, so the decoder hands the statistics of its batch out on request,
    and the running ones are moved outside, by the page's formula.
    """
    import torch

    from snippets.batch_norm_vs_layer_norm.norms import BatchNorm
    from snippets.rms_norm.small_decoder import SmallDecoder

    class StackedBatchNorm(BatchNorm):
        heard = None  # where the statistics go
        counted = None  # (batch, time), 1 at tokens that count, 0 at padding

        def statistics(self, tokens):
            if self.counted is None or not self.training:
                return super().statistics(tokens)
            # MaskedBatchNorm's x[mask] has no fixed shape; this is its equal.
            weights = self.counted.flatten()[:, None].to(tokens.dtype)
            n = weights.sum()
            mean = (weights * tokens).sum(0) / n
            var = (weights * (tokens - mean).square()).sum(0) / n
            self.track(mean, var * n / (n - 1))
            return mean, var

        def track(self, mean, unbiased_var):
            if self.heard is not None:
                self.heard.append(torch.stack((mean, unbiased_var)))

    class Decoder(SmallDecoder):
        def forward(self, tokens, counted=None, statistics=False):
            """Logits, or the statistics of every norm: (norms, 2, d)."""
            norms = [m for m in self.modules() if isinstance(m, StackedBatchNorm)]
            heard = [] if statistics else None
            for norm in norms:
                norm.heard, norm.counted = heard, counted
            logits = super().forward(tokens)
            for norm in norms:
                norm.heard = norm.counted = None
            return torch.stack(heard) if statistics else logits

    return Decoder, StackedBatchNorm


def fresh(norm: str, setting: dict, seed: int):
    """A model at initialization; its weights do not depend on the norm."""
    import torch

    from snippets.batch_norm_vs_layer_norm.norms import LayerNorm
    from snippets.rms_norm.reference import RMSNorm

    decoder, batch_norm = classes()
    kinds = {"LayerNorm": LayerNorm, "RMSNorm": RMSNorm, "BatchNorm": batch_norm}
    torch.manual_seed(seed)
    sizes = (setting[name] for name in ("d", "layers", "heads", "context"))
    return decoder(*sizes, norm=kinds[norm])


def running(models):
    """The running statistics of all runs: (runs, norms, 2, d)."""
    import torch

    found = [
        torch.stack((mean, models.buffers[name.replace("_mean", "_var")]), dim=1)
        for name, mean in models.buffers.items()
        if name.endswith("running_mean")
    ]
    return torch.stack(found, dim=1)


def move(models, statistics, momentum: float) -> None:
    """Move the running statistics of all runs towards those of a batch."""
    names = [name for name in models.buffers if name.endswith("running_mean")]
    for place, mean in enumerate(names):
        for index, name in enumerate((mean, mean.replace("_mean", "_var"))):
            old = models.buffers[name]
            old += momentum * (statistics[:, place, index] - old)


# Training -------------------------------------------------------------------


def masked_loss(model, text, counted, masked):
    """Mean over the tokens that count; the others are read as padding."""
    from torch.nn import functional as F

    inputs = text[:, :-1] * counted + PAD * ~counted
    logits = model(inputs, counted if masked else None)
    each = F.cross_entropy(
        logits.flatten(0, 1), text[:, 1:].flatten(), reduction="none"
    )
    return (each * counted.flatten()).sum() / counted.sum()


def statistics_of(model, text, counted=None, masked=False):
    """Statistics of every norm on the batch, (norms, 2, d)."""
    inputs = text[:, :-1]
    if counted is not None:
        inputs = inputs * counted + PAD * ~counted
    return model(inputs, counted if masked else None, statistics=True)


def batches(setting: dict, padding: str, batch: int):
    """data(step) for all runs, learning rate by learning rate, seed by seed."""
    import torch

    from scripts.measure.corpus import corpus, sample

    training, _ = corpus()
    context = setting["context"]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    generators = [torch.Generator().manual_seed(seed) for seed in SEEDS]
    rates = len(RATES)

    def data(step):
        found = [[sample(training, batch, context, g) for g in generators]]
        if padding != "none":
            places = torch.arange(context)
            low, high = context // 4, context + 1
            found.append(
                [
                    places < torch.randint(low, high, (batch, 1), generator=g)
                    for g in generators
                ]
            )
        return [torch.stack(each).repeat(rates, 1, 1).to(device) for each in found]

    return data


def steps_of(setting: dict, batch: int) -> int:
    """Training steps: every batch size sees the same number of tokens."""
    return setting["tokens"] // (batch * setting["context"])


def train_all(size: str, norm: str, padding: str, batch: int, steps: int):
    """All learning rates and seeds: (models, training losses, fluctuations).

    The losses are (bins, runs), the fluctuations (bins, runs, norms, 2) or None.
    """
    import torch

    from scripts.measure.corpus import loss_of
    from scripts.measure.together import Together, train, warm_up

    setting, masked = SIZES[size], padding == "masked"
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rates = [rate for rate in RATES for _ in SEEDS]
    plain = [fresh(norm, setting, s).to(device) for _ in RATES for s in SEEDS]
    models = Together(plain)
    draw, latest = batches(setting, padding, batch), []
    history, bins = [], [step * BINS[size] // steps for step in range(steps)]

    def data(step):
        latest[:] = draw(step)
        return latest

    def track(step, gradients):
        """What the page's BatchNorm does in the forward pass of this step."""
        hear = partial(statistics_of, masked=masked)
        new, old = models.losses(hear, *latest), running(models)
        mean, var = (new - old).unbind(2)  # each (runs, norms, d)
        scaled = torch.stack((mean / old[:, :, 1].sqrt(), var / old[:, :, 1]), dim=2)
        history.append(scaled.square().mean(dim=3).sqrt())
        move(models, new, MOMENTUM)

    def binned(each):
        places = torch.tensor(bins, device=device)
        return torch.stack([each[places == i].mean(0) for i in range(BINS[size])])

    losses = train(
        models,
        loss_of if padding == "none" else partial(masked_loss, masked=masked),
        data,
        steps,
        rates,
        schedule=warm_up(steps, max(1, round(WARM_UP * steps))),
        most=1.0,
        seen=track if norm == "BatchNorm" else None,
        weight_decay=0.1,
    )
    return models, binned(losses), binned(torch.stack(history)) if history else None


# Scores ---------------------------------------------------------------------


def held_out(size: str, batch: int, seed: int = 0):
    """The same held-out text for all, in batches: (batches, batch, context + 1)."""
    import torch

    from scripts.measure.corpus import corpus, sample

    fixed = torch.Generator().manual_seed(seed)
    text = sample(corpus()[1], HELD_OUT[size], SIZES[size]["context"], fixed)
    text = text.unflatten(0, (-1, batch))
    return text.cuda() if torch.cuda.is_available() else text


def nats(model, inputs, targets, counted=None):
    """Of every token, (batches, batch, time); each batch has its own statistics."""
    import torch
    from torch.nn import functional as F

    if counted is None:
        logits = torch.func.vmap(model)(inputs)
    else:
        logits = torch.func.vmap(model)(inputs, counted)
    return F.cross_entropy(logits.movedim(-1, 1), targets, reduction="none")


def loss_on(texts):
    return lambda model: nats(model, texts[..., :-1], texts[..., 1:]).mean()


def loss_without_future(texts, others):
    """Each position scored after all tokens behind it became those of others."""
    import torch

    def loss(model):
        context, total = texts.shape[-1] - 1, 0.0
        for t in range(context):
            inputs = torch.cat((texts[..., : t + 1], others[..., t + 1 : -1]), dim=-1)
            logits = torch.func.vmap(model)(inputs)[..., t, :]
            target = texts[..., t + 1, None]
            total = total - logits.log_softmax(-1).gather(-1, target).mean()
        return total / context

    return loss


def reach_on(texts):
    """How far (RMS, nats) a batch's first sequence moves before its last byte."""

    def reach(model):
        inputs, targets = texts[..., :-1], texts[..., 1:]
        changed = inputs.clone()
        changed[:, 0, -1] = (changed[:, 0, -1] + 1) % 256
        moved = nats(model, changed, targets) - nats(model, inputs, targets)
        return moved[:, 0, :-1].square().mean().sqrt()

    return reach


def shared_share(x):
    """Intraclass correlation of the tokens of a sequence; x is (sequences, time, d).

    One-way analysis of variance, feature by feature, then the mean over features.
    """
    time = x.shape[1]
    between = time * x.mean(dim=1).var(dim=0)
    within = x.var(dim=1).mean(dim=0)
    share = (between - within) / (between + (time - 1) * within).clamp(min=1e-30)
    return share.mean()


def shared_at_norms(model, texts) -> list[float]:
    """`shared_share` at the input of every norm, in eval mode."""
    import torch

    found = []
    norms = [branch.norm for branch in model.branches] + [model.norm]
    hooks = [
        norm.register_forward_pre_hook(
            lambda module, inputs: found.append(shared_share(inputs[0]).item())
        )
        for norm in norms
    ]
    with torch.no_grad():
        model.eval()(texts.flatten(0, 1)[:, :-1])
    for hook in hooks:
        hook.remove()
    return found


def padded(texts, real: int, length: int):
    """(inputs, targets, counted): `real` tokens, then padding up to `length`."""
    import torch

    counted = (torch.arange(length, device=texts.device) < real).expand(
        *texts.shape[:-1], length
    )
    return texts[..., :length] * counted, texts[..., 1 : length + 1], counted


def pad_scores(texts):
    """What padding does to the statistics and the scores of the same real tokens.

    For statistics of all tokens and of the real ones: (losses, moves), one each for
    1, 2 and 4 times the real length; last the shift of the means at every norm.
    """
    import torch

    def scores(model):
        real, found = (texts.shape[-1] - 1) // 4, []
        for masked in (False, True):
            each = []
            for length in (real, 2 * real, 4 * real):
                inputs, targets, counted = padded(texts, real, length)
                mask = counted if masked else None
                each.append(nats(model, inputs, targets, mask)[..., :real])
            losses = torch.stack([one.mean() for one in each])
            moves = [(one - each[0]).square().mean().sqrt() for one in each]
            found += [losses, torch.stack(moves)]
        hear = torch.func.vmap(partial(model, statistics=True))
        pooled, kept = hear(inputs), hear(inputs, counted)
        shift = (pooled - kept)[:, :, 0] / kept[:, :, 1].sqrt()
        return *found, shift.square().mean(dim=(0, 2)).sqrt()

    return scores


def chosen(models, runs):
    """Some of the runs as a stack of their own."""
    from scripts.measure.together import Together, alone

    return Together([alone(models, run) for run in runs])


def used(models):
    """The same runs in eval mode."""
    from scripts.measure.together import Together, alone

    return Together([alone(models, run).eval() for run in range(models.runs)])


def best_rate(rates, losses) -> float:
    """The rate with the least median loss; what is not finite counts as infinite."""
    from math import inf, isfinite
    from statistics import median

    found = {}
    for rate, loss in zip(rates, losses, strict=True):
        found.setdefault(rate, []).append(loss if isfinite(loss) else inf)
    return min(found, key=lambda rate: median(found[rate]))


def run(size: str, norm: str, padding: str, batch: int, steps: int) -> list[dict]:
    """Train all runs of a norm at a batch size; score all, the best rate closely."""
    import copy
    from math import isfinite

    import torch

    from scripts.measure.corpus import corpus, sample
    from scripts.measure.together import alone

    models, history, fluctuations = train_all(size, norm, padding, batch, steps)
    rates = [rate for rate in RATES for _ in SEEDS]
    texts, chunk = held_out(size, batch), CHUNK[size]
    rows = []

    def note(index, quantity, values, place=None):
        found = torch.as_tensor(values).flatten().tolist()
        rows.append(
            {
                "norm": norm,
                "padding": padding,
                "batch": batch,
                "steps": steps,
                "rate": rates[index],
                "seed": SEEDS[index % len(SEEDS)],
                "quantity": quantity,
                "place": place,
                "values": [value if isfinite(value) else None for value in found],
            }
        )

    def note_all(quantity, runs, found):
        for index, value in zip(runs, found, strict=True):
            note(index, quantity, value)

    everyone = range(models.runs)
    honest = used(models).losses(loss_on(texts), chunk=chunk)
    note_all("loss", everyone, honest)
    best = {best_rate(rates, honest.tolist())}
    if norm == "BatchNorm":
        as_trained = models.losses(loss_on(texts), chunk=chunk)
        note_all("loss_batch", everyone, as_trained)
        best.add(best_rate(rates, as_trained.tolist()))  # as it looks in training
    winners = [index for index in everyone if rates[index] in best]
    for index in winners:
        note(index, "training", history[:, index])
        for place, share in enumerate(shared_at_norms(alone(models, index), texts)):
            note(index, "shared", share, place)
    if norm != "BatchNorm":
        return rows

    exact = copy.deepcopy(models)
    large = sample(
        corpus()[0], LARGE[size], texts.shape[-1] - 1, torch.Generator().manual_seed(1)
    ).to(texts.device)
    hear = lambda model: statistics_of(model, large)  # noqa: E731
    move(exact, models.losses(hear, chunk=chunk), 1.0)
    note_all("loss_exact", everyone, used(exact).losses(loss_on(texts), chunk=chunk))

    stack = chosen(models, winners)
    for index in winners:
        for place, (mean, var) in enumerate(fluctuations[:, index].permute(1, 2, 0)):
            note(index, "fluctuation_mean", mean, place)
            note(index, "fluctuation_variance", var, place)
    if padding == "none":
        cut = loss_without_future(texts, held_out(size, batch, seed=1))
        note_all("loss_no_future", winners, stack.losses(cut))
        note_all("reach", winners, stack.losses(reach_on(texts)))
    if batch == SIZES[size]["reference"]:
        names = ("loss_pooled", "move_pooled", "loss_masked", "move_masked", "shift")
        for name, found in zip(names, stack.losses(pad_scores(texts)), strict=True):
            note_all(f"pad_{name}", winners, found)
    return rows


def measure(size: str) -> list[Step]:
    """One step trains all learning rates and seeds of a norm at a batch size."""
    setting = SIZES[size]
    reference = setting["reference"]
    first, second = setting["batches"][:2]
    cells = [
        (norm, "none", batch)
        for batch in setting["batches"]
        for norm in ("BatchNorm", "LayerNorm")
    ]
    cells.append(("RMSNorm", "none", reference))
    cells += [("BatchNorm", padding, reference) for padding in ("pooled", "masked")]
    cells = [(*cell, steps_of(setting, cell[2])) for cell in cells]
    cells.append(("BatchNorm", "none", first, steps_of(setting, second)))
    names = ("norm", "padding", "batch", "steps")
    return [
        Step(
            dict(zip(names, cell, strict=True)),
            partial(run, size, *cell),
            # Small batches are slow for their size, and so is tracking.
            cost=cell[3] * (2 + cell[2]) * (1.4 if cell[0] == "BatchNorm" else 1),
        )
        for cell in cells
    ]


# What the page says -------------------------------------------------------

NORMS = ("LayerNorm", "RMSNorm", "BatchNorm")
SCORES = {"loss": "running", "loss_exact": "exact", "loss_batch": "own"}
CUT = {"loss_no_future": "cut"}


def _rows(
    record, quantity, norm="BatchNorm", padding="none", short=False, **wanted
) -> list[dict]:
    """Rows of one kind; `short` is the control with fewer steps."""
    wanted |= {"quantity": quantity, "norm": norm, "padding": padding}
    setting = SIZES[record.size]
    return [
        row
        for row in record.select(**wanted)
        if (row["steps"] not in (None, steps_of(setting, row["batch"]))) == short
    ]


def _first(rows) -> list[float]:
    """The only value of each row; infinite where there is none."""
    return with_inf(row["values"][0] for row in rows)


def _best(record, norm, batch, padding="none", quantity="loss", short=False) -> float:
    """The learning rate with the least median of a score."""
    rows = _rows(record, quantity, norm, padding, short, batch=batch)
    return best_rate([row["rate"] for row in rows], _first(rows))


def _scores(
    record, quantity, norm, batch, padding="none", chosen_by="loss", short=False
) -> list[float]:
    """A score of all seeds at the learning rate that another score chose."""
    rate = _best(record, norm, batch, padding, chosen_by, short)
    return _first(_rows(record, quantity, norm, padding, short, batch=batch, rate=rate))


def _fluctuation(record, batch, place=None, quantity="fluctuation_mean") -> list[list]:
    """Over training, for each seed: at one norm, or the mean over all norms."""
    from statistics import fmean

    rate = _best(record, "BatchNorm", batch)
    rows = _rows(record, quantity, batch=batch, rate=rate)
    places = {row["place"] for row in rows} if place is None else {place}
    return [
        [
            fmean(values)
            for values in zip(
                *(
                    row["values"]
                    for row in rows
                    if row["seed"] == seed and row["place"] in places
                ),
                strict=True,
            )
        ]
        for seed in sorted({row["seed"] for row in rows})
    ]


def _batches(record) -> list[int]:
    return sorted({row["batch"] for row in record.rows})


def _ahead_from(record, batch) -> str:
    """How far training has come when BatchNorm's own loss falls below LayerNorm's.

    Medians over the seeds, from where they stay below; BatchNorm at the rate that is
    best in train mode.
    """
    from statistics import median

    def followed(norm, by):
        rate = _best(record, norm, batch, quantity=by)
        rows = _rows(record, "training", norm, batch=batch, rate=rate)
        parts = zip(*(row["values"] for row in rows), strict=True)
        return [median(with_inf(part)) for part in parts]

    own, layer = followed("BatchNorm", "loss_batch"), followed("LayerNorm", "loss")
    start = len(own)
    while start and own[start - 1] < layer[start - 1]:
        start -= 1
    return f"{100 * start / len(own):.0f}%"


def facts(record) -> dict[str, str]:
    from math import log
    from statistics import median

    setting = SIZES[record.size]
    batches, reference = _batches(record), setting["reference"]
    found = Found({name: str(setting[name]) for name in ("d", "layers", "context")})
    found |= {
        "seeds": str(len(record.provenance["seeds"])),
        "tokens": integer(setting["tokens"]),
        "rates": ", ".join(f"{rate:g}" for rate in RATES),
        "least": str(batches[0]),
        "most": str(batches[-1]),
        "reference": str(reference),
        "held_out": str(HELD_OUT[record.size]),
        "large": str(LARGE[record.size]),
        "uniform": number(log(256)),
    }

    names = {"least": batches[0], "second": batches[1], "most": batches[-1]}
    names["reference"] = reference
    for name, batch in names.items():
        found[f"steps_{name}"] = str(steps_of(setting, batch))
        layer = _scores(record, "loss", "LayerNorm", batch)
        found.median(f"layer_norm_{name}", layer, 3)
        found[f"layer_norm_rate_{name}"] = f"{_best(record, 'LayerNorm', batch):g}"
        # Twice: at the rate that is best when used, and in training.
        for prefix, by in (("", "loss"), ("trusting_", "loss_batch")):
            rate = _best(record, "BatchNorm", batch, quantity=by)
            found[f"{prefix}rate_{name}"] = f"{rate:g}"
            scores = {
                short: _scores(record, quantity, "BatchNorm", batch, chosen_by=by)
                for quantity, short in (SCORES | CUT).items()
            }
            for short, values in scores.items():
                found.median(f"{prefix}{short}_{name}", values, 3)
            running, own, cut = (scores[short] for short in ("running", "own", "cut"))
            for what, ours, theirs in (
                ("leak", cut, own),
                ("behind", running, layer),
                ("own_behind", own, layer),
                ("seems_ahead", layer, own),
            ):
                found.against(f"{prefix}{what}_{name}", ours, theirs)
            reach = _scores(record, "reach", "BatchNorm", batch, chosen_by=by)
            found.median(f"{prefix}reach_{name}", reach, 4)
        for what, which in (
            ("fluctuation", {}),
            ("fluctuation_variance", {"quantity": "fluctuation_variance"}),
        ):
            runs = _fluctuation(record, batch, **which)
            found.median(f"{what}_{name}", [values[-1] for values in runs])
        expected = (batch * setting["context"]) ** -0.5
        found[f"independent_{name}"] = number(expected)
    # The smallest batch with the second smallest's number of steps.
    found["second"] = str(batches[1])
    for prefix, by in (("short_", "loss"), ("short_trusting_", "loss_batch")):
        cut, own = (
            _scores(record, q, "BatchNorm", batches[0], chosen_by=by, short=True)
            for q in ("loss_no_future", "loss_batch")
        )
        found.against(f"{prefix}leak", cut, own)
    found["ahead_from"] = _ahead_from(record, batches[0])
    for norm in ("BatchNorm", "LayerNorm"):
        runs = [
            row
            for padding in ("none", "pooled", "masked")
            for row in _rows(record, "loss", norm, padding)
        ]
        bad = sum(value > log(256) for value in _first(runs))
        short = norm.lower().replace("norm", "_norm")
        found[f"{short}_runs"] = str(len(runs))
        found[f"{short}_diverged"] = str(bad)
    rms = _scores(record, "loss", "RMSNorm", reference)
    layer = _scores(record, "loss", "LayerNorm", reference)
    found.against("rms_norm_behind", rms, layer)

    for word, batch in (("shared", reference), ("shared_alone", batches[0])):
        rate, places = _best(record, "BatchNorm", batch), {}
        for row in _rows(record, "shared", "BatchNorm", batch=batch, rate=rate):
            places.setdefault(row["place"], []).append(row)
        first, *rest = (median(_first(places[place])) for place in sorted(places))
        found[f"{word}_first"] = f"{100 * first:.0f}%"
        found[f"{word}_least"] = f"{100 * min(rest):.0f}%"
        found[f"{word}_most"] = f"{100 * max(rest):.0f}%"

    for padding in ("none", "pooled"):
        rate = _best(record, "BatchNorm", reference, padding)
        wanted = dict(padding=padding, batch=reference, rate=rate)
        found.median(
            f"padded_{padding}",
            _scores(record, "loss", "BatchNorm", reference, padding),
            3,
        )
        rows = _rows(record, "pad_loss_pooled", **wanted)
        for place, share in enumerate((0, 50, 75)):
            values = [row["values"][place] for row in rows]
            found.median(f"{padding}_loss_pooled_{share}", values, 3)
        exact = _scores(record, "loss_exact", "BatchNorm", reference, padding)
        found.median(f"padded_exact_{padding}", exact, 3)
    padded = [
        _scores(record, "loss", "BatchNorm", reference, padding)
        for padding in ("pooled", "masked")
    ]
    found.against("pooled_behind_masked", *padded)
    return found


def _design_runs(record) -> list[Run]:
    """Losses in use; padded trainings and the shorter control are arms of their own."""
    setting = SIZES[record.size]
    runs = []
    for row in record.select(quantity="loss"):
        arm = row["norm"]
        if row["padding"] != "none":
            arm = row["padding"]
        elif row["steps"] != steps_of(setting, row["batch"]):
            arm = "short"
        runs.append(
            Run(
                arm,
                row["seed"],
                cell=(row["batch"], row["steps"]),
                rate=row["rate"],
                width=setting["d"],
                steps=row["steps"],
                loss=row["values"][0],
            )
        )
    return runs


DESIGN = Design(
    says=("after_training", "differences"),
    arms=("LayerNorm", "RMSNorm", "BatchNorm", "short", "pooled", "masked"),
    runs=_design_runs,
    **design_words(__file__),
)

WORDS = figure_words(__file__)


def plot(record, words):
    from math import isfinite, log, nan
    from statistics import median

    from scripts.measure import figures

    setting, batches = SIZES[record.size], _batches(record)
    reference = setting["reference"]
    figure, axes = figures.new_figure(words, record, rows=2, height=7.2)
    by_batch, single = axes
    scores = SCORES | CUT

    def line(axis, places, runs, series, label, hollow=False):
        """Median and range; runs is one list of values for each place."""
        drawn = figures.style(series) | {"label": label}
        kept = [[v for v in values if isfinite(v)] for values in runs]
        if hollow:
            drawn |= {"markerfacecolor": "none", "markeredgewidth": 1.2}
            axis.plot(places, [median(v) if v else None for v in kept], **drawn)
        else:
            band(axis, places, [v or [nan] for v in kept], drawn, alpha=0.15)

    layer = {b: _scores(record, "loss", "LayerNorm", b) for b in batches}
    by_batch.axhline(
        0,
        color=figures.MUTED,
        linewidth=1.2,
        linestyle=figures.LINES[2],
        label=words["layer_norm"],
    )
    for series, (quantity, short) in enumerate(scores.items()):
        runs = [
            apart(_scores(record, quantity, "BatchNorm", batch), layer[batch])
            for batch in batches
        ]
        line(by_batch, batches, runs, series, words[short], short in ("exact", "cut"))
    rms = apart(_scores(record, "loss", "RMSNorm", reference), layer[reference])
    drawn = {"color": figures.INK, "marker": "D", "linestyle": "none", "markersize": 7}
    by_batch.plot([reference], [median(rms)], label=words["rms_norm"], **drawn)
    by_batch.set_xscale("log", base=2)
    by_batch.set_xticks(batches, [str(batch) for batch in batches])
    by_batch.minorticks_off()
    by_batch.set_xlabel(words["batch"])
    by_batch.set_ylabel(words["apart"])

    least = batches[0]
    order = ("loss_batch", "loss_no_future", "loss_exact", "loss")
    for series, (by, name) in enumerate(
        (("loss", "honest"), ("loss_batch", "trusting"))
    ):
        drawn = figures.style(series) | {"linestyle": "none"}
        heights, middles = [], []
        for row, quantity in enumerate(order):
            values = _scores(record, quantity, "BatchNorm", least, chosen_by=by)
            values = [v for v in values if isfinite(v)]
            if not values:
                continue
            heights.append(row + 0.3 * series - 0.15)
            middles.append(median(values))
            single.plot(
                [min(values), max(values)],
                heights[-1:] * 2,
                color=drawn["color"],
                marker="none",
                linestyle="-",
            )
        single.plot(middles, heights, label=words[name], **drawn)
    lines = ((median(layer[least]), 0, "layer_norm"), (log(256), 2, "uniform"))
    for place, dashes, name in lines:
        style = dict(
            color=figures.MUTED, linewidth=1.2, linestyle=figures.LINES[dashes]
        )
        single.axvline(place, label=words[name], **style)
    single.set_yticks(range(4), [words[f"{scores[q]}_short"] for q in order])
    single.set_ylim(3.5, -0.5)
    single.set_xscale("log")
    single.set_xticks((2, 3, 5, 10, 20), ("2", "3", "5", "10", "20"))
    single.minorticks_off()
    single.set_xlabel(words["log_loss"])

    for axis, title in (
        (by_batch, "by_batch"),
        (single, "single"),
    ):
        columns = 2
        handles, labels = axis.get_legend_handles_labels()
        lines = -(-len(handles) // columns)
        figures.legend(axis, handles, labels, columns=columns)
        axis.set_title(words[title], pad=6 + 17 * lines)
    figures.footer(figure, record, words, words["band"])
    return figure
