"""The same step added to a longer and longer stream turns it less and less."""

from math import atan2, degrees, sqrt

from scripts.site.pictures.diagram import INK, MUTED, SERIES, Canvas

WORDS = {
    "zh": {
        "caption": "Pre-Norm：每块加上同样长、方向不相干的一步（橙色）。"
        "残差流（蓝色）越大，这一步转过的角度越小。",
        "alt": "四个直角三角形，从左到右是第 1、4、16、64 块。橙色的竖边是这一块加上的"
        "一步，四个一样高；蓝色的底边是残差流，长度依次是 1、2、4、8。"
        "夹角依次是 45°、27°、14°、7°。",
        "block": "第 {} 块",
    },
    "en": {
        "caption": "Pre-Norm: every block adds a step of the same length in an "
        "unrelated direction (orange). The longer the stream (blue), the smaller the "
        "turn.",
        "alt": "Four right triangles, for blocks 1, 4, 16 and 64. The upright orange "
        "side is what the block adds, the same height in all; the blue base is the "
        "stream, with lengths 1, 2, 4 and 8. The angles are 45°, 27°, 14° and 7°.",
        "block": "block {}",
    },
}
UNIT = 0.46  # inches of one step


def draw(words: dict) -> Canvas:
    canvas = Canvas(5.0, 2.7)
    places = ((1, 0.25, 1.75), (4, 1.35, 1.75), (16, 2.85, 1.75), (64, 0.6, 0.5))
    for number, x, y in places:
        base = UNIT * sqrt(number)
        canvas.line([(x, y), (x + base, y + UNIT)], colour=INK, width=1.2)
        canvas.line([(x, y), (x + base, y)], colour=SERIES[0], width=3.0)
        ends = [(x + base, y), (x + base, y + UNIT)]
        canvas.arrow(*ends, colour=SERIES[1], width=2.4)
        angle = degrees(atan2(UNIT, base))
        name = words["block"].format(number)
        canvas.text(x + base / 2, y - 0.18, name)
        at = (x + base / 2, y + 0.72) if number < 64 else (x + base / 2, y + 0.55)
        canvas.text(*at, f"{angle:.0f}°", colour=MUTED)
    return canvas
