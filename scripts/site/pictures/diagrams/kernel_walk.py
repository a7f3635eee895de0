"""Who works on which rows: a grid of programs forward, a walk backward."""

from scripts.site.pictures.diagram import GRID, INK, MUTED, SERIES, SMALL, Canvas

WORDS = {
    "zh": {
        "caption": (
            "谁处理哪几行。前向：一行（或几行）一个程序。反向：少数几个程序走遍所有的"
            "行，每个程序把自己那几行对增益梯度的贡献加在一起，最后由一个小 kernel 相"
            "加。"
        ),
        "alt": (
            "左边八行，八个程序，每个程序一行。右边同样八行，两个程序轮流：程序 0 处"
            "理第 0、2、4、6 行，程序 1 处理第 1、3、5、7 行。下面是两行部分和，每个"
            "程序一行，再由一支箭头合成一行，即增益的梯度。"
        ),
        "forward": "前向",
        "backward": "反向",
        "program": "程序",
        "partial": "部分和，float32",
        "gain": "增益的梯度",
    },
    "en": {
        "caption": (
            "Who works on which rows. Forward: a program for each row, or for a few. "
            "Backward: a few programs walk over all rows, each adds up what its rows "
            "give to the gain's gradient, and a small kernel adds up the sums."
        ),
        "alt": (
            "Left, eight rows and eight programs, one row each. Right, the same "
            "eight rows and two programs that take turns: program 0 has rows 0, 2, 4 "
            "and 6, program 1 has rows 1, 3, 5 and 7. Below are two rows of partial "
            "sums, one a program, and an arrow leads from them to one row, the "
            "gradient of the gain."
        ),
        "forward": "forward",
        "backward": "backward",
        "program": "program",
        "partial": "partial sums, float32",
        "gain": "gain's gradient",
    },
}
ROWS, CELLS, WIDE, HIGH = 8, 6, 1.5, 0.2


def row(canvas: Canvas, x: float, y: float, fill: str) -> None:
    canvas.box(x, y, WIDE, HIGH, round_by=0, fill=fill, edge=INK)
    for i in range(1, CELLS):
        place = x + i * WIDE / CELLS
        canvas.line([(place, y), (place, y + HIGH)], colour=GRID, width=1)


def draw(words: dict) -> Canvas:
    canvas = Canvas(5.0, 3.0)
    for x, name, programs in ((0.85, "forward", ROWS), (3.3, "backward", 2)):
        canvas.text(x, 2.84, words[name], align="left", weight="bold")
        canvas.text(x - 0.1, 2.6, words["program"], align="right", size=SMALL)
        for i in range(ROWS):
            y = 2.32 - HIGH * i
            owner = i % programs
            fill = SERIES[owner] if programs == 2 else SERIES[0]
            row(canvas, x, y, fill)
            canvas.text(x - 0.1, y + HIGH / 2, str(owner), align="right", size=SMALL)
    canvas.arrow((4.05, 0.9), (4.05, 0.72), colour=INK)
    for i in range(2):
        row(canvas, 3.3, 0.52 - HIGH * i, SERIES[i])
        canvas.text(3.2, 0.62 - HIGH * i, str(i), align="right", size=SMALL)
    canvas.text(3.3, 0.16, words["partial"], align="left", size=SMALL, colour=MUTED)
    canvas.arrow((2.95, 0.5), (2.45, 0.5), colour=INK)
    row(canvas, 0.85, 0.4, SERIES[2])
    canvas.text(0.85, 0.16, words["gain"], align="left", size=SMALL, colour=MUTED)
    return canvas
