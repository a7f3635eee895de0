"""How alike do the tokens of a fresh model become, and which gradients die of it?

Decoders before any step, in every placement of the norms that the site has a block
for. Behind each layer: the mean cosine of two tokens of one sequence, that of two
sequences (their mean tokens), the distance from equal tokens, the stream's RMS,
the entropy of the attention weights. Backwards, from the loss of the next token:
gradients of the query, key and value matrices and of the last feed-forward matrix.
And what the last token's output depends on: the first token's share of its squared
gradient with respect to the embedded input.

Settings. decoder: the decoder of the pages, with LayerNorm, on random tokens. bytes:
the same on real text. no_attention: its attention branches taken out.
attention_only: its feed-forward branches taken out. equal_weights: queries of zero
and ReLU, the set-up of the derivation. A setting queries_x_N is the decoder with
queries N times as large.

In float64: 1 - cosine falls below what float32 resolves. A row holds one quantity of
one run; `values` has one number for each layer in `at` (0: the embedding, where the
quantity has it), null where it is no number.
"""

from functools import partial

from scripts.measure.design import Design, Run
from scripts.measure.draw import band, log_ticks, name_axes
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.records import Step
from scripts.measure.spread import number

PARALLEL = True
SEEDS = tuple(range(8))
METHOD = (
    "at initialization; every matrix drawn with variance 1 / fan-in, embeddings with "
    "variance 1, LayerNorm in all arms; DeepNorm with its alpha and beta; float64; "
    "cosines over all pairs of different tokens of a sequence; Frobenius norms of the "
    "gradient of the mean cross-entropy of the next token"
)
ARMS = (
    "post",
    "pre",
    "sandwich",
    "branch_output",
    "branch_output_qk",
    "deepnorm",
    "normformer",
    "scaled",
    "rezero",
    "no_norm",
    "no_residual",
)
SETTINGS = ("equal_weights", "no_attention")  # besides decoder, at every width
NARROW = ("bytes", "attention_only")  # at the first width, and the larger queries
SIZES = {
    "tiny": dict(widths=((8, 2), (16, 2)), layers=3, batch=2, time=5, queries=(4,)),
    "small": dict(
        widths=((64, 4), (256, 4)), layers=48, batch=2, time=32, queries=(4, 16)
    ),
    "full": dict(
        widths=((256, 4), (1024, 16)), layers=96, batch=8, time=128, queries=(4, 16)
    ),
}
AT = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
CONTROLLED = ("post", "pre")  # what the other settings are run for
VOCABULARY = 256
QUANTITIES = (
    "cosine",
    "between",
    "distance",
    "rms",
    "entropy",
    "first_token",
    "grad_query",
    "grad_key",
    "grad_value",
    "grad_ffn",
)


def plain(arm: str, d: int, heads: int, layers: int):
    """The arm's decoder; its matrices are to be drawn."""
    from torch import nn

    from snippets.deepnorm.block import DeepNorm
    from snippets.deepnorm.coefficients import coefficients
    from snippets.normformer.stack import Stack
    from snippets.pre_norm_vs_post_norm.blocks import PostNormBlock, PreNormBlock
    from snippets.pre_norm_vs_post_norm.decoder import Decoder
    from snippets.sandwich_norm.attention import CausalAttention
    from snippets.sandwich_norm.blocks import ReorderedNorm, SandwichNorm
    from snippets.without_normalization.residual import ScaledResidual

    if arm == "normformer":
        model = Stack(layers, d, heads)
        model.embedding = nn.Embedding(VOCABULARY, d)
        model.head = nn.Linear(d, VOCABULARY, bias=False)
        return model
    alpha = coefficients(decoder_layers=layers)["decoder"].alpha
    blocks = {
        "post": PostNormBlock,
        "pre": PreNormBlock,
        "sandwich": lambda branch, norm: SandwichNorm(branch, d, nn.LayerNorm),
        "branch_output": lambda branch, norm: ReorderedNorm(branch, d, nn.LayerNorm),
        "deepnorm": lambda branch, norm: DeepNorm(branch, d, alpha),
        # LN(x + f / sqrt(2 L)): a factor in front of a norm's whole input is no change
        "scaled": lambda branch, norm: DeepNorm(branch, d, (2 * layers) ** 0.5),
        "rezero": lambda branch, norm: ScaledResidual(branch, 0.0),
        "no_norm": lambda branch, norm: ScaledResidual(branch, 1.0),
        "no_residual": lambda branch, norm: nn.Sequential(branch, norm),
    }
    blocks["branch_output_qk"] = blocks["branch_output"]
    model = Decoder(
        d,
        layers,
        heads,
        VOCABULARY,
        block=blocks[arm],
        norm=nn.LayerNorm,
        final_norm=arm in ("pre", "sandwich", "branch_output", "branch_output_qk"),
    )
    if arm == "branch_output_qk":
        for block in model.blocks[0::2]:
            block.branch = CausalAttention(d, heads, qk_norm=True)
    return model


