"""LayerNorm without its centring: what moves into which matrices, what stays."""

from scripts.site.pictures.diagram import INK, MUTED, SERIES, SMALL, Canvas

WORDS = {
    "en": {
        "caption": "Both rows compute the same outputs. The centring moves back into "
        "all that writes to the stream, the bias forward into the layer that reads; "
        "what stays is RMSNorm.",
        "alt": "Two rows of boxes, read from left to right. Upper row, LayerNorm: "
        "what writes, e, W and b; the residual stream; then the four steps of the "
        "norm, minus mean, divided by RMS, times gamma, plus beta; then the reader, "
        "V and c. Lower row, RMSNorm: the writers are now Pe, PW and Pb; the norm "
        "has only two steps, divided by RMS and times gamma, straight below the same "
        "steps above; the reader is V and c plus V beta. An arrow leads from minus "
        "mean down to the writers, another from plus beta down to the reader.",
        "before": "LayerNorm",
        "after": "RMSNorm",
        "writers": "writers",
        "stream": "stream",
        "reader": "reader",
        "mean": "− mean",
        "centre": "P = centring",
        "shift": "Vβ",
    },
    "zh": {
        "caption": "上下两行的输出相同。中心化往前并入所有写入残差流的权重，偏置往后"
        "并入读取它的那一层，剩下的就是 RMSNorm。",
        "alt": "两行方框，从左往右读。上面一行是 LayerNorm：写入的权重 e、W、b；残差流"
        "；归一化的四步，即减均值、除以 RMS、乘 γ、加 β；最后是读取的层 V、c。"
        "下面一行是 RMSNorm：写入的权重变成 Pe、PW、Pb；归一化只剩两步，除以 RM"
        "S 和乘 γ，位置就在上面同样两步的正下方；读取的层是 V 和 c + Vβ。一个箭"
        "头从减均值指向下面写入的权重，另一个从加 β 指向下面读取的层。",
        "before": "LayerNorm",
        "after": "RMSNorm",
        "writers": "写入",
        "stream": "残差流",
        "reader": "读取",
        "mean": "− 均值",
        "centre": "P = 中心化",
        "shift": "Vβ",
    },
}
TALL, UPPER, LOWER = 0.36, 1.6, 0.34  # of a box; bottoms of the rows
WRITER, READER = (0.08, 1.0), (3.98, 0.94)  # left, width
STEPS = {  # of the norm
    "mean": (1.4, 0.72),
    "÷ RMS": (2.16, 0.68),
    "× γ": (2.88, 0.44),
    "+ β": (3.36, 0.44),
}


def draw(words: dict[str, str]) -> Canvas:
    canvas = Canvas(5.0, 2.24)

    def middle(place):
        return place[0] + place[1] / 2

    def box(place, low, text, **options):
        canvas.box(place[0], low, place[1], TALL, text, **options)

    def across(start, end, low, **options):
        height = low + TALL / 2
        canvas.arrow((start, height), (end, height), **options)

    end = {
        low: STEPS[last][0] + STEPS[last][1]
        for low, last in ((UPPER, "+ β"), (LOWER, "× γ"))
    }
    for low, first in ((UPPER, "mean"), (LOWER, "÷ RMS")):
        start = WRITER[0] + WRITER[1]
        across(start, STEPS[first][0], low, colour=SERIES[0], width=3.2)
        across(end[low], READER[0], low)
    box(WRITER, UPPER, "e,  W,  b")
    box(READER, UPPER, "V,  c")
    box(WRITER, LOWER, "Pe, PW, Pb", edge=SERIES[1])
    box(READER, LOWER, "V, c + Vβ", edge=SERIES[2])
    for name, place in STEPS.items():
        moves = {"mean": SERIES[1], "+ β": SERIES[2]}
        box(place, UPPER, words.get(name, name), edge=moves.get(name, INK))
        if name not in moves:
            box(place, LOWER, name, edge=INK)
            canvas.line(
                [(middle(place), UPPER), (middle(place), LOWER + TALL)],
                colour=MUTED,
                lines=":",
            )
    canvas.arrow(
        (middle(STEPS["mean"]), UPPER), (middle(WRITER), LOWER + TALL), colour=SERIES[1]
    )
    canvas.arrow(
        (middle(STEPS["+ β"]), UPPER), (middle(READER), LOWER + TALL), colour=SERIES[2]
    )
    canvas.text(
        0.92, 1.22, words["centre"], align="right", colour=SERIES[1], size=SMALL
    )
    canvas.text(4.24, 1.22, words["shift"], align="left", colour=SERIES[2], size=SMALL)

    above = UPPER + TALL + 0.15
    note = {"size": SMALL, "colour": MUTED}
    canvas.text(middle(WRITER), above, words["writers"], **note)
    canvas.text(middle(READER), above, words["reader"], **note)
    canvas.text(1.24, UPPER - 0.15, words["stream"], **note)
    canvas.text(2.6, above, words["before"], weight="bold")
    canvas.text(2.74, LOWER - 0.17, words["after"], weight="bold")
    return canvas
