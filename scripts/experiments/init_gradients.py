"""How large are the gradients of a fresh model, layer by layer and by depth?

Six placements of the norms, in stacks of 6 to 96 layers, before any step: the
Frobenius norm of the loss's gradient with respect to every matrix of every
layer. Xiong et al. (2020), theorem 1, is about one of them, W^{2,L}, the last
matrix of the feed-forward network in the last layer. It bounds that norm by
something that does not depend on the depth L in Post-Norm, and falls like
1/sqrt(L) in Pre-Norm. Setting `theorem` is the one of the proof (feed-forward
of width d with ReLU, one head, queries and keys zero, Xavier normal), but for
the causal mask and the head, which is not tied to the embedding; setting
`decoder` is the decoder of the page, with LayerNorm.

In float64, since nothing here is timed but the batching: rounding is then far
below the five digits of a record. The control in float32 says what it would do.

A row holds one quantity of one run: `values` are norms, one for each layer, or
(for the two ways to compute all runs) seconds for all of them, one for each
round.
"""

from functools import partial

from scripts.measure.records import Step
from scripts.measure.spread import number, span

METHOD = (
    "gradient of the mean cross-entropy of the next token on uniform random tokens, "
    "at initialization; every matrix drawn with variance 1 / fan-in (setting decoder) "
    "or Xavier normal (setting theorem), embeddings with variance 1, LayerNorm "
    "everywhere; Frobenius norms, float64; all seeds of a stack in one call"
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
    "tiny": dict(d=8, heads=2, depths=(2, 3), batch=2, time=5, rounds=2),
    "small": dict(d=64, heads=4, depths=(6, 12, 24, 48, 96), batch=4, time=32),
    "full": dict(d=256, heads=8, depths=(6, 12, 24, 48, 96), batch=8, time=64),
}
ROUNDS = 9  # of the two ways to compute all runs, on the least depth


def plain(layers: int, size: dict, variant: str):
    """The page's decoder with the variant's block; its matrices are to be drawn."""
    from torch import nn

    from snippets.deepnorm.block import DeepNorm
    from snippets.deepnorm.coefficients import coefficients
    from snippets.normformer.stack import Stack
    from snippets.pre_norm_vs_post_norm.blocks import PostNormBlock, PreNormBlock
    from snippets.pre_norm_vs_post_norm.decoder import Decoder
    from snippets.sandwich_norm.blocks import SandwichNorm

    d, heads = size["d"], size["heads"]
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


def fresh(variant: str, setting: str, layers: int, size: dict, seed: int):
    """A model at initialization, float64."""
    import torch

    from snippets.deepnorm.coefficients import coefficients
    from snippets.pre_norm_vs_post_norm.decoder import initialize

    if setting == "theorem":
        return simplified(variant, layers, size, seed)
    model = initialize(plain(layers, size, variant), seed)
    if variant == "deepnorm":
        beta = coefficients(decoder_layers=layers)["decoder"].beta
        named = dict(model.named_parameters())
        with torch.no_grad():
            for i, name in enumerate(matrices(model)):
                weight = named[name]  # of q, k and v, beta is for v alone
                (weight[2 * size["d"] :] if i % 4 == 0 else weight).mul_(beta)
    return model.double()


def simplified(variant: str, layers: int, size: dict, seed: int):
    """The model of the proof: see the module's docstring."""
    import torch
    from torch import nn

    from snippets.pre_norm_vs_post_norm.decoder import initialize

    d = size["d"]
    model = plain(layers, {**size, "heads": 1}, variant)
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


