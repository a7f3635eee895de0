"""Equal steps at right angles: the stream gets longer, each step turns it less."""

from itertools import pairwise
from math import cos, pi, sin

from scripts.site.pictures.diagram import GRID, INK, MUTED, SERIES, SMALL, Canvas

WORDS = {
    "zh": {
        "caption": (
            "每一层加上同样长、与残差流垂直的一步：残差流的模变大，每一步转过的角度变小。"
        ),
        "alt": (
            "一条由等长的小线段连成的螺线，从中心向外绕。第一段是嵌入；之后每一段是"
            "一层加上的更新，与从中心到上一个端点的连线垂直。从中心到各端点的细线"
            "越来越长，相邻两条细线的夹角越来越小，但螺线一直在转，没有停下。"
        ),
        "embedding": "嵌入",
        "first": "第 1 层",
        "last": "第 14 层",
        "note": "各步等长",
    },
    "en": {
        "caption": (
            "Each layer adds a step of the same length at a right angle to the "
            "stream: the stream gets longer, each step turns it by less."
        ),
        "alt": (
            "A spiral made of short segments of equal length, winding outwards from "
            "a centre. The first segment is the embedding; every further one is what "
            "a layer adds, at a right angle to the line from the centre to the end "
            "before it. The thin lines from the centre grow longer and the angle "
            "between neighbours shrinks, but the spiral keeps turning."
        ),
        "embedding": "embedding",
        "first": "layer 1",
        "last": "layer 14",
        "note": "all steps equally long",
    },
}
UNIT, STEPS = 0.44, 14  # inches of one step


def draw(words) -> Canvas:
    canvas = Canvas(4.4, 3.1)
    centre = (2.0, 2.05)
    ends = [1 + 0j]
    for _ in range(STEPS):
        last = ends[-1]
        ends.append(last + 1j * last / abs(last))
    turn = complex(cos(-0.15 * pi), sin(-0.15 * pi))
    points = [
        (centre[0] + UNIT * (turn * z).real, centre[1] + UNIT * (turn * z).imag)
        for z in ends
    ]
    for point in points[1:]:
        canvas.line([centre, point], colour=GRID, width=1.0)
    canvas.line([centre, points[0]], colour=INK, width=2.6)
    for one, two in pairwise(points):
        canvas.arrow(one, two, colour=SERIES[0], width=2.0)
    canvas.text(points[0][0] + 0.1, points[0][1] - 0.17, words["embedding"], size=SMALL)
    x, y = points[1]
    canvas.text(x + 0.08, y - 0.12, words["first"], size=SMALL, align="left")
    x, y = points[-1]
    canvas.text(x + 0.1, y, words["last"], size=SMALL, align="left")
    canvas.text(2.0, 0.12, words["note"], size=SMALL, colour=MUTED)
    return canvas
