"""Addition, then norm: two kernels and one, tensor by tensor."""

from scripts.site.pictures.diagram import Canvas
from scripts.site.pictures.diagrams import _trips

WORDS = {
    "zh": {
        "caption": (
            "前向读写的大张量：蓝色向下是读，橙色向上是写。x 是残差流，b 是分支，s 是"
            "它们的和，y 是归一化的结果。分成两个 kernel，s 刚写出去又读回来；合成一"
            "个，这一次读就省了。"
        ),
        "alt": (
            "上面：内存和两个 kernel。相加读 x 和 b，写 s；归一化读 s，写 y，共五支箭"
            "头。下面：一个 kernel 读 x 和 b，写 s 和 y，共四支箭头。"
        ),
        "two": "两个 kernel",
        "one": "一个 kernel",
        "total": "{} 读 {} 写",
        "memory": "内存",
        "add": "相加",
        "norm": "归一化",
        "both": "相加，归一化",
    },
    "en": {
        "caption": (
            "Large tensors read and written in the forward pass: blue, down, is a "
            "read; orange, up, is a write. x is the stream, b the branch, s their "
            "sum, y its norm. Two kernels write s and fetch it again at once; one "
            "kernel saves that reading."
        ),
        "alt": (
            "Above, the memory and two kernels: the addition reads x and b and writes "
            "s, the norm reads s and writes y, five arrows. Below, one kernel reads x "
            "and b and writes s and y, four arrows."
        ),
        "two": "two kernels",
        "one": "one kernel",
        "total": "{} read, {} written",
        "memory": "memory",
        "add": "add",
        "norm": "norm",
        "both": "add, then norm",
    },
}
INPUTS = (_trips.FILE,)
PLANS = {
    "two": [("add", ["x", "b"], ["s"]), ("norm", ["s"], ["y"])],
    "one": [("both", ["x", "b"], ["s", "y"])],
}


def draw(words: dict) -> Canvas:
    canvas = Canvas(5.0, 2.74)
    for top, (plan, kernels) in zip((2.68, 1.3), PLANS.items(), strict=True):
        total = words["total"].format(
            sum(len(reads) for _, reads, _ in kernels),
            sum(len(writes) for *_, writes in kernels),
        )
        named = [(words[name], reads, writes) for name, reads, writes in kernels]
        _trips.lane(canvas, top, words[plan], total, words["memory"], named)
    return canvas
