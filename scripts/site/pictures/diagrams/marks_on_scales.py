"""Five marks on two scales, and the one row of z-scores that both give."""

from statistics import fmean, pstdev

from scripts.site.pictures.diagram import GRID, INK, MUTED, SERIES, Canvas

WORDS = {
    "zh": {
        "caption": "同样的五个分数，换一种评分尺度，z 分数不变。",
        "alt": (
            "三根水平的数轴。上面一根从 0 到 100，五个点是 41、65、87、92、99，大多靠"
            "右。下面一根也从 0 到 100，是同样的分数乘 0.4 再减 7，五个点挤在左边。中间"
            "一根是 z 分数，从 −2 到 2。两边的点都有细线连到中间，同一个学生的两条线在"
            "中间汇合于一点；87 分的那个点着了色，略高于均值 0。"
        ),
        "first": "满分 100",
        "second": "0.4 · 分数 − 7",
        "z": "z 分数",
    },
    "en": {
        "caption": "The same five marks on another scale: the z-scores stay.",
        "alt": (
            "Three horizontal axes. The upper one runs from 0 to 100 and holds the "
            "marks 41, 65, 87, 92 and 99, most of them on the right. The lower one "
            "runs from 0 to 100 as well and holds the same marks times 0.4 minus 7, "
            "crowded on the left. The middle one holds z-scores from −2 to 2. Thin "
            "lines lead from both to the middle, and the two lines of a student meet "
            "there in one point. The point of mark 87 is coloured; it lies a little "
            "above the mean, 0."
        ),
        "first": "out of 100",
        "second": "0.4 · mark − 7",
        "z": "z-score",
    },
}
MARKS = (41, 65, 87, 92, 99)
OURS = 87
NUMBER = 9.5  # points: 9 px on a phone
LEFT, RIGHT = 0.25, 4.75  # inches, the ends of every axis


def place(value: float, low: float, high: float) -> float:
    return LEFT + (RIGHT - LEFT) * (value - low) / (high - low)


def dot(canvas: Canvas, x: float, y: float, colour: str) -> None:
    canvas.box(
        x - 0.045, y - 0.045, 0.09, 0.09, round_by=0.045, edge="none", fill=colour
    )


def draw(words: dict) -> Canvas:
    canvas = Canvas(width=5.0, height=2.46)
    upper, middle, lower = 1.98, 1.24, 0.5
    other = [0.4 * mark - 7 for mark in MARKS]
    scores = [(mark - fmean(MARKS)) / pstdev(MARKS) for mark in MARKS]
    for y, name, low, high, ticks in (
        (upper, words["first"], 0, 100, (0, 50, 100)),
        (middle, words["z"], -2, 2, (-2, 0, 2)),
        (lower, words["second"], 0, 100, (0, 50, 100)),
    ):
        canvas.line([(LEFT, y), (RIGHT, y)], colour=INK, width=1.2)
        below = y == lower
        for tick in ticks:
            x = place(tick, low, high)
            canvas.line([(x, y - 0.05), (x, y + 0.05)], colour=INK, width=1.2)
            if y != middle:
                at = y - 0.17 if below else y + 0.17
                canvas.text(x, at, f"{tick}", size=NUMBER, colour=MUTED)
        if y == middle:
            for tick in ticks:
                at = place(tick, low, high)
                text = f"{tick}".replace("-", "−")
                canvas.text(at, y - 0.16, text, size=NUMBER, colour=MUTED)
        at = y - 0.36 if below else y + 0.36
        if y == middle:
            canvas.text(LEFT, y + 0.17, name, align="left", weight="bold")
        else:
            canvas.text(LEFT, at, name, align="left", weight="bold")
    for mark, second, score in zip(MARKS, other, scores, strict=True):
        colour = SERIES[1] if mark == OURS else SERIES[0]
        thin = SERIES[1] if mark == OURS else GRID
        spots = (
            (place(mark, 0, 100), upper),
            (place(score, -2, 2), middle),
            (place(second, 0, 100), lower),
        )
        canvas.line(list(spots), colour=thin, width=1.1)
        for spot in spots:
            dot(canvas, *spot, colour)
        if mark == OURS:
            canvas.text(
                spots[0][0], upper + 0.17, f"{mark}", size=NUMBER, colour=colour
            )
            canvas.text(
                spots[1][0] - 0.06,
                middle + 0.15,
                f"{score:.2f}",
                size=NUMBER,
                colour=colour,
                align="right",
            )
    return canvas
