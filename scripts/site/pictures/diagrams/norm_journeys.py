"""What each way of writing a norm reads and writes, kernel by kernel."""

from scripts.site.pictures.diagram import MUTED, PANEL, SERIES, SMALL, Canvas
from scripts.site.reading.source import ROOT
from snippets.speed.byte_count import FUSED_NORM, HAND_LAYER_NORM, HAND_RMS_NORM

WORDS = {
    "en": {
        "caption": "Bytes moved for one bfloat16 number, as counted below: a blue box "
        "is a read, an orange one a write, wide boxes are float32. A gap separates "
        "two kernels.",
        "alt": "Four rows of boxes. LayerNorm fused and RMSNorm fused are the same: "
        "one read and one write. LayerNorm by hand has six kernels, two that only "
        "read and four that read and write. RMSNorm by hand has six kernels too, and "
        "most of its boxes are twice as wide, since they are float32; its row is the "
        "longest by far.",
        "layer": "LayerNorm, fused",
        "rms": "RMSNorm, fused",
        "hand_layer": "LayerNorm by hand",
        "hand_rms": "RMSNorm by hand, with the upcast",
    },
    "zh": {
        "caption": "一个 bfloat16 数要搬多少字节，数法见下文：蓝框是读，橙框是写，"
        "宽框是 float32。空隙隔开两个 kernel。",
        "alt": "四行方框。融合的 LayerNorm 和融合的 RMSNorm 完全一样：读一次，写一次。"
        "手写 LayerNorm 有六个 kernel，两个只读，四个又读又写。手写 RMSNorm 也有六个 "
        "kernel，但多数方框更宽，因为它们是 float32；这一行比其余各行长得多。",
        "layer": "LayerNorm，融合",
        "rms": "RMSNorm，融合",
        "hand_layer": "LayerNorm，手写",
        "hand_rms": "RMSNorm，手写，提升精度",
    },
}
ROWS = {
    "layer": FUSED_NORM,
    "rms": FUSED_NORM,
    "hand_layer": HAND_LAYER_NORM,
    "hand_rms": HAND_RMS_NORM,
}
BYTES, GAP, TALL, STEP = 0.108, 0.15, 0.22, 0.56  # inches
WIDTHS = {"x": 2, "f": 4}  # bytes of a bfloat16 and of a float32
INPUTS = (ROOT / "snippets" / "speed" / "byte_count.py",)


def draw(words: dict[str, str]) -> Canvas:
    canvas = Canvas(5.0, 2.3)
    for row, (name, chain) in enumerate(ROWS.items()):
        low, x = 1.8 - row * STEP, 0.08
        canvas.text(0.08, low + TALL + 0.12, words[name], size=SMALL, align="left")
        for _, read, written in chain:
            for tensor, colour in (
                *((tensor, SERIES[0]) for tensor in read),
                *((tensor, SERIES[1]) for tensor in written),
            ):
                wide = WIDTHS[tensor] * BYTES
                canvas.box(
                    x,
                    low,
                    wide,
                    TALL,
                    round_by=0,
                    fill=colour,
                    edge=PANEL,
                )
                x += wide
            x += GAP
        total = sum(WIDTHS[t] for _, read, written in chain for t in read + written)
        canvas.text(
            x - GAP + 0.06, low + TALL / 2, str(total), align="left", colour=MUTED
        )
    return canvas
