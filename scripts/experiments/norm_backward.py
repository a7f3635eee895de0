"""How close to their byte count do norms come in the backward pass?

RMSNorm, LayerNorm and residual addition with RMSNorm: the gradients of the input
and of the gain (and bias), by the page's kernels and by its peers. A fused kernel
reads the slopes and the input once and writes the input's gradient once; partial
sums of the gain come on top and are not counted. Cells, gate and times are those of
norm_bandwidth. Liger's RMSNorm must not overwrite the slopes here, which are used
again, and so fills the gradient with zeros first: a third more bytes than are counted.
Edge cases are gated at the end, as there.
"""

from scripts.measure.kernels.design import design
from scripts.measure.records import Step

DEVICE = "gpu"
SEEDS = (0,)
METHOD = (
    "device time: CUDA graph of launches over input and output sets of four times the "
    "L2 cache together, providers interleaved, 30 replays; the forward pass is not in "
    "it; share: bytes a fused kernel must move, over the rate of the best large copy "
    "of the run; gate: float64"
)
OPERATIONS = ("rms_norm_backward", "layer_norm_backward", "add_rms_norm_backward")
PROVIDERS = ("ours", "ours_again", "torch", "torch_unfused", "compile", "liger")
MORE = ("compile_tuned", "quack")
SIZES = {"tiny": {}, "small": {}, "full": {}}


def measure(size: str) -> list[Step]:
    """One step is one cell with all its providers and its streams; edges are last."""
    from scripts.measure.kernels import shapes, steps

    cells = shapes.bandwidth(OPERATIONS, size)
    edges = steps.of_edges(OPERATIONS, size)
    if size == "tiny":
        return [*steps.of(cells, PROVIDERS[:3], size), *edges]
    only = {
        "compile": shapes.at(cells, shapes.FIRST + shapes.CLIFFS),
        "compile_tuned": shapes.at(cells, shapes.CORE[:1]),
        "quack": shapes.at(cells, shapes.FIRST),
    }
    return [*steps.of(cells, (*PROVIDERS, *MORE), size, only=only), *edges]


# What was asked, and how it was held equal ---------------------------------

DESIGN = design(
    (*PROVIDERS, *MORE),
    question={
        "en": "How close to their byte count do norms come in the backward pass?",
        "zh": "反向传播里，归一化离自己的字节数还有多远？",
    },
    refuted_by={
        "en": (
            "A fused backward pass well below a stream of the same bytes at large "
            "sizes: then bytes do not decide."
        ),
        "zh": "尺寸够大时，融合的反向仍明显慢于字节数相同的流：那就不由字节数决定。",
    },
)


# What the page says -------------------------------------------------------


def facts(record) -> dict[str, str]:
    from scripts.measure.kernels import report
    from scripts.measure.spread import ratio

    found = report.common_facts(record)
    found |= report.share_facts(record, OPERATIONS, PROVIDERS)
    for operation in OPERATIONS:
        for peer in ("torch", "torch_unfused"):
            gains = [
                ratio(of[peer]["device_seconds"], of["ours"]["device_seconds"])
                for cell, of in report.cells(record).items()
                if cell[0] == operation and peer in of and "ours" in of
            ]
            if gains:
                found[f"{operation}_over_{peer}_least"] = f"{min(gains):.1f}"
                found[f"{operation}_over_{peer}_most"] = f"{max(gains):.1f}"
    return found


WORDS = {
    "zh": {
        "title": "反向：达到复制带宽的几成",
        "rms_norm_backward": "RMSNorm",
        "layer_norm_backward": "LayerNorm",
        "add_rms_norm_backward": "残差相加 + RMSNorm",
        "ours": "本站的算子",
        "torch": "torch",
        "torch_unfused": "未融合",
        "compile": "torch.compile",
        "liger": "Liger",
        "width": "特征数（对数刻度）",
        "share": "占复制带宽（%）",
        "band": "不超过噪声底 {floor} 的差别不作区分。",
        "caption": (
            "{machine} 上各种实现的反向归一化，按一个融合算子必须搬运的字节计，"
            "占同一次运行里大块复制带宽（{rate_1r1w}）的比例。"
            "与读写比例和字节数都相同的流相比，本站的算子达到 "
            "{mix_least} 到 {mix_most}。"
            "不计时的边界情形 {edges} 个，本站的算子算对 {edges_passed} 个。"
            "Liger 的 RMSNorm 在这里不能覆盖上游梯度，要先把结果清零，多写一个张量。"
        ),
        "alt": (
            "三幅折线图，横轴是特征数，纵轴是占复制带宽的百分比。"
            "本站的算子：RMSNorm 从 {rms_norm_backward_least} 到 "
            "{rms_norm_backward_most}，LayerNorm 从 {layer_norm_backward_least} 到 "
            "{layer_norm_backward_most}，残差相加加 RMSNorm 从 "
            "{add_rms_norm_backward_least} 到 {add_rms_norm_backward_most}。"
        ),
    },
    "en": {
        "title": "Backward pass: share of the rate of a copy",
        "rms_norm_backward": "RMSNorm",
        "layer_norm_backward": "LayerNorm",
        "add_rms_norm_backward": "Residual addition + RMSNorm",
        "ours": "this site's kernels",
        "torch": "torch",
        "torch_unfused": "unfused",
        "compile": "torch.compile",
        "liger": "Liger",
        "width": "features (logarithmic)",
        "share": "share of the copy (%)",
        "band": "Differences within the noise floor of {floor} are not resolved.",
        "caption": (
            "Backward norms by several implementations on {machine}: the bytes that a "
            "fused kernel must move, as a share of the rate of a large copy in the "
            "same run ({rate_1r1w}). Of a stream with the same reads, writes and "
            "bytes, this site's kernels reach {mix_least} to {mix_most}. Of {edges} "
            "edge cases, which are not timed, they get {edges_passed} right. Liger's "
            "RMSNorm may not overwrite the gradient from above here, so it fills the "
            "result with zeros first and writes one tensor more."
        ),
        "alt": (
            "Three line charts of the share of the copy rate against the number of "
            "features. This site's kernels: RMSNorm from {rms_norm_backward_least} to "
            "{rms_norm_backward_most}, LayerNorm from {layer_norm_backward_least} to "
            "{layer_norm_backward_most}, residual addition with RMSNorm from "
            "{add_rms_norm_backward_least} to {add_rms_norm_backward_most}."
        ),
    },
}


def plot(record, words):
    from scripts.measure.kernels import drawing

    return drawing.shares(record, words, OPERATIONS, PROVIDERS)
