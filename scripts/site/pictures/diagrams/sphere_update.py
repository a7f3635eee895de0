"""One step of nGPT on the sphere: along the chord, then back to the surface."""

from math import cos, radians, sin

from scripts.site.pictures.diagram import GRID, INK, MUTED, SERIES, SMALL, Canvas

WORDS = {
    "en": {
        "caption": "One step on the sphere, in the plane of h and the branch",
        "alt": "A half circle around a centre. h is a point on it at the right,"
        " the normalized branch output b a point at the upper left. A straight"
        " chord joins them. The point h + α(b − h) lies on the chord, inside the"
        " circle; a short arrow moves it outwards onto the circle. The point"
        " that slerp reaches for the same α lies a little further along the arc.",
        "h": "h",
        "target": "b: branch,\nlength one",
        "chord": "h + α (b − h)",
        "step": "the step:\nback on the sphere",
        "slerp": "slerp with\nthe same α",
        "centre": "0",
    },
    "zh": {
        "caption": "球面上的一步，画在 h 与分支张成的平面里",
        "alt": "以圆心为中心的半圆。右侧的 h 在圆上，左上方的点 b 是归一化的分支"
        "输出，一条直弦连接两者。点 h + α(b − h) 在弦上、圆内，一个短箭头把它向外"
        "移到圆上。同样的 α，slerp 到达的点沿弧稍远一些。",
        "h": "h",
        "target": "b：分支，\n长度为 1",
        "chord": "h + α (b − h)",
        "step": "这一步：\n回到球面",
        "slerp": "slerp，\nα 相同",
        "centre": "0",
    },
}
CENTRE, RADIUS = (2.35, 0.45), 1.75
START, ARC, ALPHA = 12, 125, 0.35


def _at(degrees: float, radius: float = RADIUS) -> tuple[float, float]:
    angle = radians(degrees)
    return CENTRE[0] + radius * cos(angle), CENTRE[1] + radius * sin(angle)


def draw(words) -> Canvas:
    canvas = Canvas(5.0, 2.9)
    circle = [_at(angle) for angle in range(-8, 189, 2)]
    canvas.line(circle, colour=MUTED)
    h, target = _at(START), _at(START + ARC)
    chord = tuple(a + ALPHA * (b - a) for a, b in zip(h, target, strict=True))
    length = ((chord[0] - CENTRE[0]) ** 2 + (chord[1] - CENTRE[1]) ** 2) ** 0.5
    step = tuple(
        c + (p - c) * RADIUS / length for c, p in zip(CENTRE, chord, strict=True)
    )
    slerp = _at(START + ALPHA * ARC)
    for point in (h, target):
        canvas.line([CENTRE, point], colour=GRID)
    canvas.line([h, target], colour=INK, lines="--")
    canvas.arrow(chord, step, colour=SERIES[0], width=2)
    dots = ((h, INK), (target, INK), (chord, SERIES[0]), (step, SERIES[0]))
    for (x, y), colour in (*dots, (slerp, SERIES[1])):
        canvas.box(x - 0.05, y - 0.05, 0.1, 0.1, fill=colour, edge=colour)
    canvas.text(h[0] + 0.14, h[1], words["h"], align="left")
    canvas.text(target[0] - 0.28, target[1] + 0.34, words["target"], size=SMALL)
    canvas.text(chord[0] - 0.12, chord[1] - 0.16, words["chord"], align="right")
    canvas.text(step[0] + 0.12, step[1] + 0.12, words["step"], size=SMALL, align="left")
    canvas.text(
        slerp[0] + 0.05, slerp[1] + 0.3, words["slerp"], size=SMALL, align="left"
    )
    canvas.text(CENTRE[0], CENTRE[1] - 0.16, words["centre"], colour=MUTED)
    return canvas
