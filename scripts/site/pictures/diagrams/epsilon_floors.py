"""Where ε acts: output RMS against input RMS, ε inside the root, outside, and none."""

from math import log10, sqrt

from scripts.site.pictures.diagram import GRID, INK, MUTED, SERIES, SMALL, Canvas

WORDS = {
    "en": {
        "caption": "Where ε acts, both axes logarithmic. The same ε gives two floors:"
        " √ε inside the root, ε outside.",
        "alt": "Horizontal: the RMS of the input, vertical: the RMS of the output, both"
        " logarithmic. Without ε the output is 1 everywhere, a horizontal line. With ε"
        " inside the root the curve leaves that line smoothly at an input of √ε and"
        " falls in proportion to the input from there. With ε outside the root it does"
        " the same only at an input of ε, far to the left. Two dashed lines mark both"
        " places.",
        "inside": "inside:\nx / √(x² + ε)",
        "outside": "outside:\nx / (x + ε)",
        "none": "no ε",
        "input": "input RMS, x",
        "output": "output RMS",
    },
    "zh": {
        "caption": "ε 从哪里开始起作用，两轴都是对数刻度。同一个 ε，下限有两个："
        "根号里是 √ε，根号外是 ε。",
        "alt": "横轴是输入的 RMS，纵轴是输出的 RMS，都是对数刻度。没有 ε 时，输出处处"
        "为 1，是一条水平线。ε 放在根号里，曲线在输入约为 √ε 处平滑地离开这条线，再往左"
        "就随输入成比例地下降。ε 放在根号外，要到更左边、输入约为 ε 处才这样。两条竖直"
        "的虚线标出这两处。",
        "inside": "根号里：\nx / √(x² + ε)",
        "outside": "根号外：\nx / (x + ε)",
        "none": "没有 ε",
        "input": "输入 RMS，x",
        "output": "输出 RMS",
    },
}
EPS = 1e-6
LEFT, TOP = 0.55, 1.82  # where the input is FIRST and the output 1, in inches
DECADE = 0.45  # inches of a factor of ten, on both axes
FIRST, LAST, LEAST = -8.4, 1.0, -3.4  # powers of ten: inputs, least output


def _at(x: float, y: float) -> tuple[float, float]:
    return LEFT + (log10(x) - FIRST) * DECADE, TOP + log10(y) * DECADE


def _curve(canvas: Canvas, function, **options) -> None:
    steps = [10 ** (FIRST + (LAST - FIRST) * i / 200) for i in range(201)]
    seen = [(x, y) for x in steps if (y := function(x)) >= 10**LEAST]
    canvas.line([_at(x, y) for x, y in seen], **options)


def draw(words) -> Canvas:
    canvas = Canvas(5.0, 2.2)
    floor = 10**LEAST
    note = {"size": SMALL, "colour": MUTED}
    for x, name in ((sqrt(EPS), "√ε"), (EPS, "ε")):
        canvas.line([_at(x, floor), _at(x, 2)], colour=GRID, lines="--")
        across, below = _at(x, floor)
        canvas.text(across, below - 0.14, name, colour=INK)
    canvas.arrow(_at(10**FIRST, floor), _at(10**LAST, floor))
    canvas.arrow(_at(10**FIRST, floor), _at(10**FIRST, 3))
    _curve(canvas, lambda x: 1.0, colour=MUTED, lines=(0, (1.2, 1.4)))
    _curve(canvas, lambda x: x / (x + EPS), colour=SERIES[1], lines=(0, (5, 1.5)))
    _curve(canvas, lambda x: x / sqrt(x * x + EPS), colour=SERIES[0], width=2)
    canvas.text(LEFT - 0.08, TOP, "1", align="right", **note)
    canvas.text(LEFT - 0.3, TOP - 0.8, words["output"], rotation=90, **note)
    right, below = _at(10**LAST, floor)
    canvas.text(right, below - 0.14, words["input"], align="right", **note)
    canvas.text(LEFT + 0.1, TOP + 0.14, words["none"], align="left", **note)
    inside, outside = _at(1.5e-3, 0.1), _at(1.6e-6, 0.22)
    canvas.text(*inside, words["inside"], colour=SERIES[0], align="left", size=SMALL)
    canvas.text(*outside, words["outside"], colour=SERIES[1], align="left", size=SMALL)
    return canvas