def runs(variant: str, setting: str, layers: int, size: dict):
    """(models, text), one for each seed."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    models = [fresh(variant, setting, layers, size, seed).to(device) for seed in SEEDS]
    return models, torch.stack([random_text(size, s) for s in SEEDS]).to(device)


def row(variant, setting, layers, size, seed, dtype, quantity, values) -> dict:
    return {
        "variant": variant,
        "setting": setting,
        "layers": layers,
        "d": size["d"],
        "seed": seed,
        "dtype": dtype,
        "quantity": quantity,
        "values": values,
    }


def norms(variant: str, setting: str, layers: int, size: dict, dtype: str):
    """Every gradient norm of all seeds of one stack."""
    import torch

    from scripts.measure.together import Together

    models, text = runs(variant, setting, layers, size)
    names = matrices(models[0])
    models = Together([model.to(getattr(torch, dtype)) for model in models])
    _, gradients = models.gradients(next_token_loss, text, chunk=4)
    sizes = torch.stack(
        [gradients[name].double().flatten(1).norm(dim=1) for name in names], dim=1
    ).unflatten(1, (layers, len(MATRICES)))  # run, layer, matrix
    return [
        row(variant, setting, layers, size, seed, dtype, matrix, values.tolist())
        for seed, run in zip(SEEDS, sizes, strict=True)
        for matrix, values in zip(MATRICES, run.T, strict=True)
        if (setting == "decoder" and dtype == "float64") or matrix == "ffn_out"
    ]


def batching(size: dict) -> list[dict]:
    """Seconds for the gradients of all seeds: a loop of models, and one call."""
    import torch

    from scripts.measure.timing import time_together
    from scripts.measure.together import Together

    layers = size["depths"][0]
    models, text = runs("pre", "decoder", layers, size)
    together = Together(models)

    def finished():
        if text.is_cuda:
            torch.cuda.synchronize()

    def loop():
        for model, run_text in zip(models, text, strict=True):
            loss = next_token_loss(model, run_text)
            torch.autograd.grad(loss, list(model.parameters()))
        finished()

    def at_once():
        together.gradients(next_token_loss, text)
        finished()

    samples = time_together(
        {"seconds_one_by_one": loop, "seconds_together": at_once},
        rounds=size.get("rounds", ROUNDS),
    )
    return [
        row("pre", "decoder", layers, size, None, "float64", quantity, found.seconds)
        for quantity, found in samples.items()
    ]


def measure(size: str) -> list[Step]:
    """One step computes all seeds of one stack."""
    setting = SIZES[size]
    deepest = setting["depths"][-1]
    stacks = [
        (variant, "decoder", layers, "float64")
        for variant in VARIANTS
        for layers in setting["depths"]
    ]
    stacks += [
        (variant, "theorem", layers, "float64")
        for variant in THEOREM
        for layers in setting["depths"]
    ]
    stacks += [(variant, "decoder", deepest, "float32") for variant in THEOREM]
    return [
        Step(
            {"variant": variant, "setting": kind, "layers": layers, "dtype": dtype},
            partial(norms, variant, kind, layers, setting, dtype),
        )
        for variant, kind, layers, dtype in stacks
    ] + [Step({"batching": "all seeds"}, partial(batching, setting))]


# What the page says -------------------------------------------------------


def _values(record, quantity="ffn_out", dtype="float64", **wanted) -> list[list]:
    """The values of the rows that match, in the order of the seeds."""
    wanted |= {"quantity": quantity, "dtype": dtype}
    return [row["values"] for row in record.select(**wanted)]


def _depths(record) -> list[int]:
    return sorted({row["layers"] for row in record.rows})


def _slope(depths: list[int], sizes: list[float]) -> float:
    """The exponent p of the law size = c * depth ** p, by least squares of logs."""
    from math import log
    from statistics import linear_regression

    return linear_regression(list(map(log, depths)), list(map(log, sizes))).slope


def facts(record) -> dict[str, str]:
    from statistics import median

    from scripts.measure.spread import ratio, ratio_interval

    depths = _depths(record)
    least, most = depths[0], depths[-1]
    size = SIZES[record.size]
    found = {
        "seeds": str(len(record.provenance["seeds"])),
        "d": str(size["d"]),
        "least": str(least),
        "most": str(most),
        "tokens": str(size["batch"] * size["time"]),
    }

    def note(name, values, digits):
        found[name] = number(median(values), digits)
        found[f"{name}_range"] = span(values, digits)

    for setting, variants in (("decoder", VARIANTS), ("theorem", THEOREM)):
        for variant in variants:
            name = variant if setting == "decoder" else f"{variant}_theorem"
            runs = {
                depth: _values(record, variant=variant, setting=setting, layers=depth)
                for depth in depths
            }
            for place, layer in (("first", 0), ("last", -1)):
                slopes = [
                    _slope(depths, [runs[depth][seed][layer] for depth in depths])
                    for seed in range(len(runs[least]))
                ]
                note(f"{name}_{place}_slope", slopes, 2)
                for end, depth in (("least", least), ("most", most)):
                    sizes = [values[layer] for values in runs[depth]]
                    note(f"{name}_{place}_{end}", sizes, 2)
            for end, depth in (("least", least), ("most", most)):
                note(f"{name}_ratio_{end}", [v[0] / v[-1] for v in runs[depth]], 1)
    for variant in VARIANTS:
        shares = []
        for run in zip(
            *(
                _values(
                    record,
                    matrix,
                    variant=variant,
                    setting="decoder",
                    layers=most,
                )
                for matrix in MATRICES
            ),
            strict=True,
        ):
            squares = [sum(value**2 for value in values) for values in run]
            shares.append(100 * sum(squares[:2]) / sum(squares))
        found[f"{variant}_attention_share"] = f"{median(shares):.0f} %"
    gaps = []
    for variant in THEOREM:
        wanted = dict(variant=variant, setting="decoder", layers=most)
        exact, rounded = (
            [
                value
                for values in _values(record, dtype=dtype, **wanted)
                for value in values
            ]
            for dtype in ("float64", "float32")
        )
        gaps += [abs(b / a - 1) for a, b in zip(exact, rounded, strict=True)]
    found["float32_gap"] = f"{max(gaps):.0e}"
    (loop,) = _values(record, "seconds_one_by_one")
    (at_once,) = _values(record, "seconds_together")
    for name, seconds in (("one_by_one", loop), ("together", at_once)):
        found[f"runs_per_second_{name}"] = f"{len(SEEDS) / median(seconds):.0f}"
    low, high = ratio_interval(loop, at_once)
    found["together_gain"] = f"{ratio(loop, at_once):.2f}"
    found["together_gain_interval"] = f"[{low:.2f}, {high:.2f}]"
    return found


WORDS = {
    "zh": {
        "title": "初始化时的梯度：前馈网络的最后一个矩阵",
        "post": "Post-Norm",
        "pre": "Pre-Norm",
        "pre_without_final_norm": "Pre-Norm，末尾没有归一化",
        "sandwich": "夹心归一化",
        "deepnorm": "DeepNorm",
        "normformer": "NormFormer",
        "by_depth": "最后一层，随层数变化",
        "by_layer": "{most} 层的模型，逐层",
        "depth": "层数 L（对数刻度）",
        "layer": "第几层（对数刻度）",
        "norm": "梯度范数（对数刻度）",
        "root": "∝ 1/√L",
        "root_layer": "∝ 1/√l",
        "band": (
            "线：{seeds} 个种子的中位数；色带：从最小到最大。灰色虚线：斜率为 −1/2。"
        ),
        "caption": (
            "没有训练过的解码器（d = {d}，{least} 到 {most} 层）里，每层前馈网络"
            "最后一个矩阵的梯度范数：末层的随层数怎样变，{most} 层时各层又有多大。"
        ),
        "alt": (
            "两幅折线图，两轴都是对数刻度，纵轴是梯度范数，范围相同。"
            "上图看最后一层：层数从 {least} 到 {most}，Post-Norm 几乎是水平线"
            "（指数 {post_last_slope}）；"
            "Pre-Norm 沿 1/√L 的虚线下降（指数 {pre_last_slope}），夹心归一化、"
            "NormFormer 和 DeepNorm 也下降（{sandwich_last_slope}、"
            "{normformer_last_slope}、{deepnorm_last_slope}）；Pre-Norm 去掉末尾的"
            "归一化就上升（{pre_without_final_norm_last_slope}）。"
            "下图看 {most} 层模型的各层："
            "DeepNorm 是水平线；Pre-Norm、夹心归一化和 NormFormer 从第一层往后下降，"
            "首层是末层的 {pre_ratio_most}、{sandwich_ratio_most} 和 "
            "{normformer_ratio_most} 倍；Post-Norm 的色带越靠近第一层越宽，"
            "首层从最小到最大为 {post_first_most_range}。"
        ),
    },
    "en": {
        "title": "Gradients at initialization, last feed-forward matrix",
        "post": "Post-Norm",
        "pre": "Pre-Norm",
        "pre_without_final_norm": "Pre-Norm, no final norm",
        "sandwich": "Sandwich norm",
        "deepnorm": "DeepNorm",
        "normformer": "NormFormer",
        "by_depth": "In the last layer, by depth",
        "by_layer": "In a model of {most} layers, layer by layer",
        "depth": "number of layers L (logarithmic)",
        "layer": "layer l (logarithmic)",
        "norm": "gradient norm (log.)",
        "root": "∝ 1/√L",
        "root_layer": "∝ 1/√l",
        "band": (
            "Line: median of {seeds} seeds. Band: least to greatest. Grey dashes: a "
            "slope of −1/2."
        ),
        "caption": (
            "Untrained decoders (d = {d}, {least} to {most} layers), gradient norm of "
            "the last matrix of each layer's feed-forward network: how it changes with "
            "depth in the last layer, and how large it is in each of {most} layers."
        ),
        "alt": (
            "Two line charts, all axes logarithmic, of the gradient norm on one scale. "
            "Top, the last layer, from {least} to {most} layers: Post-Norm is almost "
            "level (exponent {post_last_slope}); Pre-Norm falls along the dashed line "
            "1/√L (exponent {pre_last_slope}), and so do Sandwich norm, NormFormer and "
            "DeepNorm ({sandwich_last_slope}, {normformer_last_slope}, "
            "{deepnorm_last_slope}); Pre-Norm without the final norm rises "
            "({pre_without_final_norm_last_slope}). Bottom, the layers of the model "
            "of {most}: DeepNorm is level; Pre-Norm, Sandwich norm and NormFormer fall "
            "from the first layer on, whose norm is {pre_ratio_most}, "
            "{sandwich_ratio_most} and {normformer_ratio_most} times the last one's; "
            "the band of Post-Norm widens towards the first layer, where it spans "
            "{post_first_most_range}."
        ),
    },
}


def plot(record, words):
    from statistics import median

    from matplotlib.ticker import FixedLocator, NullLocator

    from scripts.measure import look

    depths = _depths(record)
    most = depths[-1]
    layers = sorted({round(most ** (i / 12)) for i in range(13)})
    figure, (top, bottom) = look.new_figure(
        words, record, rows=2, height=7.6, sharey=True
    )
    for series, variant in enumerate(VARIANTS):
        runs = {
            depth: _values(record, variant=variant, setting="decoder", layers=depth)
            for depth in depths
        }
        drawn = {**look.style(series), "markersize": 4.5}
        last = [[values[-1] for values in runs[depth]] for depth in depths]
        each = [[values[layer - 1] for values in runs[most]] for layer in layers]
        for axis, places, sizes in ((top, depths, last), (bottom, layers, each)):
            axis.plot(places, list(map(median, sizes)), label=words[variant], **drawn)
            low, high = list(map(min, sizes)), list(map(max, sizes))
            colour = drawn["color"]
            axis.fill_between(places, low, high, color=colour, alpha=0.13, linewidth=0)

    middle = median(
        values[-1]
        for values in _values(record, variant="pre", setting="decoder", layers=most)
    )
    for axis, start, end, factor, label, place, above in (
        (top, depths[0], most, 1.5, "root", most**0.85, 1.35),
        (bottom, 1, most, 0.6, "root_layer", most**0.3, 0.6),
    ):
        line = [factor * middle * (most / place) ** 0.5 for place in (start, end)]
        dashed = dict(color=look.MUTED, linewidth=1.2, linestyle=look.LINES[1])
        axis.plot([start, end], line, marker="none", **dashed)
        height = above * factor * middle * (most / place) ** 0.5
        side = "bottom" if above > 1 else "top"
        axis.text(place, height, words[label], color=look.MUTED, va=side, ha="center")
    for axis, ticks, title, below in (
        (top, depths, "by_depth", "depth"),
        (bottom, [1, *depths], "by_layer", "layer"),
    ):
        axis.set_title(words[title])
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.xaxis.set_major_locator(FixedLocator(ticks))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
        axis.set_xlabel(words[below])
        axis.set_ylabel(words["norm"])
        look.plain_log(axis.yaxis)
        axis.yaxis.set_minor_locator(NullLocator())
    look.legend(figure)
    look.footer(figure, record, words, words["band"])
    return figure
