"""How large are the gradients of a fresh model, layer by layer and by depth?

Six placements of the norms, in stacks of 6 to 96 layers and at two widths, before
any step: the Frobenius norm of the loss's gradient with respect to every matrix of
every layer. What a width alone does shows in the other one.

Xiong et al. (2020), theorem 1, is about one of them, W^{2,L}, the last matrix of
the feed-forward network in the last layer. It bounds that norm by something that
does not depend on the depth L in Post-Norm, and falls like 1/sqrt(L) in Pre-Norm.
Setting `theorem` is the one of the proof (feed-forward of width d with ReLU, one
head, queries and keys zero, Xavier normal), but for the causal mask and the head,
which is not tied to the embedding; setting `decoder` is the decoder of the page,
with LayerNorm.

In float64, since nothing here is timed: rounding is then far below the five digits
of a record. The control in float32 says what it would do.

A row holds one quantity of one run: `values` are norms, one for each layer.
"""

from functools import partial

from scripts.measure.design import Design, Run
from scripts.measure.draw import band, log_ticks
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.fact_formatting import Found
from scripts.measure.records import Step
from scripts.measure.spread import number

METHOD = (
    "gradient of the mean cross-entropy of the next token on uniform random tokens, "
    "at initialization; every matrix drawn with variance 1 / fan-in (setting decoder) "
    "or Xavier normal (setting theorem), embeddings with variance 1, LayerNorm "
    "everywhere; Frobenius norms, float64"
)
SEEDS = tuple(range(8))
VARIANTS = (
    "post",
    "pre",
    "pre_without_final_norm",
    "sandwich",
    "deepnorm",
    "normformer",
)
THEOREM = VARIANTS[:2]  # what theorem 1 speaks of
MATRICES = ("attention_in", "attention_out", "ffn_in", "ffn_out")
VOCABULARY = 100  # that of the NormFormer page's stack
SIZES = {
    "tiny": dict(widths=(8, 16), heads=2, depths=(2, 3), batch=2, time=5),
    "small": dict(
        widths=(64, 256), heads=4, depths=(6, 12, 24, 48, 96), batch=4, time=32
    ),
    "full": dict(
        widths=(256, 1024), heads=8, depths=(6, 12, 24, 48, 96), batch=8, time=64
    ),
}
PARALLEL = True


def plain(layers: int, d: int, heads: int, variant: str):
    """The page's decoder with the variant's block; its matrices are to be drawn."""
    from torch import nn

    from snippets.deepnorm.block import DeepNorm
    from snippets.deepnorm.coefficients import coefficients
    from snippets.normformer.stack import Stack
    from snippets.pre_norm_vs_post_norm.blocks import PostNormBlock, PreNormBlock
    from snippets.pre_norm_vs_post_norm.decoder import Decoder
    from snippets.sandwich_norm.blocks import SandwichNorm

    if variant == "normformer":
        return Stack(layers, d, heads)
    alpha = coefficients(decoder_layers=layers)["decoder"].alpha
    blocks = {
        "post": PostNormBlock,
        "pre": PreNormBlock,
        "pre_without_final_norm": PreNormBlock,
        "sandwich": lambda branch, norm: SandwichNorm(branch, d, nn.LayerNorm),
        "deepnorm": lambda branch, norm: DeepNorm(branch, d, alpha),
    }
    return Decoder(
        d,
        layers,
        heads,
        VOCABULARY,
        block=blocks[variant],
        norm=nn.LayerNorm,
        final_norm=variant in ("pre", "sandwich"),
    )


def matrices(model) -> list[str]:
    """Names of the layers' matrices, in the order of MATRICES, layer by layer."""
    from torch import nn

    return [
        f"{name}.weight"
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and name.startswith("blocks.")
    ]


def fresh(variant: str, setting: str, layers: int, d: int, heads: int, seed: int):
    """A model at initialization, float64."""
    import torch

    from snippets.deepnorm.coefficients import coefficients
    from snippets.pre_norm_vs_post_norm.decoder import initialize

    if setting == "theorem":
        return simplified(variant, layers, d, seed)
    model = initialize(plain(layers, d, heads, variant), seed)
    if variant == "deepnorm":
        beta = coefficients(decoder_layers=layers)["decoder"].beta
        named = dict(model.named_parameters())
        with torch.no_grad():
            for i, name in enumerate(matrices(model)):
                weight = named[name]  # of q, k and v, beta is for v alone
                (weight[2 * d :] if i % 4 == 0 else weight).mul_(beta)
    return model.double()


