"""One row in a kernel: held in registers, or in pieces that are read twice."""

from scripts.site.pictures.diagram import INK, MUTED, PANEL, SERIES, SMALL, Canvas

WORDS = {
    "zh": {
        "caption": (
            "一行的去处。左：整行留在寄存器里，每个数从内存读一遍。右：放不下的行切成"
            "几段，求和时读一遍，缩放时再读一遍，第二遍从最后一段读起。数字是读取的顺"
            "序。"
        ),
        "alt": (
            "两列小图。左列：内存里的一行 x 有一支箭头指向寄存器里的一行，它旁边是平"
            "方和，再有一支箭头指向内存里的 y。右列：x 切成三段，分别标着 1 和 6、2 "
            "和 5、3 和 4。第 1 到 3 次读取送去求平方和，第 4 到 6 次送去缩放，缩放再"
            "指向 y。"
        ),
        "whole": "放得下的行",
        "wide": "放不下的行",
        "memory": "内存：x",
        "registers": "寄存器",
        "sum": "平方和 → r",
        "scale": "乘 r 和增益",
        "out": "内存：y",
        "once": "读一遍",
        "first": "1, 2, 3",
        "second": "4, 5, 6",
    },
    "en": {
        "caption": (
            "Where a row goes. Left: it stays in registers as a whole, and each "
            "number is read once. Right: a row that does not fit comes in pieces, "
            "once for the sum and once more to be scaled, the last piece first. The "
            "numbers say in which order."
        ),
        "alt": (
            "Two small pictures. Left: a row x in memory has one arrow into "
            "registers, where the sum of squares is made and the row is scaled; one "
            "arrow leads to y in memory. Right: x is cut into three pieces, marked 1 "
            "and 6, 2 and 5, 3 and 4. Readings 1 to 3 go into the sum of squares, "
            "readings 4 to 6 into the scaling, which leads to y."
        ),
        "whole": "a row that fits",
        "wide": "a row that does not",
        "memory": "memory: x",
        "registers": "registers",
        "sum": "squares → r",
        "scale": "times r, gain",
        "out": "memory: y",
        "once": "read once",
        "first": "1, 2, 3",
        "second": "4, 5, 6",
    },
}
LONG, HIGH = 2.1, 0.3


def row(canvas: Canvas, x: float, y: float, pieces: int, colour: str) -> None:
    """A row of so many pieces with its lower left at (x, y)."""
    for i in range(pieces):
        wide = LONG / pieces
        canvas.box(x + i * wide, y, wide, HIGH, round_by=0, fill=colour, edge=INK)


def draw(words: dict) -> Canvas:
    canvas = Canvas(5.0, 2.95)
    for x, name in ((0.1, "whole"), (2.8, "wide")):
        canvas.text(x, 2.8, words[name], align="left", weight="bold")
        canvas.text(x, 2.56, words["memory"], align="left", size=SMALL, colour=MUTED)
        canvas.text(x, 0.62, words["out"], align="left", size=SMALL, colour=MUTED)
        row(canvas, x, 0.2, 1, PANEL)
    row(canvas, 0.1, 2.12, 1, SERIES[0])
    canvas.arrow((1.15, 2.12), (1.15, 1.74), colour=INK)
    canvas.text(1.25, 1.93, words["once"], align="left", size=SMALL)
    canvas.box(0.1, 0.98, LONG, 0.76)
    canvas.text(0.2, 1.6, words["registers"], align="left", size=SMALL, colour=MUTED)
    row(canvas, 0.1, 1.18, 1, SERIES[0])
    canvas.text(0.62, 1.08, words["sum"], size=SMALL)
    canvas.text(1.68, 1.08, words["scale"], size=SMALL)
    canvas.arrow((1.68, 0.98), (1.68, 0.5), colour=INK)
    row(canvas, 2.8, 2.12, 3, SERIES[0])
    canvas.box(2.8, 0.98, 0.98, 0.4, words["sum"], size=SMALL)
    canvas.box(3.92, 0.98, 0.98, 0.4, words["scale"], size=SMALL)
    for i in range(3):
        order = f"{i + 1}, {6 - i}"
        canvas.text(3.15 + i * 0.7, 2.27, order, colour=PANEL, weight="bold")
    canvas.arrow((3.29, 2.12), (3.29, 1.38), colour=INK)
    canvas.arrow((4.41, 2.12), (4.41, 1.38), colour=INK)
    canvas.text(3.37, 1.75, words["first"], size=SMALL, align="left")
    canvas.text(4.49, 1.75, words["second"], size=SMALL, align="left")
    canvas.arrow((3.78, 1.18), (3.92, 1.18), colour=INK)
    canvas.arrow((4.41, 0.98), (4.41, 0.5), colour=INK)
    return canvas
