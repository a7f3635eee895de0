"""What a gradient meets on the stream of Pre-Norm and of Post-Norm."""

from scripts.site.pictures.diagram import INK, MUTED, NORM, PANEL, SERIES, Canvas

WORDS = {
    "zh": {
        "caption": "梯度沿残差流从右往左走。Pre-Norm 的直路上只有加号，每块乘 1；"
        "Post-Norm 的直路上每块有一个归一化，乘 1/σ。",
        "alt": "上下两条路，都从左边的嵌入通到右边的输出，各有三个块，每块有一条从路上"
        "分出又在加号处汇入的分支 F。上面是 Pre-Norm：归一化 N 在分支里，路上只有三个"
        "加号，下面写着乘 1。下面是 Post-Norm：每个加号之后路上有一个方框 N，下面写着"
        "乘 1/σ。箭头从右往左，表示梯度的方向。",
        "gradient": "梯度",
    },
    "en": {
        "caption": "A gradient runs along the stream from right to left. In Pre-Norm "
        "the direct path meets only sums, times 1 a block; in Post-Norm it meets a "
        "norm a block, times 1/σ.",
        "alt": "Two lines from the embedding on the left to the output on the right, "
        "each with three blocks; in each a branch F leaves the line and comes back at "
        "a plus. Above, Pre-Norm: the norm N is in the branch, the line meets three "
        "sums, below them times 1. Below, Post-Norm: after each plus a box N is on the "
        "line, below it times 1/σ. An arrow from right to left is the gradient.",
        "gradient": "gradient",
    },
}
BLOCK, LEFT = 1.42, 0.3


def draw(words: dict) -> Canvas:
    canvas = Canvas(5.0, 3.6)
    for y, title in ((2.25, "Pre-Norm"), (0.55, "Post-Norm")):
        pre = title == "Pre-Norm"
        canvas.text(0.1, y + 1.15, title, weight="bold", align="left")
        canvas.line([(0.1, y), (4.9, y)], colour=SERIES[1 if pre else 0], width=3.2)
        for i in range(3):
            block(canvas, LEFT + BLOCK * i, y, pre)
    canvas.text(3.9, 3.4, words["gradient"], align="right", colour=MUTED)
    canvas.arrow((4.9, 3.4), (4.0, 3.4), colour=INK)
    return canvas


def block(canvas: Canvas, x: float, y: float, pre: bool) -> None:
    """A block of the stream at x: its branch, its sum and its norm."""
    top, end = y + 0.62, x + 0.86
    parts = ["N", "F"] if pre else ["F"]
    canvas.line([(x, y), (x, top)], colour=INK)
    canvas.line([(x, top), (end, top)], colour=INK)
    canvas.arrow((end, top), (end, y + 0.11), colour=INK)
    canvas.plus(end, y)
    for i, part in enumerate(parts):
        left = x + 0.1 + 0.36 * i + (0.0 if pre else 0.18)
        edge = NORM if part == "N" else MUTED
        canvas.box(left, top - 0.15, 0.3, 0.3, part, edge=edge)
    if not pre:
        canvas.box(end + 0.17, y - 0.15, 0.3, 0.3, "N", edge=NORM, fill=PANEL)
    canvas.text(end if pre else end + 0.32, y - 0.33, "×1" if pre else "×1/σ")
