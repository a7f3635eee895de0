"""How close to a copy do norms come in the forward pass?

RMSNorm, LayerNorm, residual addition with RMSNorm, and soft-cap as an elementwise
control, from 1k to 128k features, by the page's kernels and by its peers. Every
cell is first held against float64; one that fails the gate has no time. The device
time is that of a CUDA graph over cold sets of inputs and outputs; bytes are those a
fused kernel must move. Peers that are not installed are rows with the reason. What
must be compiled for each shape is timed on some of them, in bfloat16. Edge cases, from
no rows to NaN, pass the same gate at the end and are not timed.
"""

from scripts.measure.kernels.design import design
from scripts.measure.records import Step

DEVICE = "gpu"
SEEDS = (0,)
METHOD = (
    "device time: CUDA graph of launches over input and output sets of four times the "
    "L2 cache together, providers interleaved, 30 replays; share: bytes a fused kernel "
    "must move, over the rate of the best large copy of the run; gate: float64"
)
OPERATIONS = ("rms_norm", "layer_norm", "add_rms_norm", "soft_cap")
PROVIDERS = ("ours", "ours_again", "torch", "torch_unfused", "compile", "liger")
MORE = ("compile_tuned", "quack", "jax")
SIZES = {"tiny": {}, "small": {}, "full": {}}


def measure(size: str) -> list[Step]:
    """One step is one cell with all its providers and its streams; edges are last."""
    from scripts.measure.kernels import shapes, steps

    cells = shapes.bandwidth(OPERATIONS, size)
    edges = steps.of_edges(OPERATIONS, size)
    if size == "tiny":
        return [*steps.of(cells, PROVIDERS[:4], size), *edges]
    only = {
        "compile": shapes.at(cells, shapes.FIRST + shapes.CLIFFS),
        "compile_tuned": shapes.at(cells, shapes.CORE[:2]),
        "quack": shapes.at(cells, shapes.FIRST),
        "jax": shapes.at(cells, shapes.CORE[:1]),
    }
    return [*steps.of(cells, (*PROVIDERS, *MORE), size, only=only), *edges]


# What was asked, and how it was held equal ---------------------------------

DESIGN = design(
    (*PROVIDERS, *MORE),
    question={
        "en": (
            "How close to the bandwidth of a copy do norms come in the forward pass, "
            "and is RMSNorm faster than LayerNorm once both are fused?"
        ),
        "zh": (
            "前向传播里，归一化离复制的带宽还有多远？两种归一化都融合之后，RMSNorm "
            "还比 LayerNorm 快吗？"
        ),
    },
    refuted_by={
        "en": (
            "A fused norm well below a stream of the same bytes at large sizes: then "
            "bytes do not decide."
        ),
        "zh": "尺寸够大时，融合的归一化仍明显慢于字节数相同的流：那就不由字节数决定。",
    },
)


# What the page says -------------------------------------------------------


def facts(record) -> dict[str, str]:
    from scripts.measure.kernels import report
    from scripts.measure.spread import ratio, ratio_interval, unresolved

    found = report.common_facts(record)
    found |= report.share_facts(record, OPERATIONS, PROVIDERS)
    floor = report.floor(record)
    within, ahead, values = 0, 0, []
    ours = {
        cell: of[report.OURS]["device_seconds"]
        for cell, of in report.cells(record).items()
        if report.OURS in of
    }
    for cell, rms in ours.items():
        layer = ours.get(("layer_norm", *cell[1:]))
        if cell[0] != "rms_norm" or layer is None:
            continue
        values.append(ratio(layer, rms))
        same = unresolved(ratio_interval(layer, rms), floor)
        within += same
        ahead += not same and values[-1] > 1
    found |= {
        "layer_over_rms_least": f"{min(values):.2f}" if values else report.NOTHING,
        "layer_over_rms_most": f"{max(values):.2f}" if values else report.NOTHING,
        "layer_rms_cells": str(len(values)),
        "layer_rms_within_noise": str(within),
        "rms_ahead": str(ahead),
    }
    return found


WORDS = {
    "zh": {
        "title": "前向：达到复制带宽的几成",
        "rms_norm": "RMSNorm",
        "layer_norm": "LayerNorm",
        "add_rms_norm": "残差相加 + RMSNorm",
        "ours": "本站的算子",
        "torch": "torch",
        "torch_unfused": "未融合",
        "compile": "torch.compile",
        "liger": "Liger",
        "width": "特征数（对数刻度）",
        "share": "占复制带宽（%）",
        "band": "竖线高度以内的差别（噪声底 {floor}）不作区分。",
        "caption": (
            "{machine} 上各种实现的前向归一化，按一个融合算子必须搬运的字节计，"
            "占同一次运行里大块复制带宽（{rate_1r1w}）的比例。"
            "与读写比例和字节数都相同的流相比，本站的算子达到 "
            "{mix_least} 到 {mix_most}。"
            "不计时的边界情形 {edges} 个，本站的算子算对 {edges_passed} 个。"
        ),
        "alt": (
            "三幅折线图，横轴是特征数，纵轴是占复制带宽的百分比。"
            "本站的算子：RMSNorm 从 {rms_norm_least} 到 {rms_norm_most}，LayerNorm 从 "
            "{layer_norm_least} 到 {layer_norm_most}，残差相加加 RMSNorm 从 "
            "{add_rms_norm_least} 到 {add_rms_norm_most}。"
        ),
    },
    "en": {
        "title": "Forward pass: share of the rate of a copy",
        "rms_norm": "RMSNorm",
        "layer_norm": "LayerNorm",
        "add_rms_norm": "Residual addition + RMSNorm",
        "ours": "this site's kernels",
        "torch": "torch",
        "torch_unfused": "unfused",
        "compile": "torch.compile",
        "liger": "Liger",
        "width": "features (logarithmic)",
        "share": "share of the copy (%)",
        "band": "Differences within the noise floor of {floor} are not resolved.",
        "caption": (
            "Forward norms by several implementations on {machine}: the bytes that a "
            "fused kernel must move, as a share of the rate of a large copy in the "
            "same run ({rate_1r1w}). Of a stream with the same reads, writes and "
            "bytes, this site's kernels reach {mix_least} to {mix_most}. Of {edges} "
            "edge cases, which are not timed, they get {edges_passed} right."
        ),
        "alt": (
            "Three line charts of the share of the copy rate against the number of "
            "features. This site's kernels: RMSNorm from {rms_norm_least} to "
            "{rms_norm_most}, LayerNorm from {layer_norm_least} to {layer_norm_most}, "
            "residual addition with RMSNorm from {add_rms_norm_least} to "
            "{add_rms_norm_most}."
        ),
    },
}


def plot(record, words):
    from scripts.measure.kernels import drawing

    return drawing.shares(record, words, OPERATIONS[:3], PROVIDERS)
