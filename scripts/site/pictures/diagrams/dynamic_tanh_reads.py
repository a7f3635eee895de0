"""What one output reads: under RMSNorm the whole token, under DyT one number."""

from scripts.site.pictures.diagram import GRID, INK, MUTED, SERIES, SMALL, Canvas

WORDS = {
    "en": {
        "caption": "What one output depends on",
        "alt": "Two drawings of a token with five features. Under RMSNorm all"
        " five features feed one statistic r, and r acts on every output."
        " Under DyT each output reads only the feature below it, through the"
        " same tanh.",
        "rms": "RMSNorm",
        "dyt": "DyT",
        "features": "features of one token",
        "outputs": "outputs",
        "statistic": "r of this token",
        "function": "tanh(α x)",
    },
    "zh": {
        "caption": "一个输出依赖哪些数",
        "alt": "两幅图，各画一个有五个特征的 token。用 RMSNorm 时，五个特征都汇入"
        "同一个统计量 r，r 作用于每个输出。用 DyT 时，每个输出只读它下方的"
        "那个特征，经过同一个 tanh。",
        "rms": "RMSNorm",
        "dyt": "DyT",
        "features": "一个 token 的特征",
        "outputs": "输出",
        "statistic": "这个 token 的 r",
        "function": "tanh(α x)",
    },
}


def draw(words) -> Canvas:
    canvas = Canvas(5.0, 2.75)
    side, step = 0.3, 0.42
    for left, key in ((0.2, "rms"), (2.72, "dyt")):
        places = [left + index * step for index in range(5)]
        middle = left + (4 * step + side) / 2
        canvas.text(middle, 2.6, words[key], weight="bold")
        for index, x in enumerate(places):
            marked = index == 1
            edge = SERIES[0] if marked else MUTED
            canvas.box(x, 1.85, side, side, edge=edge, round_by=0)
            reads = key == "rms" or marked
            canvas.box(
                x, 0.42, side, side, edge=SERIES[0] if reads else GRID, round_by=0
            )
            centre = x + side / 2
            if key == "rms":
                canvas.arrow((centre, 0.72), (middle + (index - 2) * 0.2, 1.08))
                canvas.arrow(
                    (middle + (index - 2) * 0.2, 1.4),
                    (centre, 1.85),
                    colour=SERIES[0] if marked else MUTED,
                )
            else:
                canvas.arrow(
                    (centre, 0.72),
                    (centre, 1.85),
                    colour=SERIES[0] if marked else MUTED,
                )
        if key == "rms":
            canvas.box(middle - 0.68, 1.08, 1.36, 0.32, words["statistic"], size=SMALL)
        else:
            canvas.box(left, 1.12, 4 * step + side, 0.3, words["function"], size=SMALL)
        canvas.text(middle, 2.32, words["outputs"], size=SMALL, colour=INK)
        canvas.text(middle, 0.2, words["features"], size=SMALL, colour=INK)
    return canvas
