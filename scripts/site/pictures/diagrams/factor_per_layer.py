"""What eight factors make of a signal, and where a sigmoid has no slope."""

from math import exp

from scripts.site.pictures.diagram import GRID, INK, MUTED, PANEL, SERIES, Canvas

WORDS = {
    "zh": {
        "caption": "左：每层乘同一个倍数，纵轴每格是乘 16；归一化之后一直是 1。"
        "右：sigmoid 的两头是平的，那里几乎没有斜率。",
        "alt": "左图横轴是 0 到 8 层，纵轴是信号的大小，每格乘 16。每层乘 2 的线直线"
        "上升到 256，每层乘 1/2 的线直线下降到 1/256，有归一化的线一直停在 1。"
        "右图是 sigmoid 曲线，从 0 升到 1，中间陡，左右两块灰色的区域里几乎是平的。",
        "up": "每层乘 2",
        "down": "每层乘 1/2",
        "norm": "有归一化",
        "layers": "层",
        "flat": "平",
    },
    "en": {
        "caption": "Left: every layer multiplies by the same factor, a step upwards "
        "multiplies by 16; with a norm the size stays 1. Right: both ends of a sigmoid "
        "are flat, with almost no slope.",
        "alt": "Left, layers 0 to 8 to the right, the size of the signal upwards, each "
        "step multiplying by 16. The line for 2 a layer rises to 256, the "
        "line for 1/2 falls to 1/256, the line with a norm stays at 1. Right, a "
        "sigmoid from 0 to 1: steep in the middle, nearly flat in two shaded regions.",
        "up": "2 a layer",
        "down": "1/2 a layer",
        "norm": "with a norm",
        "layers": "layers",
        "flat": "flat",
    },
}
LEFT, LOW, HIGH, WIDE = 0.55, 0.45, 3.0, 2.1  # inches: the left graph
SIGMOID = (3.2, 4.8)  # from where to where


def draw(words: dict) -> Canvas:
    canvas = Canvas(5.0, 3.2)
    middle, step = (LOW + HIGH) / 2, (HIGH - LOW) / 16
    for power, label in ((8, "256"), (4, "16"), (0, "1"), (-4, "1/16"), (-8, "1/256")):
        y = middle + power * step
        canvas.line([(LEFT, y), (LEFT + WIDE, y)], colour=GRID, width=1.0)
        canvas.text(LEFT - 0.08, y, label, align="right", colour=MUTED)
    for layer in (0, 4, 8):
        x = LEFT + WIDE * layer / 8
        canvas.text(x, LOW - 0.17, str(layer), colour=MUTED)
    canvas.text(LEFT + WIDE / 4, LOW - 0.17, words["layers"], colour=MUTED)
    for sign, colour, name, at in (
        (1, SERIES[1], "up", 0.82),
        (0, SERIES[0], "norm", 0.14),
        (-1, SERIES[3], "down", -0.82),
    ):
        ends = [(LEFT, middle), (LEFT + WIDE, middle + sign * 8 * step)]
        canvas.line(ends, colour=colour, width=2.4)
        x = LEFT + WIDE * (0.98 if not sign else 0.42)
        canvas.text(x, middle + at, words[name], align="right", colour=colour)
    sigmoid(canvas, words)
    return canvas


def sigmoid(canvas: Canvas, words: dict) -> None:
    left, right = SIGMOID
    low, high = 0.95, 2.5
    for start in (left, right - 0.45):
        canvas.box(start, low, 0.45, high - low, edge="none", fill=PANEL, round_by=0)
        canvas.text(start + 0.22, (low + high) / 2, words["flat"], colour=MUTED)
    canvas.line([(left, low), (right, low)], colour=INK, width=1.1)
    points = [
        (left + (right - left) * i / 60, low + (high - low) / (1 + exp(6 - i / 5)))
        for i in range(61)
    ]
    canvas.line(points, colour=SERIES[0], width=2.2)
    canvas.text((left + right) / 2, 2.78, "sigmoid", weight="bold")
    for z, at in ((-6, left), (0, (left + right) / 2), (6, right)):
        canvas.text(at, low - 0.17, f"{z}".replace("-", "−"), colour=MUTED)
