"""The four ways in which one text is scored: whose mean and variance, which future."""

from scripts.site.pictures.diagram import INK, MUTED, PANEL, SERIES, Canvas

WORDS = {
    "zh": {
        "caption": "给位置 t 的预测打四次分。涂色的格子或方框，是 BatchNorm 的均值和"
        "方差的来源；叉号是换上去的别的文字。",
        "alt": (
            "四行图，每行七个格子，是一个序列的七个位置，第四个标着 t，它右边的三个"
            "是未来。第一行：七格全部涂色，统计量来自自己的 batch，未来也在内。第二行："
            "同样全部涂色，但未来的三格打了叉，换成了别的文字。第三行：格子都不涂色，"
            "统计量来自右边的方框，一个训练文本的大 batch。第四行：格子也不涂色，"
            "统计量来自滑动平均。"
            "右侧的括号：第一行到第二行多出的损失，是偷看未来省下的；第二行到第四行，"
            "只换了统计量。"
        ),
        "own": "1  自己的 batch（和训练时一样）",
        "cut": "2  同上，未来换成别的文字",
        "exact": "3  大 batch 的统计量",
        "running": "4  滑动平均（推理时）",
        "large": "大 batch",
        "tracked": "滑动平均",
        "leak": "偷看未来\n省下的损失",
        "swap": "只换了\n统计量",
    },
    "en": {
        "caption": "The prediction at position t, scored four times. Coloured: where "
        "BatchNorm's mean and variance come from. Crossed out: replaced by other text.",
        "alt": (
            "Four rows of seven cells, the positions of one sequence; the fourth is "
            "marked t, the three to its right are the future. First row: all seven "
            "are coloured, the statistics are those of the own batch, future "
            "included. Second row: all coloured too, but the three of the future "
            "are crossed, replaced by other text. Third row: no cell is coloured; "
            "the statistics come from a box at the right, a large batch of training "
            "text. Fourth row: no cell is coloured; they come from the running "
            "averages. Brackets at the right: what the second loss has above the "
            "first was taken from the future; from the second to the fourth only "
            "the statistics change."
        ),
        "own": "1  own batch, as in training",
        "cut": "2  the same, another future",
        "exact": "3  statistics of a large batch",
        "running": "4  running averages, as in use",
        "large": "large batch",
        "tracked": "averages",
        "leak": "taken from\nthe future",
        "swap": "statistics\nchange",
    },
}
CELL, CELLS, NOW, LEFT = 0.27, 7, 3, 0.2
ROWS = ("own", "cut", "exact", "running")
BOTTOM = {"own": 2.28, "cut": 1.6, "exact": 0.92, "running": 0.24}
BRACKET = 3.72


def draw(words: dict[str, str]) -> Canvas:
    canvas = Canvas(width=5.0, height=2.95)
    for name in ROWS:
        bottom, batch = BOTTOM[name], name in ("own", "cut")
        canvas.text(LEFT, bottom + 0.42, words[name], align="left")
        for place in range(CELLS):
            left = LEFT + place * CELL
            now = place == NOW
            fill = SERIES[0] if batch else "none"
            canvas.box(left, bottom, CELL, CELL, fill=fill, edge=MUTED, round_by=0)
            if now:
                colour = PANEL if batch else INK
                middle = (left + CELL / 2, bottom + CELL / 2)
                canvas.text(*middle, "t", weight="bold", colour=colour)
            if name == "cut" and place > NOW:
                _cross(canvas, left, bottom)
        if not batch:
            word = words["large" if name == "exact" else "tracked"]
            canvas.box(
                2.55, bottom - 0.02, 1.0, 0.31, word, fill=SERIES[0], colour=PANEL
            )
            canvas.arrow((2.53, bottom + 0.135), (2.13, bottom + 0.135))
    _bracket(canvas, words["leak"], "own", "cut")
    _bracket(canvas, words["swap"], "cut", "running")
    return canvas


def _cross(canvas, left, bottom):
    """A cell that holds other text."""
    low, high = 0.07, CELL - 0.07
    for start, end in ((low, high), (high, low)):
        points = [(left + low, bottom + start), (left + high, bottom + end)]
        canvas.line(points, colour=PANEL)


def _bracket(canvas, word, upper, lower):
    top, bottom = BOTTOM[upper] + 0.06, BOTTOM[lower] + 0.2
    points = [(BRACKET, top), (BRACKET + 0.1, top), (BRACKET + 0.1, bottom)]
    canvas.line([*points, (BRACKET, bottom)])
    lines = word.split("\n")
    for index, line in enumerate(lines):
        place = (top + bottom) / 2 + 0.1 - 0.2 * index
        canvas.text(BRACKET + 0.18, place, line, align="left")