def branches(model) -> list[tuple]:
    """(attention or None, feed-forward or None) of each layer."""
    from torch import nn

    from snippets.normformer.block import Block

    found = []
    for block in model.blocks:
        if isinstance(block, Block):
            found.append((block.attention, block.ffn))
            continue
        inner = block[0] if isinstance(block, nn.Sequential) else block
        for name in ("sublayer", "branch", "body"):
            inner = getattr(inner, name, inner)
        attends = hasattr(inner, "heads")
        if attends or not found or found[-1][1] is not None:
            found.append((inner, None) if attends else (None, inner))
        else:
            found[-1] = (found[-1][0], inner)
    return found


def parts(attention) -> dict:
    """Matrices of an attention branch by role: (parameter, rows)."""
    for name in ("reader", "qkv"):
        if hasattr(attention, name):
            weight = getattr(attention, name).weight
            d = weight.shape[1]
            roles = ("query", "key", "value")
            return {
                role: (weight, slice(i * d, i * d + d)) for i, role in enumerate(roles)
            }
    return {
        role: (getattr(attention, role).weight, slice(None))
        for role in ("query", "key", "value")
    }


def last_matrix(feed_forward):
    return getattr(feed_forward, "writer", None) or feed_forward.fc2


def fresh(arm: str, setting: str, d: int, heads: int, layers: int, seed: int):
    """A model at initialization, float64."""
    import torch
    from torch import nn

    from snippets.deepnorm.coefficients import coefficients
    from snippets.pre_norm_vs_post_norm.decoder import initialize

    model = initialize(plain(arm, d, heads, layers), seed)
    with torch.no_grad():
        for attention, feed_forward in branches(model):
            matrix = parts(attention)
            if arm == "deepnorm":
                beta = coefficients(decoder_layers=layers)["decoder"].beta
                weight, rows = matrix["value"]
                weight[rows] *= beta
                for layer in (
                    attention.writer,
                    feed_forward.reader,
                    feed_forward.writer,
                ):
                    layer.weight.mul_(beta)
            factor = 1.0
            if setting == "equal_weights":
                factor = 0.0
                feed_forward.activation = nn.ReLU()
            elif setting.startswith("queries_x_"):
                factor = float(setting.removeprefix("queries_x_"))
            weight, rows = matrix["query"]
            weight[rows] *= factor
    if setting == "no_attention":
        model.blocks = model.blocks[1::2]
    elif setting == "attention_only":
        model.blocks = model.blocks[0::2]
    return model.double()


def text_for(setting: str, size: dict, seed: int):
    """(batch, time + 1) tokens: uniform draws, or bytes of real text."""
    import torch

    from scripts.measure.corpus import corpus, sample

    generator = torch.Generator().manual_seed(1000 + seed)
    if setting == "bytes":
        return sample(corpus()[0], size["batch"], size["time"], generator)
    shape = (size["batch"], size["time"] + 1)
    return torch.randint(VOCABULARY, shape, generator=generator)


def entropy(attention, x) -> float:
    """Of the attention weights, over that of equal weights; from the second token."""
    import torch

    with torch.no_grad():
        if hasattr(attention, "queries_and_keys"):
            q, k = attention.queries_and_keys(x)
        else:
            layer = getattr(attention, "reader", None) or attention.qkv
            q, k = (
                part.unflatten(-1, (attention.heads, -1)).transpose(1, 2)
                for part in layer(x).chunk(3, dim=-1)[:2]
            )
        logits = q @ k.mT * q.shape[-1] ** -0.5
        hidden = torch.ones_like(logits[0, 0]).triu(1).bool()
        weights = logits.masked_fill(hidden, -torch.inf).softmax(dim=-1)
        sizes = torch.special.entr(weights).sum(dim=-1)  # batch, head, time
        seen = torch.arange(1, x.shape[1] + 1, dtype=x.dtype)
        return (sizes[..., 1:] / seen[1:].log()).mean().item()


