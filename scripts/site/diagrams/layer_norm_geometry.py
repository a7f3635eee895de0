"""LayerNorm with three features: drop onto the plane, then stretch to the circle."""

from math import cos, pi, sin, sqrt

from scripts.site.diagram import GRID, INK, MUTED, PANEL, SERIES, SMALL, Canvas

WORDS = {
    "en": {
        "caption": "LayerNorm of a token with three features: centring drops it onto "
        "the plane of zero sum, the division moves it to the circle.",
        "alt": "A plane seen at an angle, with a circle around its centre. A line "
        "marked all-ones stands upright on it. An arrow x starts at the centre and "
        "rises above the plane; a dashed line parallel to the all-ones line drops "
        "from its tip onto the plane, inside the circle, at x minus its mean. From "
        "there an arrow along the plane, straight away from the centre, ends on the "
        "circle, at y.",
        "ones": "all-ones direction",
        "plane": "plane: features sum to 0",
        "circle": "circle: length √3",
        "x": "x",
        "centred": "x − mean",
        "y": "y",
        "drop": "1. subtract the mean",
        "stretch": "2. divide by\nthe std",
    },
    "zh": {
        "caption": "三个特征的 token 做 LayerNorm：中心化让它落到“和为零”的平面上，"
        "除法把它移到圆上。",
        "alt": "斜着看的一个平面，平面上有一个圆，圆心是原点。一条标着“全一方向”的直线"
        "垂直立在平面上。箭头 x 从圆心出发，伸到平面上方；从它的顶端有一条与全一方向"
        "平行的虚线落到平面上，落点在圆内，是 x 减均值。从落点出发，一个箭头沿着平面、"
        "背离圆心，终点在圆上，是 y。",
        "ones": "全一方向",
        "plane": "平面：各特征之和为 0",
        "circle": "圆：长度为 √3",
        "x": "x",
        "centred": "x − 均值",
        "y": "y",
        "drop": "1. 减去均值",
        "stretch": "2. 除以标准差",
    },
}
TILT = 0.42  # how flat the plane looks
CENTRE = (2.05, 1.28)
RADIUS = 1.35


def place(east: float, north: float, up: float = 0.0) -> tuple[float, float]:
    """Where a point of the plane, lifted by ``up``, is drawn."""
    return CENTRE[0] + east, CENTRE[1] + TILT * north + up


def draw(words) -> Canvas:
    from matplotlib.patches import Polygon

    canvas = Canvas(5.0, 3.55)
    corners = [place(-1.9, -1.9), place(1.65, -1.9), place(2.1, 1.9), place(-1.45, 1.9)]
    canvas.axes.add_patch(
        Polygon(corners, facecolor=PANEL, edgecolor=GRID, linewidth=1.1)
    )
    turn = [2 * pi * i / 120 for i in range(121)]
    circle = [place(RADIUS * cos(a), RADIUS * sin(a)) for a in turn]
    canvas.line(circle, colour=SERIES[0], width=1.8)
    canvas.line([place(0, 0), place(0, 0, 1.95)], colour=MUTED, lines="--")

    foot, height = (0.62, -0.42), 1.25
    far = RADIUS / sqrt(foot[0] ** 2 + foot[1] ** 2)
    end = (foot[0] * far, foot[1] * far)
    canvas.arrow(place(0, 0), place(*foot, height), colour=INK, width=1.8)
    canvas.arrow(
        place(*foot, height - 0.04), place(*foot), colour=SERIES[1], lines="--"
    )
    canvas.arrow(place(0, 0), place(*foot), colour=MUTED)
    canvas.arrow(place(*foot), place(*end), colour=SERIES[2], width=1.8)

    x, y = place(*foot, height)
    canvas.text(x + 0.1, y + 0.1, words["x"], align="left", weight="bold")
    canvas.text(x + 0.1, y - 0.45, words["drop"], align="left", colour=SERIES[1])
    x, y = place(*foot)
    canvas.text(x - 0.12, y - 0.14, words["centred"], align="right", size=SMALL)
    x, y = place(*end)
    canvas.text(x + 0.12, y - 0.02, words["y"], align="left", weight="bold")
    canvas.text(4.92, y - 0.08, words["stretch"], align="right", colour=SERIES[2])
    x, y = place(0, 0, 1.95)
    canvas.text(x, y + 0.15, words["ones"], colour=MUTED)
    canvas.text(0.1, 0.22, words["plane"], align="left", colour=MUTED, size=SMALL)
    canvas.text(4.9, 0.22, words["circle"], align="right", colour=SERIES[0], size=SMALL)
    return canvas
