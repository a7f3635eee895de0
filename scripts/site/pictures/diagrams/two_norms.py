"""LayerNorm and RMSNorm of the same four numbers, as bars."""

from math import sqrt

from scripts.site.pictures.diagram import INK, MUTED, SERIES, Canvas

WORDS = {
    "zh": {
        "caption": "同样的四个数：LayerNorm 先把均值（虚线）挪到 0 再缩放，"
        "RMSNorm 只缩放，四根柱子的高低比例不变。",
        "alt": "三组柱子，各四根。输入是 3、−1、4、−2，虚线标出均值 1。LayerNorm 的"
        "四根柱子两正两负，前两根一样高，后两根一样高，均值在 0。RMSNorm 的四根柱子与"
        "输入成比例，虚线标出的均值不在 0。",
        "input": "输入",
    },
    "en": {
        "caption": "The same four numbers: LayerNorm moves the mean (dashed) to 0 and "
        "then scales, RMSNorm scales alone, so the proportions of the bars stay.",
        "alt": "Three groups of four bars. The input is 3, −1, 4, −2, a dashed line "
        "marks its mean, 1. LayerNorm gives two positive and two negative bars, equal "
        "in pairs, with the mean at 0. RMSNorm gives bars in proportion to the input, "
        "and the dashed mean is not 0.",
        "input": "input",
    },
}
ROW = (3.0, -1.0, 4.0, -2.0)
ZERO, GROUP, BAR = 1.1, 1.62, 0.22  # inches


def normed(row, centre: bool) -> list[float]:
    mean = sum(row) / len(row) if centre else 0.0
    root = sqrt(sum((v - mean) ** 2 for v in row) / len(row))
    return [(v - mean) / root for v in row]


def draw(words: dict) -> Canvas:
    canvas = Canvas(5.0, 2.75)
    groups = (
        (words["input"], ROW, 0.27, "{:.0f}", MUTED),
        ("LayerNorm", normed(ROW, True), 0.72, "{:.2f}", SERIES[1]),
        ("RMSNorm", normed(ROW, False), 0.72, "{:.2f}", SERIES[0]),
    )
    for i, (name, values, scale, form, colour) in enumerate(groups):
        left = 0.12 + GROUP * i
        canvas.text(left + 0.76, 2.58, name, weight="bold")
        canvas.line([(left, ZERO), (left + 1.52, ZERO)], colour=INK, width=1.1)
        for j, value in enumerate(values):
            x, tall = left + 0.08 + 0.38 * j, value * scale
            low = ZERO + min(tall, 0)
            canvas.box(x, low, BAR, abs(tall), fill=colour, edge="none", round_by=0)
            text = form.format(value).replace("-", "−")
            y = ZERO + tall + (0.13 if value > 0 else -0.13)
            canvas.text(x + BAR / 2, y, text, size=9.5)
        mean = ZERO + scale * sum(values) / len(values)
        if abs(mean - ZERO) > 0.01:
            ends = [(left, mean), (left + 1.52, mean)]
            canvas.line(ends, colour=INK, width=1.1, lines=(0, (3, 2)))
    return canvas
