"""A gradient step at a right angle to the weight, without and with weight decay."""

from math import cos, hypot, radians, sin

from scripts.site.pictures.diagram import GRID, INK, MUTED, SERIES, SMALL, Canvas

WORDS = {
    "zh": {
        "caption": (
            "权重的输出直接进入归一化时，梯度与权重垂直：每一步都拉长权重，"
            "权重衰减再把它缩回来。"
        ),
        "alt": (
            "两幅图，各有一个圆心在原点的圆弧。左图：箭头 W 的端点在圆上，梯度步从端点"
            "沿切线走出，新的 W 落在圆外，所以更长。右图：先沿 W 往里缩一点（权重衰减"
            "），再沿切线走同样长的一步，新的 W 恰好回到原来的圆上。"
        ),
        "plain": "SGD",
        "decayed": "SGD 加权重衰减",
        "step": "梯度步",
        "decay": "衰减",
        "old": "W",
        "longer": "新的 W：更长",
        "level": "新的 W：一样长",
    },
    "en": {
        "caption": (
            "Read through a norm, the gradient is at a right angle to the weight: "
            "every step lengthens it, and weight decay shortens it again."
        ),
        "alt": (
            "Two pictures, each with an arc of a circle around the origin. Left: the "
            "arrow W ends on the circle, the gradient step leaves its tip along the "
            "tangent, and the new W ends outside of the circle, so it is longer. "
            "Right: first W is shortened a little by weight decay, then a step of the "
            "same length follows along the tangent, and the new W ends exactly on the "
            "old circle."
        ),
        "plain": "SGD",
        "decayed": "SGD with weight decay",
        "step": "gradient step",
        "decay": "decay",
        "old": "W",
        "longer": "new W: longer",
        "level": "new W: as long",
    },
}
RADIUS, STEP, AT = 1.6, 0.95, radians(68)


def arc(canvas: Canvas, x: float, y: float, radius: float, **options) -> None:
    angles = [radians(a) for a in range(18, 84, 2)]
    points = [(x + radius * cos(a), y + radius * sin(a)) for a in angles]
    canvas.line(points, width=1.1, **options)


def draw(words: dict) -> Canvas:
    canvas = Canvas(width=5.0, height=2.75)
    for x, title, end, shrunk in (
        (0.2, words["plain"], words["longer"], RADIUS),
        (2.75, words["decayed"], words["level"], (RADIUS**2 - STEP**2) ** 0.5),
    ):
        y = 0.35
        canvas.text(x + 1.0, 2.55, title, weight="bold")
        arc(canvas, x, y, RADIUS, colour=MUTED)
        if shrunk == RADIUS:
            arc(canvas, x, y, hypot(RADIUS, STEP), colour=GRID, lines="--")
        tip = (x + RADIUS * cos(AT), y + RADIUS * sin(AT))
        foot = (x + shrunk * cos(AT), y + shrunk * sin(AT))
        new = (foot[0] + STEP * sin(AT), foot[1] - STEP * cos(AT))
        canvas.arrow((x, y), tip, colour=INK)
        canvas.arrow((x, y), new, colour=SERIES[0], width=2.0)
        if shrunk != RADIUS:
            aside = (-0.09 * sin(AT), 0.09 * cos(AT))
            beside = [(px + aside[0], py + aside[1]) for px, py in (tip, foot)]
            canvas.arrow(*beside, colour=SERIES[1], width=2.0)
            decay = (beside[1][0] - 0.02, beside[0][1] - 0.18)
            canvas.text(
                *decay, words["decay"], size=SMALL, colour=SERIES[1], align="right"
            )
        canvas.arrow(foot, new, colour=SERIES[2], width=2.0)
        canvas.text(x + 0.12, y + 0.8, words["old"], size=SMALL)
        for text, at, colour in (
            (words["step"], (x + 1.08, y + 1.42), SERIES[2]),
            (end, (x + 0.55, y + 0.22), SERIES[0]),
        ):
            canvas.text(*at, text, size=SMALL, colour=colour, align="left")
    return canvas
