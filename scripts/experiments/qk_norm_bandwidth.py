"""How close to a copy does QK-Norm come, on narrow rows of packed projections?

RMSNorm over heads of 64, 128 and 256 features, forward and backward, and fused with
RoPE; queries as a slice of a packed projection, which a kernel must read where they
lie, and the same contiguous. Cells, gate and times are those of norm_bandwidth.
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
OPERATIONS = ("rms_norm", "rms_norm_backward", "qk_norm_rope")
PROVIDERS = ("ours", "ours_again", "torch", "torch_unfused", "compile", "liger")
LAYOUTS = ("packed", "contiguous")
SIZES = {"tiny": {}, "small": {}, "full": {}}


def measure(size: str) -> list[Step]:
    """One step is one cell with all its providers and its streams; edges are last.

    Those of qk_norm_rope: norm_bandwidth and norm_backward have those of rms_norm.
    """
    from scripts.measure.kernels import shapes, steps

    names = PROVIDERS[:3] if size == "tiny" else PROVIDERS
    edges = steps.of_edges(OPERATIONS[-1:], size)
    return [*steps.of(shapes.heads(size), names, size), *edges]


# What was asked, and how it was held equal ---------------------------------

DESIGN = design(
    PROVIDERS,
    question={
        "en": (
            "How close to a copy does QK-Norm come on rows as narrow as a head, read "
            "where they lie in the packed projection?"
        ),
        "zh": (
            "行只有一个头那么窄，还要在合并的 QKV 投影里原地读取，"
            "QK-Norm 离复制还有多远？"
        ),
    },
    refuted_by={
        "en": (
            "Packed rows much slower than the same rows contiguous: then reading them "
            "where they lie has a cost."
        ),
        "zh": "合并的 QKV 投影里的行明显慢于连续存放的同样的行：那么原地读取就有代价。",
    },
)


# What the page says -------------------------------------------------------


def facts(record) -> dict[str, str]:
    from scripts.measure.kernels import report

    found = report.common_facts(record)
    for operation in OPERATIONS:
        for layout in LAYOUTS:
            for provider in PROVIDERS:
                shares = report.line(record, operation, provider, layout=layout)
                for width, share in shares.items():
                    name = f"{operation}_{layout}_{width}_{provider}"
                    found[name] = report.percent(share)
        packed = report.line(record, operation, report.OURS, layout="packed")
        found |= report.range_facts(operation, packed.values())
    return found


WORDS = {
    "zh": {
        "title": "QK-Norm：达到复制带宽的几成",
        "rms_norm": "每个头的 RMSNorm，前向",
        "rms_norm_backward": "每个头的 RMSNorm，反向",
        "qk_norm_rope": "RMSNorm 与 RoPE 融合，前向",
        "ours": "本站的算子",
        "torch": "torch",
        "torch_unfused": "未融合",
        "compile": "torch.compile",
        "liger": "Liger",
        "width": "每个头的特征数（对数刻度）",
        "share": "占复制带宽（%）",
        "band": "查询是合并的 QKV 投影的切片。不超过噪声底 {floor} 的差别不作区分。",
        "caption": (
            "{machine} 上对合并的 QKV 投影里的查询做归一化，"
            "按一个融合算子必须搬运的字节计，占同一次运行里大块复制带宽（{rate_1r1w}）的比例。"
            "与读写比例和字节数都相同的流相比，本站的算子达到 "
            "{mix_least} 到 {mix_most}。"
        ),
        "alt": (
            "三幅折线图，横轴是每个头的特征数，纵轴是占复制带宽的百分比。本站的算子："
            "前向从 {rms_norm_least} 到 {rms_norm_most}，反向从 "
            "{rms_norm_backward_least} 到 {rms_norm_backward_most}，与 RoPE 融合的从 "
            "{qk_norm_rope_least} 到 {qk_norm_rope_most}。"
        ),
    },
    "en": {
        "title": "QK-Norm: share of the rate of a copy",
        "rms_norm": "RMSNorm of each head, forward",
        "rms_norm_backward": "RMSNorm of each head, backward",
        "qk_norm_rope": "RMSNorm fused with RoPE, forward",
        "ours": "this site's kernels",
        "torch": "torch",
        "torch_unfused": "unfused",
        "compile": "torch.compile",
        "liger": "Liger",
        "width": "features of a head (logarithmic)",
        "share": "share of the copy (%)",
        "band": (
            "Queries are a slice of a packed projection. Differences within the noise "
            "floor of {floor} are not resolved."
        ),
        "caption": (
            "Norms of the queries in a packed projection on {machine}: the bytes that "
            "a fused kernel must move, as a share of the rate of a large copy in the "
            "same run ({rate_1r1w}). Of a stream with the same reads, writes and "
            "bytes, this site's kernels reach {mix_least} to {mix_most}."
        ),
        "alt": (
            "Three line charts of the share of the copy rate against the features of a "
            "head. This site's kernels: forward from {rms_norm_least} to "
            "{rms_norm_most}, backward from {rms_norm_backward_least} to "
            "{rms_norm_backward_most}, fused with RoPE from {qk_norm_rope_least} to "
            "{qk_norm_rope_most}."
        ),
    },
}


def plot(record, words):
    from scripts.measure.kernels import drawing

    return drawing.shares(record, words, OPERATIONS, PROVIDERS, layout="packed")
