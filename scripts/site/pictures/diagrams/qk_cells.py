"""Which features of a token share statistic and gain: per head, per projection."""

from scripts.site.pictures.diagram import GRID, MUTED, PANEL, SERIES, SMALL, Canvas

WORDS = {
    "zh": {
        "caption": "一个 token 的查询和键，4 个查询头，2 个键头。"
        "同色且相连的格子共用一个 RMS。",
        "alt": "上下两幅图，都是一个 token：一行查询，4 个头，每个头 4 格；一行键，2 个"
        "头。上图是逐头：每个头自成一块，各有一个 RMS，下面的增益只有一个头那么宽，由所"
        "有头共用。下图是整个投影：查询的全部格子连成一块，键的全部格子连成一块，各有一"
        "个 RMS，下面的增益每个头、每个特征各有一个数。",
        "head": "逐头：Qwen3、Gemma 3",
        "projection": "整个投影：OLMo 2",
        "q": "查询",
        "k": "键",
        "gain": "查询增益",
        "shared": "所有头共用",
    },
    "en": {
        "caption": "Queries and keys of one token, four query heads, two key heads. "
        "Cells of one colour that touch share one RMS.",
        "alt": "Two pictures, each of one token: a row of queries with four heads of "
        "four cells, a row of keys with two heads. Above, per head: each head is a "
        "block of its own with an RMS of its own, and the gain below is as wide as one "
        "head and shared by all. Below, whole projection: all cells of the queries are "
        "one block, all of the keys another, with one RMS each, and the gain has a "
        "number for every feature of every head.",
        "head": "Per head: Qwen3, Gemma 3",
        "projection": "Whole projection: OLMo 2",
        "q": "queries",
        "k": "keys",
        "gain": "query gain",
        "shared": "shared by all heads",
    },
}
CELL, FEATURES, HEADS, KEYS, LEFT = 0.2, 4, 4, 2, 0.98


def cells(canvas: Canvas, y: float, blocks: list[int], colours: list[str]) -> float:
    """Blocks of cells from the left, one colour each; where they end."""
    x = LEFT
    for size, colour in zip(blocks, colours, strict=True):
        wide = size * CELL
        canvas.box(x, y, wide, CELL, round_by=0, edge="none", fill=colour)
        for i in range(size + 1):
            at = x + i * CELL
            canvas.line([(at, y), (at, y + CELL)], colour=GRID, width=1)
        for height in (y, y + CELL):
            canvas.line([(x, height), (x + wide, height)], colour=GRID, width=1)
        x += wide + 0.13
    return x


def draw(words: dict[str, str]) -> Canvas:
    canvas = Canvas(width=5.0, height=2.72)
    alone = [SERIES[0], SERIES[1]] * 2
    heads, keys = [FEATURES] * HEADS, [FEATURES] * KEYS
    kinds = (
        (1.46, "head", heads, keys, alone, alone[:2], [FEATURES]),
        (0.08, "projection", [16], [8], [SERIES[0]], [SERIES[1]], [16]),
    )
    for y, name, q, k, q_colours, k_colours, gain in kinds:
        canvas.text(0.08, y + 1.08, words[name], align="left", weight="bold")
        for step, row in ((0.7, "q"), (0.38, "k"), (0.06, "gain")):
            note = {"size": SMALL, "colour": MUTED, "align": "left"}
            canvas.text(0.08, y + step + CELL / 2, words[row], **note)
        cells(canvas, y + 0.7, q, q_colours)
        cells(canvas, y + 0.38, k, k_colours)
        end = cells(canvas, y + 0.06, gain, [PANEL])
        if name == "head":
            canvas.text(end, y + 0.06 + CELL / 2, words["shared"], **note)
    return canvas
