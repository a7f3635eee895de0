"""A pair of features counts with its largest gains: RoPE turns one onto the other."""

from math import cos, pi, sin

from scripts.site.pictures.diagram import GRID, MUTED, SERIES, SMALL, Canvas

WORDS = {
    "zh": {
        "caption": "同一对里的两个特征。查询的增益是 3 和 1，键的增益是 1 和 3。"
        "转过直角，两个 3 就遇上了。",
        "alt": "三幅小图，都是两根轴组成的平面。左：增益 3 和 1 把查询的单位圆拉成横放"
        "的椭圆。中：RoPE 转过直角，椭圆竖起来。右：增益 1 和 3 把键的单位圆拉成竖放的"
        "椭圆，与中图重合。",
        "query": "查询，乘增益",
        "turned": "RoPE 转过直角",
        "key": "键，乘增益",
        "first": "特征 0",
        "second": "特征 32",
    },
    "en": {
        "caption": "The two features of one pair. The query's gains are (3, 1), the "
        "key's (1, 3). After a right angle the two threes meet.",
        "alt": "Three small pictures of a plane with two axes. Left: gains of 3 and 1 "
        "stretch the unit circle of queries into an ellipse that lies flat. Middle: "
        "RoPE turns it by a right angle, and it stands upright. Right: gains of 1 and "
        "3 stretch the unit circle of keys into an upright ellipse, the same as in the "
        "middle.",
        "query": "query, with gains",
        "turned": "turned by RoPE",
        "key": "key, with gains",
        "first": "feature 0",
        "second": "feature 32",
    },
}
UNIT, REACH = 0.21, 0.72  # one unit, and how far the axes go, in inches


def ellipse(canvas: Canvas, x: float, y: float, wide: float, tall: float, **options):
    angles = [2 * pi * i / 60 for i in range(61)]
    points = [(x + wide * UNIT * cos(a), y + tall * UNIT * sin(a)) for a in angles]
    canvas.line(points, **options)


def draw(words: dict[str, str]) -> Canvas:
    canvas = Canvas(width=5.0, height=2.06)
    kinds = (
        (0.86, "query", 3, 1, SERIES[0]),
        (2.5, "turned", 1, 3, SERIES[0]),
        (4.14, "key", 1, 3, SERIES[1]),
    )
    y = 0.98
    for x, name, wide, tall, colour in kinds:
        canvas.text(x, 1.93, words[name])
        canvas.arrow((x - REACH, y), (x + REACH, y), colour=MUTED, width=1)
        canvas.arrow((x, y - REACH), (x, y + REACH), colour=MUTED, width=1)
        ellipse(canvas, x, y, 1, 1, colour=GRID)
        ellipse(canvas, x, y, wide, tall, colour=colour, width=2)
    note = {"size": SMALL, "colour": MUTED}
    canvas.text(0.86 + REACH, y - 0.32, words["first"], align="right", **note)
    canvas.text(0.86 + 0.08, y + REACH - 0.02, words["second"], align="left", **note)
    return canvas
