"""A Pre-LN block and the same block with NormFormer's additions."""

from scripts.site.pictures.diagram import GRID, INK, MUTED, SERIES, SMALL, TEXT, Canvas

WORDS = {
    "en": {
        "pre": "Pre-LN",
        "normformer": "NormFormer",
        "layer_norm": "LayerNorm",
        "qkv": "q, k, v",
        "heads": "attention heads",
        "scale": "× γ per head",
        "out": "out",
        "fc1": "fc1",
        "gelu": "GELU",
        "fc2": "fc2",
        "resid": "× λ",
        "stream": "residual stream",
        "caption": "The same block twice. Orange: what NormFormer adds. Dashed: "
        "the optional factor λ on the residual stream.",
        "alt": "Two columns, read from bottom to top. Left, Pre-LN: LayerNorm, the "
        "linear layers q, k, v, the attention heads, out, plus; LayerNorm, fc1, "
        "GELU, fc2, plus. Right, NormFormer: the same, with three additions in "
        "orange. A learned factor per head between the heads and out; a "
        "LayerNorm between out and the plus; a LayerNorm between GELU and fc2. A "
        "dashed box on the stream beside the feed-forward branch is the optional "
        "factor λ.",
    },
    "zh": {
        "pre": "Pre-LN",
        "normformer": "NormFormer",
        "layer_norm": "LayerNorm",
        "qkv": "q、k、v",
        "heads": "各注意力头",
        "scale": "每个头 × γ",
        "out": "out",
        "fc1": "fc1",
        "gelu": "GELU",
        "fc2": "fc2",
        "resid": "× λ",
        "stream": "残差流",
        "caption": "同一个块画两遍。橙色是 NormFormer 添加的，"
        "虚线是残差流上可选的系数 λ。",
        "alt": "左右两列，都自下而上读。左边是 Pre-LN：LayerNorm、线性层 q、k、v、"
        "各注意力头、out、相加；然后是 LayerNorm、fc1、GELU、fc2、相加。"
        "右边是 NormFormer：与左边相同，橙色的是三处改动。各头与 out 之间，每个头乘"
        "一个可学习的系数；out 与相加之间有一个 LayerNorm；GELU 与 fc2 之间有一个 "
        "LayerNorm。前馈分支旁边，残差流上的虚线框是可选的系数 λ。",
    },
}
WIDE, HIGH, STEP = 1.22, 0.3, 0.42
ATTENTION = ("layer_norm", "qkv", "heads", "+scale", "out", "+layer_norm")
FFN = ("layer_norm", "fc1", "gelu", "+layer_norm", "fc2")
ADDED = SERIES[1]


def draw(words: dict[str, str]) -> Canvas:
    canvas = Canvas(5.0, 6.5)
    column(canvas, words, 0.0, added=False)
    column(canvas, words, 2.5, added=True)
    canvas.line([(2.42, 0.1), (2.42, 6.4)], colour=GRID, width=1.0)
    return canvas


def column(canvas: Canvas, words: dict[str, str], left: float, added: bool) -> None:
    title = words["normformer" if added else "pre"]
    canvas.text(left + 1.2, 6.32, title, size=TEXT, weight="bold")
    stream, middle = left + 0.5, left + 1.62
    first = branch(canvas, words, stream, middle, 0.35, ATTENTION, added)
    second = branch(canvas, words, stream, middle, first + 0.22, FFN, added)
    canvas.line([(stream, 0.1), (stream, first - 0.11)])
    canvas.plus(stream, first)
    if added:
        low, width = second - 1.3, 0.5
        canvas.line([(stream, first + 0.11), (stream, low)])
        canvas.box(
            stream - width / 2,
            low,
            width,
            HIGH,
            words["resid"],
            size=SMALL,
            colour=ADDED,
            edge=ADDED,
            lines="--",
        )
        canvas.line([(stream, low + HIGH), (stream, second - 0.11)])
    else:
        canvas.line([(stream, first + 0.11), (stream, second - 0.11)])
    canvas.plus(stream, second)
    canvas.arrow((stream, second + 0.11), (stream, 6.12))
    canvas.text(
        stream - 0.26, 1.6, words["stream"], size=SMALL, colour=MUTED, rotation=90
    )


def branch(
    canvas: Canvas,
    words: dict[str, str],
    stream: float,
    middle: float,
    bottom: float,
    parts: tuple[str, ...],
    added: bool,
) -> float:
    """A branch upwards from bottom; the height at which it is added."""
    first, last = bottom + 0.15, bottom + 0.15 + STEP * (len(parts) - 1)
    canvas.arrow((stream, bottom), (middle, bottom), (middle, first - 0.01))
    shown = [
        (first + STEP * number, part.removeprefix("+"), part.startswith("+"))
        for number, part in enumerate(parts)
        if added or not part.startswith("+")
    ]
    for number, (y, part, new) in enumerate(shown):
        colour, edge = (ADDED, ADDED) if new else (INK, MUTED)
        canvas.box(
            middle - WIDE / 2,
            y,
            WIDE,
            HIGH,
            words[part],
            size=SMALL,
            colour=colour,
            edge=edge,
        )
        if number:
            canvas.arrow((middle, shown[number - 1][0] + HIGH), (middle, y))
    top = shown[-1][0] + HIGH
    turn = last + HIGH + 0.14
    canvas.arrow((middle, top), (middle, turn), (stream + 0.12, turn))
    return turn