def examine(model, text) -> tuple[list[int], dict[str, list[float]]]:
    """(layers looked at, every quantity of one model)."""
    import torch
    from torch.nn import functional as F

    from snippets.signal_propagation.similarity import (
        distance_to_rank_one,
        mean_cosine,
    )

    found = {name: [] for name in QUANTITIES}
    pairs = branches(model)
    a_layer = len(model.blocks) // len(pairs)
    at = [layer for layer in AT if layer <= len(pairs)]
    if at[-1] < len(pairs):
        at.append(len(pairs))
    inputs = {}
    handles = [
        attention.register_forward_pre_hook(
            lambda module, given: inputs.update({module: given[0].detach()})
        )
        for attention, _ in pairs
        if attention is not None
    ]

    def note(x):
        x = x.detach()
        found["cosine"].append(mean_cosine(x).mean().item())
        found["between"].append(mean_cosine(x.mean(dim=1)).item())
        found["distance"].append(distance_to_rank_one(x).mean().item())
        found["rms"].append(x.square().mean().sqrt().item())

    embedded = x = model.embedding(text[:, :-1])
    note(x)
    for i, block in enumerate(model.blocks):
        x = block(x)
        if (i + 1) % a_layer == 0 and (i + 1) // a_layer in at:
            note(x)
    for handle in handles:
        handle.remove()

    generator = torch.Generator().manual_seed(0)
    readout = torch.randn(x.shape[-1], generator=generator, dtype=x.dtype)
    last = (model.norm(x)[:, -1] @ readout).sum()
    (grad,) = torch.autograd.grad(last, embedded, retain_graph=True)
    sizes = grad.square().sum(dim=-1)
    found["first_token"].append((sizes[:, 0] / sizes.sum(dim=1)).mean().item())

    logits = model.head(model.norm(x))
    F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten()).backward()
    for layer in at[1:]:
        attention, feed_forward = pairs[layer - 1]
        if attention is not None:
            found["entropy"].append(entropy(attention, inputs[attention]))
            for role, (weight, rows) in parts(attention).items():
                found[f"grad_{role}"].append(weight.grad[rows].norm().item())
        if feed_forward is not None:
            found["grad_ffn"].append(
                last_matrix(feed_forward).weight.grad.norm().item()
            )
    return at, {name: values for name, values in found.items() if values}


def probe(arm: str, setting: str, d: int, heads: int, layers: int, size: dict):
    """Every quantity of all seeds of one stack."""
    from math import isfinite

    rows = []
    for seed in SEEDS:
        model = fresh(arm, setting, d, heads, layers, seed)
        at, found = examine(model, text_for(setting, size, seed))
        rows += [
            {
                "arm": arm,
                "setting": setting,
                "d": d,
                "layers": layers,
                "seed": seed,
                "quantity": name,
                "at": at if len(values) == len(at) else at[-len(values) :],
                "values": [value if isfinite(value) else None for value in values],
            }
            for name, values in found.items()
        ]
    return rows


def stacks(size: dict) -> list[tuple]:
    """(arm, setting, d, heads, layers) of every stack."""
    found = []
    for d, heads in size["widths"]:
        settings = list(SETTINGS)
        if d == size["widths"][0][0]:
            settings += [*NARROW, *(f"queries_x_{by}" for by in size["queries"])]
        arms = [(arm, "decoder") for arm in ARMS]
        arms += [(arm, setting) for setting in settings for arm in CONTROLLED]
        found += [(arm, setting, d, heads, size["layers"]) for arm, setting in arms]
    return found


def measure(size: str) -> list[Step]:
    """One step draws all seeds of one stack."""
    setting = SIZES[size]
    return [
        Step(
            dict(zip(("arm", "setting", "d", "heads", "layers"), stack, strict=True)),
            partial(probe, *stack, setting),
            cost=stack[4] * (stack[2] + 64) ** 2,
        )
        for stack in stacks(setting)
    ]


# What was asked, and how it was held equal ---------------------------------


def _drawn(record) -> list[Run]:
    """Stacks as drawn; arms are compared within a setting and a width."""
    return [
        Run(
            row["arm"],
            row["seed"],
            cell=(row["setting"], row["d"]),
            width=row["d"],
            steps=0,
        )
        for row in record.select(quantity="cosine")
    ]


DESIGN = Design(
    says=("at_initialization",),
    arms=ARMS,
    runs=_drawn,
    **design_words(__file__),
)

# What the page says -------------------------------------------------------

WIDTHS = ("narrow", "wide")
ROUNDING = 1e-12  # 1 - cosine below it says nothing in float64
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
SHOWN = ("post", "pre", "sandwich", "branch_output", "scaled", "deepnorm")


def short(value: float | None) -> str:
    """Two digits of a number of any size."""
    if value is None:
        return "–"
    if 0 <= abs(value) < ROUNDING:
        return "0" if value == 0 else "< 10⁻¹²"
    if 0.001 <= abs(value) < 0.1:
        return number(value, 3)
    if 0.1 <= abs(value) < 1000:
        return number(value, 2 if abs(value) < 10 else 0)
    digits, power = f"{value:.1e}".split("e")
    return f"{digits} × 10{str(int(power)).translate(SUPERSCRIPT)}"