def simplified(variant: str, layers: int, d: int, seed: int):
    """The model of the proof: see the module's docstring."""
    import torch
    from torch import nn

    from snippets.pre_norm_vs_post_norm.decoder import initialize

    model = plain(layers, d, 1, variant)
    for block in model.blocks[1::2]:
        block.sublayer.reader = nn.Linear(d, d)
        block.sublayer.writer = nn.Linear(d, d)
        block.sublayer.activation = nn.ReLU()
    initialize(model, seed)  # for d by d matrices this is Xavier normal
    with torch.no_grad():
        for block in model.blocks[0::2]:
            block.sublayer.reader.weight[: 2 * d] = 0  # queries and keys
    return model.double()


def random_text(size: dict, seed: int):
    """Uniform random tokens, (batch, time + 1)."""
    import torch

    generator = torch.Generator().manual_seed(1000 + seed)
    shape = (size["batch"], size["time"] + 1)
    return torch.randint(VOCABULARY, shape, generator=generator)


def next_token_loss(model, text):
    from torch.nn import functional as F

    logits = model(text[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())


def norms(
    variant: str, setting: str, layers: int, d: int, dtype: str, size: dict
) -> list[dict]:
    """Every gradient norm of all seeds of one stack, one model after the other."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = []
    for seed in SEEDS:
        model = fresh(variant, setting, layers, d, size["heads"], seed)
        model.to(device, getattr(torch, dtype))
        text = random_text(size, seed).to(device)
        named = dict(model.named_parameters())
        weights = [named[name] for name in matrices(model)]
        gradients = torch.autograd.grad(next_token_loss(model, text), weights)
        sizes = torch.stack([each.double().norm() for each in gradients])
        rows += [
            {
                "variant": variant,
                "setting": setting,
                "layers": layers,
                "d": d,
                "seed": seed,
                "dtype": dtype,
                "quantity": matrix,
                "values": values.tolist(),
            }
            for matrix, values in zip(
                MATRICES, sizes.unflatten(0, (layers, len(MATRICES))).T, strict=True
            )
            if (setting == "decoder" and dtype == "float64") or matrix == "ffn_out"
        ]
    return rows


def measure(size: str) -> list[Step]:
    """One step computes all seeds of one stack."""
    setting = SIZES[size]
    depths, widths = setting["depths"], setting["widths"]
    stacks = [
        (variant, kind, layers, d, "float64")
        for d in widths
        for kind, variants in (("decoder", VARIANTS), ("theorem", THEOREM))
        for variant in variants
        for layers in depths
    ]
    stacks += [
        (variant, "decoder", depths[-1], widths[0], "float32") for variant in THEOREM
    ]
    return [
        Step(
            {"variant": variant, "setting": kind, "layers": n, "d": d, "dtype": dtype},
            partial(norms, variant, kind, n, d, dtype, setting),
            cost=float(n * d**2),
        )
        for variant, kind, n, d, dtype in stacks
    ]


# What it declares -----------------------------------------------------------


def _runs(record) -> list[Run]:
    return [
        Run(
            row["variant"],
            row["seed"],
            cell=(row["setting"], row["layers"]),
            width=row["d"],
            steps=0,
        )
        for row in record.select(quantity="ffn_out", dtype="float64")
    ]


DESIGN = Design(
    says=("at_initialization",),
    arms=VARIANTS,
    runs=_runs,
    **design_words(__file__),
)


# What the page says -------------------------------------------------------


def _values(record, quantity="ffn_out", dtype="float64", **wanted) -> list[list]:
    """The values of the rows that match, in the order of the seeds."""
    wanted |= {"quantity": quantity, "dtype": dtype}
    return [row["values"] for row in record.select(**wanted)]


def _depths(record) -> list[int]:
    return sorted({row["layers"] for row in record.rows})


def _widths(record) -> tuple[int, int]:
    """The least and the greatest width."""
    widths = {row["d"] for row in record.rows if row["d"]}
    return min(widths), max(widths)


def _slope(depths: list[int], sizes: list[float]) -> float:
    """The exponent p of the law size = c * depth ** p, by least squares of logs."""
    from math import log
    from statistics import linear_regression

    return linear_regression(list(map(log, depths)), list(map(log, sizes))).slope


def _factor(value: float) -> str:
    return number(value, 0 if value >= 10 else 1)


WIDE = {0: "", 1: "_wide"}  # what the names of facts say of a width


def facts(record) -> dict[str, str]:
    from math import log2
    from statistics import median

    depths, widths = _depths(record), _widths(record)
    least, most = depths[0], depths[-1]
    size = SIZES[record.size]
    found = Found()
    found |= {
        "seeds": str(len(record.provenance["seeds"])),
        "d": str(widths[0]),
        "d_wide": str(widths[1]),
        "least": str(least),
        "most": str(most),
        "half": str(depths[-2]),
        "tokens": str(size["batch"] * size["time"]),
    }

    cells = [
        (width, setting, variant)
        for width in WIDE
        for setting, variants in (("decoder", VARIANTS), ("theorem", THEOREM))
        for variant in variants
    ]
    for width, setting, variant in cells:
        name = variant if setting == "decoder" else f"{variant}_theorem"
        name += WIDE[width]
        wanted = dict(variant=variant, setting=setting, d=widths[width])
        runs = {depth: _values(record, layers=depth, **wanted) for depth in depths}
        slopes = [
            _slope(depths, [runs[depth][seed][-1] for depth in depths])
            for seed in range(len(runs[least]))
        ]
        found.median(f"{name}_last_slope", slopes, 2)
        if variant == "pre_without_final_norm":  # the exponent of the last doubling
            half, whole = (
                [log2(values[-1]) for values in runs[depth]] for depth in depths[-2:]
            )
            found.paired(f"{name}_late", whole, half, 2)
        for end, depth in (("least", least), ("most", most)):
            ratios = [v[0] / v[-1] for v in runs[depth]]
            found.median(f"{name}_ratio_{end}", ratios, 1)
            found[f"{name}_larger_{end}"] = str(sum(r > 1 for r in ratios))
            found[f"{name}_apart_{end}"] = _factor(max(ratios) / min(ratios))
    for variant in VARIANTS:
        wanted = dict(variant=variant, setting="decoder", layers=most, d=widths[0])
        every = [_values(record, matrix, **wanted) for matrix in MATRICES]
        shares = []
        for run in zip(*every, strict=True):
            squares = [sum(value**2 for value in values) for values in run]
            shares.append(100 * sum(squares[:2]) / sum(squares))
        found[f"{variant}_attention_share"] = f"{median(shares):.0f}%"
    gaps = []
    for variant in THEOREM:
        wanted = dict(variant=variant, setting="decoder", layers=most, d=widths[0])
        exact, rounded = (
            [value for run in _values(record, dtype=dtype, **wanted) for value in run]
            for dtype in ("float64", "float32")
        )
        gaps += [abs(b / a - 1) for a, b in zip(exact, rounded, strict=True)]
    return found | {"float32_gap": f"{max(gaps):.0e}"}


WORDS = figure_words(__file__)


def plot(record, words):
    from statistics import median

    from matplotlib.ticker import NullLocator

    from scripts.measure import figures

    depths, widths = _depths(record), _widths(record)
    most = depths[-1]
    layers = sorted({round(most ** (i / 12)) for i in range(13)})
    figure, axes = figures.new_figure(
        words, record, rows=2, columns=2, height=6.2, sharey=True
    )
    for column, d in enumerate(widths):
        top, bottom = axes[0, column], axes[1, column]
        for variant in VARIANTS:
            wanted = dict(variant=variant, setting="decoder", d=d)
            runs = {depth: _values(record, layers=depth, **wanted) for depth in depths}
            drawn = figures.style(variant) | {"markersize": 3.5}
            last = [[values[-1] for values in runs[depth]] for depth in depths]
            each = [[values[layer - 1] for values in runs[most]] for layer in layers]
            for axis, places, sizes in ((top, depths, last), (bottom, layers, each)):
                band(axis, places, sizes, drawn, label=words[variant])

        wanted = dict(variant="pre", setting="decoder", layers=most, d=d)
        middle = median(values[-1] for values in _values(record, **wanted))
        for axis, start, factor, label, place, above in (
            (top, depths[0], 1.5, "root", most**0.85, 1.35),
            (bottom, 1, 0.6, "root_layer", most**0.3, 0.6),
        ):
            line = [factor * middle * (most / at) ** 0.5 for at in (start, most)]
            dashed = dict(
                color=figures.MUTED, linewidth=1.2, linestyle=figures.LINES[1]
            )
            axis.plot([start, most], line, marker="none", **dashed)
            height = above * factor * middle * (most / place) ** 0.5
            side = "bottom" if above > 1 else "top"
            axis.text(
                place, height, words[label], color=figures.MUTED, va=side, ha="center"
            )
        for axis, ticks, title, below in (
            (top, depths, "by_depth", "depth"),
            (bottom, [1, *depths[:-1:2], most], "by_layer", "layer"),
        ):
            axis.set_title(f"{words[title]}{d}")
            axis.set_yscale("log")
            log_ticks(axis, ticks)
            axis.set_xlabel(words[below])
            figures.plain_log(axis.yaxis)
            axis.yaxis.set_minor_locator(NullLocator())
    for axis in axes[:, 0]:
        axis.set_ylabel(words["norm"])
    figures.legend(figure)
    figures.footer(figure, record, words, words["band"])
    return figure
