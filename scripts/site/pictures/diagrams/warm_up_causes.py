"""What is too large in the first steps: the five explanations of warm-up."""

from math import cos, radians, sin

from scripts.site.pictures.diagram import GRID, INK, MUTED, SERIES, SMALL, Canvas

WORDS = {
    "zh": {
        "caption": ("示意图，不是实测：五种解释各说头几步的什么太大（橙色）。"),
        "alt": (
            "五幅小图并排。第一幅“二阶矩”：几根竖条，都是 1/√v 的估计，高低差得很远，"
            "一条虚线是它们的平均。第二幅“更新放大”：输入处的小箭头，经过一摞方框，变成"
            "输出处的大箭头。第三幅“输出梯度”：一摞横条，越靠近顶上的输出越长。第四幅"
            "“曲率”：一个山谷，一步从左坡跨过谷底，落在右坡更高的地方。第五幅“转角”："
            "权重的箭头一步转过很大的角度。"
        ),
        "variance": "① 二阶矩",
        "amplification": "② 更新放大",
        "output": "③ 输出梯度",
        "curvature": "④ 曲率",
        "rotation": "⑤ 转角",
    },
    "en": {
        "caption": (
            "A sketch, not measured: what each of the five explanations says is too "
            "large in the first steps (orange)."
        ),
        "alt": (
            "Five small pictures in a row. First, variance: several bars, each an "
            "estimate of 1/√v, of very different heights; a dashed line is their "
            "mean. Second, amplified updates: a small arrow at the input becomes a "
            "large one at the output of a stack of boxes. Third, gradients near the "
            "output: a stack of bars, longer towards the output at the top. Fourth, "
            "curvature: a valley in which one step leads from the left slope across "
            "the bottom to a higher place on the right. Fifth, rotation: the arrow of "
            "a weight turns by a large angle in one step."
        ),
        "variance": "① noise",
        "amplification": "② amplified",
        "output": "③ output",
        "curvature": "④ curvature",
        "rotation": "⑤ rotation",
    },
}
WIDE, FLOOR, LARGE = 0.98, 0.12, SERIES[1]
ROOM = {"round_by": 0, "edge": MUTED}


def draw(words: dict[str, str]) -> Canvas:
    canvas = Canvas(width=5.0, height=1.6)
    pictures = (_variance, _amplification, _output, _curvature, _rotation)
    for number, picture in enumerate(pictures):
        left = 0.05 + number * WIDE
        name = picture.__name__.strip("_")
        canvas.text(left + WIDE / 2, 1.46, words[name], size=SMALL)
        picture(canvas, left + 0.12, WIDE - 0.24)
    return canvas


def _variance(canvas: Canvas, left: float, wide: float) -> None:
    """Estimates of 1/√v, scattered around their mean."""
    heights = (0.3, 1.1, 0.18, 0.55, 0.12, 0.8)
    step = wide / len(heights)
    for i, high in enumerate(heights):
        fill = LARGE if high > 0.5 else GRID
        canvas.box(left + i * step, FLOOR, step * 0.7, high, fill=fill, **ROOM)
    mean = FLOOR + sum(heights) / len(heights)
    canvas.line([(left - 0.05, mean), (left + wide, mean)], colour=INK, lines="--")


def _amplification(canvas: Canvas, left: float, wide: float) -> None:
    """A small change at the input, a large one at the output."""
    middle = left + wide / 2
    for i in range(3):
        canvas.box(middle - 0.22, FLOOR + 0.22 + i * 0.25, 0.44, 0.2, round_by=0.03)
    canvas.arrow((middle, FLOOR), (middle + 0.16, FLOOR), colour=MUTED)
    canvas.arrow((middle - 0.36, 1.18), (middle + 0.36, 1.18), colour=LARGE, width=2.2)


def _output(canvas: Canvas, left: float, wide: float) -> None:
    """Gradients by layer, the output at the top."""
    for i, share in enumerate((0.12, 0.2, 0.34, 0.58, 1.0)):
        fill = LARGE if i > 2 else GRID
        canvas.box(left, FLOOR + i * 0.22, wide * share, 0.16, fill=fill, **ROOM)


def _curvature(canvas: Canvas, left: float, wide: float) -> None:
    """A valley, and a step across its bottom to a higher place."""

    def place(at: float) -> tuple[float, float]:
        return left + wide * (at + 1) / 2, FLOOR + 1.05 * at**2

    canvas.line([place(i / 10) for i in range(-10, 11)], colour=MUTED)
    canvas.arrow(place(-0.65), place(-0.3), colour=MUTED)
    canvas.arrow(place(-0.65), place(0.95), colour=LARGE, width=2.0)


def _rotation(canvas: Canvas, left: float, wide: float) -> None:
    """A weight before and after a step, as two arrows of one length."""

    def tip(angle: float, radius: float = 1.0) -> tuple[float, float]:
        turn = radians(angle)
        return left + radius * cos(turn) * 0.95, FLOOR + radius * sin(turn) * 0.95

    canvas.arrow((left, FLOOR), tip(48), colour=MUTED)
    canvas.arrow((left, FLOOR), tip(88), colour=LARGE, width=2.0)
    arc = [tip(angle, 0.55) for angle in range(50, 87, 4)]
    canvas.line(arc, colour=INK)
