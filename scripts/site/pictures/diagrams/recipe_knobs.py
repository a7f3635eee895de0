"""The four knobs of a residual block: norm, stream, branch, number of streams."""

from scripts.site.pictures.diagram import INK, SERIES, SMALL, Canvas

WORDS = {
    "zh": {
        "caption": (
            "一个块上能调的四样东西：① 归一化放在三处虚线框的哪几处，② 残差流乘多少，"
            "③ 分支乘多少，④ 要不要再带一条流。"
        ),
        "alt": (
            "一个残差块。残差流 x 从左往右进入加法，路上有标着 2 的系数，即 α、ω。"
            "下面的分支 f 从残差流取数，出来后乘标着 3 的系数，即 λ、a、1/m，"
            "进入同一个加法。三个标着 1 的虚线框 N 是归一化可以放的位置：分支的入口、"
            "分支的出口、加法之后的残差流上。"
            "最上面标着 4 的虚线是第二条流，它直接累加分支的输出，路上没有归一化。"
        ),
        "second": "④ 第二条流",
        "stream": "② α, ω",
        "branch": "③ λ, a, 1/m",
        "norm": "① N",
    },
    "en": {
        "caption": (
            "The four knobs of a block: ① at which of the three dashed places a norm "
            "is, ② the factor on the stream, ③ the factor on the branch, ④ "
            "whether a second stream runs beside the first."
        ),
        "alt": (
            "A residual block. The stream x runs from left to right into a sum, past a "
            "factor marked 2, α or ω. The branch f below reads from the stream; its "
            "output is multiplied by a factor marked 3, λ, a or 1/m, and goes into the "
            "same sum. Three dashed boxes N, marked 1, are the places of a norm: at "
            "the entrance of the branch, at its exit, and on the stream after the "
            "sum. A dashed line at the top, marked 4, is a second stream that adds up "
            "the branch's outputs and has no norm on its way."
        ),
        "second": "④ second stream",
        "stream": "② α, ω",
        "branch": "③ λ, a, 1/m",
        "norm": "① N",
    },
}


def draw(words: dict[str, str]) -> Canvas:
    canvas = Canvas(width=5.0, height=2.2)
    second, stream, branch = 1.95, 1.3, 0.42
    place = {"edge": SERIES[0], "colour": SERIES[0], "lines": "--", "fill": "none"}
    factor = {"edge": SERIES[1], "colour": SERIES[1]}
    sum_at, split = 3.75, 0.4
    canvas.text(0.12, stream, "x", style="italic")
    canvas.arrow((0.22, stream), (1.45, stream))
    canvas.box(1.45, stream - 0.19, 0.85, 0.38, words["stream"], **factor)
    canvas.arrow((2.3, stream), (sum_at - 0.11, stream))
    canvas.plus(sum_at, stream)
    canvas.arrow((sum_at + 0.11, stream), (4.1, stream))
    canvas.box(4.1, stream - 0.19, 0.5, 0.38, words["norm"], **place)
    canvas.arrow((4.6, stream), (4.95, stream))

    canvas.arrow((split, stream), (split, branch), (0.6, branch))
    canvas.box(0.6, branch - 0.19, 0.5, 0.38, words["norm"], **place)
    canvas.arrow((1.1, branch), (1.3, branch))
    canvas.box(1.3, branch - 0.19, 0.5, 0.38, "f", edge=INK, style="italic")
    canvas.arrow((1.8, branch), (2.0, branch))
    canvas.box(2.0, branch - 0.19, 0.5, 0.38, words["norm"], **place)
    canvas.arrow((2.5, branch), (2.65, branch))
    canvas.box(2.65, branch - 0.19, 0.98, 0.38, words["branch"], **factor, size=SMALL)
    canvas.arrow((3.63, branch), (sum_at, branch), (sum_at, stream - 0.11))

    dashed = {"colour": SERIES[2], "lines": "--"}
    canvas.line([(0.22, second), (3.29, second)], **dashed)
    canvas.plus(3.4, second)
    canvas.arrow((3.51, second), (4.95, second), **dashed)
    canvas.line([(sum_at, 0.86), (3.4, 0.86), (3.4, stream - 0.08)], **dashed)
    canvas.arrow((3.4, stream + 0.08), (3.4, second - 0.11), **dashed)
    canvas.text(0.25, second - 0.16, words["second"], align="left", colour=SERIES[2])
    return canvas
