"""A row in registers: what LayerNorm's kernel does beyond RMSNorm's."""

from scripts.site.pictures.diagram import INK, MUTED, PANEL, SERIES, SMALL, Canvas

WORDS = {
    "zh": {
        "caption": (
            "一个程序拿着一行：六个数，补两格到 2 的幂。左边 RMSNorm 归约一次，补齐的"
            "格一直是零。右边 LayerNorm 归约两次，第二次要等第一次；减去 μ 之后补齐的"
            "格成了 −μ，所以再掩一次。两边都只读一遍、写一遍。"
        ),
        "alt": (
            "两列，自上而下。左列：读入的一行 x，末尾两格是 0；求平方和得到 r；乘 r 写"
            "出 y。右列：同样的一行；求和得到 μ；减去 μ 之后末尾两格是 −μ；掩掉之后又"
            "是 0；求平方和得到 r；乘 r 写出 y。"
        ),
        "read": "读一遍",
        "sum": "求和 → μ",
        "subtract": "减去 μ",
        "mask": "再掩一次",
        "squares": "平方和 → r",
        "write": "写一遍",
    },
    "en": {
        "caption": (
            "A row in one program: six numbers, two cells of padding to a power of "
            "two. Left, RMSNorm reduces once and the padding stays zero. Right, "
            "LayerNorm reduces twice, and the second waits for the first; less μ the "
            "padding is −μ, so it is masked again. Both read once and write once."
        ),
        "alt": (
            "Two columns from top to bottom. Left: a row x as it was read, its last "
            "two cells 0; the sum of squares gives r; times r it is written as y. "
            "Right: the same row; the sum gives μ; less μ the last two cells are −μ; "
            "masked they are 0 again; the sum of squares gives r; times r it is "
            "written as y."
        ),
        "read": "read once",
        "sum": "sum → μ",
        "subtract": "less μ",
        "mask": "mask again",
        "squares": "squares → r",
        "write": "write once",
    },
}
NUMBERS, CELL, PAD, HIGH, STEP = 6, 0.19, 0.25, 0.25, 0.46  # inches
# Stage by stage: what led there, the letter in the row, what is in the padding.
RMS = [("read", "x", "0"), ("squares", "", ""), ("write", "y", "")]
LAYER = [
    ("read", "x", "0"),
    ("sum", "", ""),
    ("subtract", "c", "−μ"),
    ("mask", "c", "0"),
    ("squares", "", ""),
    ("write", "y", ""),
]


def draw(words: dict) -> Canvas:
    canvas = Canvas(5.0, 3.06)
    for left, name, stages in ((0.08, "RMSNorm", RMS), (2.58, "LayerNorm", LAYER)):
        canvas.text(left, 2.94, name, align="left", weight="bold")
        for i, (label, letter, padding) in enumerate(stages):
            y = 2.5 - STEP * (i if len(stages) > len(RMS) else i * 2.5)
            stage(canvas, left, y, words[label], letter, padding)
            if i:
                above = y + STEP * (1 if len(stages) > len(RMS) else 2.5)
                middle = left + NUMBERS * CELL / 2
                canvas.arrow((middle, above), (middle, y + HIGH), colour=INK)
    return canvas


def stage(canvas, x, y, label, letter, padding) -> None:
    """One line: the row's cells, or what is reduced from them; beside it, why."""
    if not letter:
        canvas.box(x, y, NUMBERS * CELL, HIGH, label, size=SMALL, edge=INK)
        return
    for i in range(NUMBERS + 2 * bool(padding)):
        inside = i < NUMBERS
        odd = padding == "−μ" and not inside
        wide = CELL if inside else PAD
        left = x + i * CELL + max(i - NUMBERS, 0) * (PAD - CELL)
        canvas.box(
            left,
            y,
            wide,
            HIGH,
            round_by=0,
            fill=PANEL if inside else "none",
            edge=SERIES[1] if odd else INK if inside else MUTED,
        )
        word = letter if inside else padding
        canvas.text(left + wide / 2, y + HIGH / 2, word, size=SMALL)
    end = x + NUMBERS * CELL + 2 * PAD + 0.08
    canvas.text(end, y + HIGH / 2, label, align="left", size=SMALL, colour=MUTED)
