"""Queries from a packed projection: three kernels and one, trip by trip."""

from scripts.site.pictures.diagram import INK, MUTED, PANEL, SERIES, SMALL, Canvas
from scripts.site.pictures.diagrams import _trips

WORDS = {
    "zh": {
        "caption": (
            "最上面是合并的 QKV 投影里的两个 token，一格一个头：查询 q 之间隔着键 k 和"
            "值 v。下面蓝色向下是读，橙色向上是写，箭头旁是每个元素的字节。三个 kernel "
            "各跑一趟；一个 kernel 按步长直接取 q，在寄存器里归一化、旋转，写一次。键也"
            "一样。"
        ),
        "alt": (
            "最上面一行格子：q q q q k v，重复两次。中间：内存和三个 kernel，复制、归一"
            "化、旋转，各读 2 写 2，合计 12。下面：只有一个 kernel，归一化之后旋转，读 "
            "2 写 2，合计 4。"
        ),
        "packed": "合并的 QKV 投影",
        "memory": "内存",
        "three": "三个 kernel",
        "one": "一个 kernel",
        "total": "每个元素 {} 字节",
        "copy": "复制",
        "norm": "归一化",
        "rotate": "旋转",
        "both": "归一化，旋转",
    },
    "en": {
        "caption": (
            "On top, two tokens of a packed projection, a cell a head: keys k and "
            "values v lie between the queries q. Below, blue, down, is a read; orange, "
            "up, is a write; the bytes per element are beside the arrow. Three kernels "
            "make a trip each. One kernel takes q by its strides, norms and rotates it "
            "in registers and writes once. Keys go the same way."
        ),
        "alt": (
            "On top a row of cells: q q q q k v, twice. In the middle the memory and "
            "three kernels, copy, norm and rotate, that read 2 and write 2 each, 12 in "
            "total. Below, one kernel, norm then rotate, reads 2 and writes 2, 4 in "
            "total."
        ),
        "packed": "packed projection",
        "memory": "memory",
        "three": "three kernels",
        "one": "one kernel",
        "total": "{} bytes per element",
        "copy": "copy",
        "norm": "norm",
        "rotate": "rotate",
        "both": "norm, rotate",
    },
}
INPUTS = (_trips.FILE,)
PLANS = {"three": ["copy", "norm", "rotate"], "one": ["both"]}
BYTES = 2  # of a bfloat16
PACKED = [*"qqqqkv"] * 2  # two tokens
CELL, HIGH = 0.24, 0.24  # inches


def draw(words: dict) -> Canvas:
    canvas = Canvas(5.0, 3.18)
    left = _trips.RIGHT - len(PACKED) * CELL
    canvas.text(_trips.LEFT, 3.02, words["packed"], align="left", size=SMALL)
    for i, head in enumerate(PACKED):
        own = head == "q"
        fill, colour = (SERIES[0], PANEL) if own else ("none", MUTED)
        place = (left + i * CELL, 2.9, CELL, HIGH, head)
        canvas.box(*place, round_by=0, fill=fill, colour=colour, edge=INK, size=SMALL)
    for top, (plan, names) in zip((2.68, 1.3), PLANS.items(), strict=True):
        kernels = [(words[name], [str(BYTES)], [str(BYTES)]) for name in names]
        total = words["total"].format(2 * BYTES * len(names))
        _trips.lane(canvas, top, words[plan], total, words["memory"], kernels)
    return canvas