def _runs(record, arm: str, setting: str, d: int, layers: int) -> dict[str, list]:
    """Quantity -> values of each seed."""
    found: dict[str, list] = {}
    wanted = dict(arm=arm, setting=setting, d=d, layers=layers)
    for row in record.select(**wanted):
        found.setdefault(row["quantity"], []).append(row["values"])
    return found


def _ratios(over: list, under: list) -> list:
    return [
        None if a is None or not b else a / b for a, b in zip(over, under, strict=True)
    ]


def _quantities(runs: dict[str, list]) -> dict[str, list]:
    """Name of a fact -> its number for each seed."""
    found = {
        "cosine": [v[-1] for v in runs["cosine"]],
        "between": [v[-1] for v in runs["between"]],
        "rms": [v[-1] for v in runs["rms"]],
        "first_token": [v[0] for v in runs["first_token"]],
    }
    if "grad_query" in runs:
        ratios = [
            _ratios(q, v)
            for q, v in zip(runs["grad_query"], runs["grad_value"], strict=True)
        ]
        found["ratio_first"] = [r[0] for r in ratios]
        found["ratio_last"] = [r[-1] for r in ratios]
        found["entropy_first"] = [v[0] for v in runs["entropy"]]
        found["entropy_last"] = [v[-1] for v in runs["entropy"]]
    if "grad_ffn" in runs:
        ends = [[v[0] for v in runs["grad_ffn"]], [v[-1] for v in runs["grad_ffn"]]]
        found["ffn_ratio"] = _ratios(*ends)
    return found


def _described(values: list) -> str:
    from statistics import median

    return short(None if None in values else median(values))


def facts(record) -> dict[str, str]:
    from statistics import median

    size = SIZES[record.size]
    found = {
        "seeds": str(len(SEEDS)),
        "narrow": str(size["widths"][0][0]),
        "wide": str(size["widths"][1][0]),
        "most": str(size["layers"]),
        "time": str(size["time"]),
        "batch": str(size["batch"]),
        "queries": " / ".join(map(str, size["queries"])),
    }
    for arm, setting, d, _, layers in stacks(size):
        runs = _runs(record, arm, setting, d, layers)
        width = WIDTHS[[each for each, _ in size["widths"]].index(d)]
        name = arm if setting == "decoder" else f"{arm}_{setting}"
        for quantity, values in _quantities(runs).items():
            found[f"{name}_{quantity}_{width}"] = _described(values)
        if "ffn_ratio" in (quantities := _quantities(runs)):
            ratios = quantities["ffn_ratio"]
            spread = (
                None if None in ratios or not min(ratios) else max(ratios) / min(ratios)
            )
            found[f"{name}_ffn_spread_{width}"] = short(spread)
        at = record.select(arm=arm, setting=setting, d=d, layers=layers)[0]["at"]
        middle = [median(values) for values in zip(*runs["cosine"], strict=True)]
        alike = [layer for layer, c in zip(at, middle, strict=True) if c > 0.99]
        found[f"{name}_alike_{width}"] = str(alike[0]) if alike else "–"
    return found


WORDS = figure_words(__file__)


def plot(record, words):
    from matplotlib.ticker import FuncFormatter, NullLocator

    from scripts.measure import figures

    size = SIZES[record.size]
    (_, (d, _)), most = size["widths"], size["layers"]
    figure, (top, bottom) = figures.new_figure(words, record, rows=2, height=6.0)
    for arm in SHOWN:
        runs = _runs(record, arm, "decoder", d, most)
        at = record.select(arm=arm, setting="decoder", d=d, layers=most)[0]["at"][1:]
        apart = [[1 - c for c in values[1:]] for values in runs["cosine"]]
        ratio = [
            _ratios(q, v)
            for q, v in zip(runs["grad_query"], runs["grad_value"], strict=True)
        ]
        drawn = figures.style(arm) | {"markersize": 4.5}
        for axis, lines in ((top, apart), (bottom, ratio)):
            columns = [
                [max(value or 0, 1e-9) for value in column]
                for column in zip(*lines, strict=True)
            ]
            band(axis, at, columns, drawn, label=words[arm])
    for axis, name, limits in (
        (top, "apart", (1e-4, 2)),
        (bottom, "ratio", (1e-8, 10)),
    ):
        axis.set(yscale="log", ylim=limits)
        ticks = [tick for tick in (1, 2, 4, 8, 16, 32, 64, 96) if tick <= most]
        log_ticks(axis, ticks)
        name_axes(words, (axis, name, "layer", "scale"))
        figures.plain_log(axis.yaxis)
        axis.yaxis.set_minor_locator(NullLocator())
    bottom.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    figures.legend(figure)
    figures.footer(figure, record, words, words["band"])
    return figure
