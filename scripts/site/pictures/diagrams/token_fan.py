"""Tokens as arrows, fanned by their cosine, behind more and more layers."""

from math import acos, cos, degrees, radians, sin

from scripts.site.pictures.diagram import GRID, INK, MUTED, SERIES, SMALL, Canvas

WORDS = {
    "en": {
        "caption": "Five tokens of one sequence as arrows. The angle between the "
        "outermost two is drawn like that of two tokens in the recursion below: "
        "random layers, equal attention weights.",
        "alt": "A table of fans of arrows. Its columns stand for 0, 2, 8 and 32 "
        "layers, its rows for three placements. All start as five arrows that fill a "
        "right angle. In Post-Norm the fan narrows at 2 layers, is a thin wedge at 8 "
        "and a single arrow at 32. In Pre-Norm it narrows slowly and is still open at "
        "32. In DeepNorm it stays a right angle.",
        "layers": "layers",
    },
    "zh": {
        "caption": "一个序列里的五个 token，画成箭头。最外侧两支的夹角，按下文递推里"
        "两个 token 的夹角来画：层是随机的，注意力权重处处相等。",
        "alt": "一张由箭头扇面排成的表。各列是 0、2、8、32 层，各行是三种归一化位置。"
        "起点都是五支箭头张成的直角。Post-Norm 在 2 层时收窄，8 层时只剩一条窄缝，"
        "32 层时合成一支箭头。Pre-Norm 收得很慢，32 层时仍然张开。"
        "DeepNorm 一直是直角。",
        "layers": "层数",
    },
}
DEPTHS = (0, 2, 8, 32)
COSINES = {  # of predict in snippets/signal_propagation/gram.py, 16 tokens
    "Post-Norm": (0.0, 0.40, 0.96, 1.0),
    "Pre-Norm": (0.0, 0.31, 0.66, 0.85),
    "DeepNorm": (0.0, 0.02, 0.01, 0.0),
}
ARROWS, LENGTH = 5, 0.55


def draw(words) -> Canvas:
    canvas = Canvas(5.0, 2.75)
    canvas.text(0.1, 2.55, words["layers"], size=SMALL, align="left", colour=MUTED)
    for column, depth in enumerate(DEPTHS):
        canvas.text(1.65 + 0.95 * column, 2.55, str(depth), colour=MUTED)
    for row, (placement, cosines) in enumerate(COSINES.items()):
        low = 1.78 - 0.8 * row
        canvas.text(0.1, low + 0.2, placement, align="left")
        if row:
            canvas.line([(0.1, low + 0.62), (4.9, low + 0.62)], colour=GRID)
        for column, cosine in enumerate(cosines):
            foot = (1.65 + 0.95 * column, low)
            wide = degrees(acos(cosine))
            for i in range(ARROWS):
                angle = radians(90 + wide * (i / (ARROWS - 1) - 0.5))
                tip = (foot[0] + LENGTH * cos(angle), foot[1] + LENGTH * sin(angle))
                colour = SERIES[row] if i else INK
                canvas.arrow(foot, tip, colour=colour, width=1.3)
    return canvas
