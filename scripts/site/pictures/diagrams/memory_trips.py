"""What a norm by hand and a fused one carry over the border of the chip."""

from scripts.site.pictures.diagram import Canvas
from scripts.site.pictures.diagrams import _trips
from scripts.site.reading.source import ROOT
from snippets.speed.byte_count import FUSED_NORM, HAND_RMS_NORM

WORDS = {
    "zh": {
        "caption": (
            "同一个 RMSNorm，两种写法，每个 bfloat16 数进出内存的字节：蓝色向下是读，"
            "橙色向上是写，箭头旁是字节数。按这样数，花时间的是箭头，不是运算。"
        ),
        "alt": (
            "上面一排是内存和六个 kernel：转成 float32 读 2 写 4，平方读 4 写 4，求均"
            "值只读 4，乘 r 读 4 写 4，转回读 4 写 2，乘增益读 2 写 2，合计 36 字节。下"
            "面一排只有一个融合的 kernel，读 2 写 2，合计 4 字节。"
        ),
        "hand": "手写，六个 kernel",
        "fused": "融合，一个 kernel",
        "total": "每个元素 {} 字节",
        "memory": "内存",
        "steps": {
            "cast": "转 float32",
            "square": "平方",
            "mean": "求均值",
            "scale": "乘 r",
            "back": "转回",
            "gain": "乘增益",
        },
        "norm": "归一化",
    },
    "en": {
        "caption": (
            "The same RMSNorm written twice, and the bytes of one bfloat16 number to "
            "and from memory: blue, down, is a read; orange, up, is a write; the "
            "bytes are beside the arrow. By this count the arrows take the time, not "
            "the arithmetic."
        ),
        "alt": (
            "The upper row is the memory and six kernels: the cast to float32 reads 2 "
            "and writes 4, the square reads 4 and writes 4, the mean reads 4, the "
            "product with r reads 4 and writes 4, the cast back reads 4 and writes 2, "
            "the gain reads 2 and writes 2, 36 in total. The lower row is one fused "
            "kernel that reads 2 and writes 2, 4 in total."
        ),
        "hand": "by hand, six kernels",
        "fused": "fused, one kernel",
        "total": "{} bytes per element",
        "memory": "memory",
        "steps": {
            "cast": "to float32",
            "square": "square",
            "mean": "mean",
            "scale": "times r",
            "back": "cast back",
            "gain": "gain",
        },
        "norm": "norm",
    },
}
INPUTS = (ROOT / "snippets" / "speed" / "byte_count.py", _trips.FILE)
BYTES = {"x": 2, "f": 4}


def draw(words: dict) -> Canvas:
    canvas = Canvas(5.0, 2.74)
    plans = {"hand": HAND_RMS_NORM, "fused": FUSED_NORM}
    for top, (plan, chain) in zip((2.68, 1.3), plans.items(), strict=True):
        names = words["steps"].values() if plan == "hand" else [words["norm"]]
        kernels = [
            (name, [str(BYTES[t]) for t in read], [str(BYTES[t]) for t in written])
            for name, (_, read, written) in zip(names, chain, strict=True)
        ]
        total = sum(int(mark) for _, *marks in kernels for m in marks for mark in m)
        total = words["total"].format(total)
        _trips.lane(canvas, top, words[plan], total, words["memory"], kernels)
    return canvas
