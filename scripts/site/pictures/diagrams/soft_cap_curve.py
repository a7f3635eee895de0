"""Soft cap and clamp as curves, and where the two caps of a model sit."""

from math import tanh

from scripts.site.pictures.diagram import GRID, MUTED, SERIES, SMALL, Canvas

WORDS = {
    "zh": {
        "caption": "上：软上限是光滑的曲线，硬截断有折角。下：两处软上限的位置。",
        "alt": "横轴是 logit，纵轴是加上限之后的值。硬截断沿对角线走到 cap，然后变成"
        "水平线；软上限在零附近贴着对角线，然后平滑地弯向 cap，永远达不到。下面两行"
        "方框：注意力里依次是点积、缩放、软上限、掩码、softmax；输出端依次是输出层、"
        "软上限、损失或采样。",
        "soft": "软上限",
        "hard": "硬截断（clamp）",
        "logit": "logit",
        "attention": "注意力",
        "dots": "q·k 缩放",
        "cap": "软上限",
        "mask": "掩码",
        "softmax": "softmax",
        "final": "输出",
        "head": "输出层",
        "loss": "损失、采样",
    },
    "en": {
        "caption": "Top: the soft cap is a smooth curve, the clamp has a corner. "
        "Bottom: where the two caps sit.",
        "alt": "Horizontal: the logit, vertical: its value after the cap. The clamp "
        "follows the diagonal up to cap and is flat from there; the soft cap leaves "
        "the diagonal gently and bends towards cap without reaching it. Below, two "
        "rows of boxes: in attention dot product and scale, soft cap, mask, softmax; "
        "at the output head, soft cap, loss or sampling.",
        "soft": "soft cap",
        "hard": "clamp",
        "logit": "logit",
        "attention": "attention",
        "dots": "q·k, scale",
        "cap": "soft cap",
        "mask": "mask",
        "softmax": "softmax",
        "final": "output",
        "head": "head",
        "loss": "loss, sampling",
    },
}
X, Y, CAP = 2.5, 2.72, 0.8  # the origin of the curve, and cap in inches
SPAN = 2.3  # how far the curve goes to each side


def curve(canvas: Canvas, function, **options) -> None:
    steps = [SPAN * i / 60 for i in range(-60, 61)]
    canvas.line([(X + z, Y + function(z)) for z in steps], **options)


def row(canvas: Canvas, y: float, texts: list[str], capped: int) -> None:
    """Boxes from left to right with arrows; the one that caps is coloured."""
    wide = (4.84 - 0.22 * (len(texts) - 1)) / len(texts)
    for i, text in enumerate(texts):
        left = 0.08 + i * (wide + 0.22)
        colour = {"edge": SERIES[0], "colour": SERIES[0]} if i == capped else {}
        canvas.box(left, y, wide, 0.36, text, **colour)
        if i:
            canvas.arrow((left - 0.22, y + 0.18), (left, y + 0.18))


def draw(words: dict[str, str]) -> Canvas:
    canvas = Canvas(width=5.0, height=3.88)
    for height in (-CAP, CAP):
        ends = [(X - SPAN, Y + height), (X + SPAN, Y + height)]
        canvas.line(ends, colour=GRID, lines="--")
    canvas.arrow((X - SPAN, Y), (X + SPAN, Y))
    canvas.arrow((X, Y - 1.05), (X, Y + 1.1))
    hard = {"colour": SERIES[1], "lines": (0, (5, 1.5))}
    curve(canvas, lambda z: min(max(z, -CAP), CAP), **hard)
    curve(canvas, lambda z: CAP * tanh(z / CAP), colour=SERIES[0], width=2)
    note = {"size": SMALL, "colour": MUTED}
    canvas.text(X - 0.08, Y + CAP + 0.12, "cap", align="right", **note)
    canvas.text(X + 0.08, Y - CAP - 0.12, "−cap", align="left", **note)
    canvas.text(X + SPAN, Y - 0.14, words["logit"], align="right", **note)
    canvas.text(X + 0.9, Y + CAP + 0.14, words["hard"], colour=SERIES[1], align="left")
    canvas.text(X + 0.9, Y + 0.42, words["soft"], colour=SERIES[0], align="left")
    canvas.text(0.08, 1.4, words["attention"], align="left", **note)
    stages = [words[name] for name in ("dots", "cap", "mask", "softmax")]
    row(canvas, 0.92, stages, capped=1)
    canvas.text(0.08, 0.62, words["final"], align="left", **note)
    row(canvas, 0.14, [words[name] for name in ("head", "cap", "loss")], capped=1)
    return canvas
