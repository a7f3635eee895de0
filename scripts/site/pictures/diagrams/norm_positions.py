"""Where the norms of one sublayer stand: Pre, Post, sandwich, reordered."""

from scripts.site.pictures.diagram import INK, MUTED, NORM, SMALL, Canvas

WORDS = {
    "en": {
        "caption": "One sublayer, read from bottom to top. The straight line is the "
        "residual stream; N is a norm, f attention or feed-forward. Only Post-Norm "
        "has a norm on the stream itself.",
        "alt": "Four columns, each with the stream as a vertical line and a branch "
        "beside it that leaves the stream below and returns into a sum. Pre-Norm: a "
        "norm, then f. Post-Norm: only f in the branch, and a norm on the stream "
        "above the sum. Sandwich: norm, f, norm. Reordered: f, then a norm.",
        "Pre": "Pre-Norm",
        "Post": "Post-Norm",
        "sandwich": "sandwich",
        "reordered": "reordered",
    },
    "zh": {
        "caption": "一个子层，从下往上看。直线是残差流；N 是归一化，"
        "f 是注意力或前馈网络。只有 Post-Norm 的归一化在残差流上。",
        "alt": "四列，每列有一条竖直的残差流，旁边是一个分支：从下方离开残差流，"
        "在上方回到加法。Pre-Norm：先归一化，再 f。Post-Norm：分支里只有 f，"
        "加法之上的残差流上有一个归一化。夹心：归一化、f、归一化。"
        "重排：先 f，再归一化。",
        "Pre": "Pre-Norm",
        "Post": "Post-Norm",
        "sandwich": "夹心",
        "reordered": "重排",
    },
}
COLUMNS = {
    "Pre": (["N", "f"], False, ["x + f(N(x))"]),
    "Post": (["f"], True, ["N(x + f(x))"]),
    "sandwich": (["N", "f", "N"], False, ["x + N(f(N(x)))"]),
    "reordered": (["f", "N"], False, ["x + N(f(x))"]),
}


def draw(words: dict) -> Canvas:
    canvas = Canvas(width=5.0, height=3.6)
    for i, (name, (parts, on_stream, equation)) in enumerate(COLUMNS.items()):
        x = 0.28 + 1.25 * i
        branch = x + 0.55
        canvas.text(x + 0.28, 3.42, words[name])
        canvas.text(x + 0.28, 0.15, equation[0], size=SMALL, colour=MUTED)
        canvas.line([(x, 0.4), (x, 2.44)])
        canvas.plus(x, 2.55)
        if on_stream:
            canvas.line([(x, 2.66), (x, 2.78)])
            canvas.box(x - 0.2, 2.78, 0.4, 0.3, "N", edge=NORM, colour=NORM)
            canvas.arrow((x, 3.08), (x, 3.27))
        else:
            canvas.arrow((x, 2.66), (x, 3.27))
        y, last = 0.95, (branch, 0.62)
        canvas.line([(x, 0.62), (branch, 0.62)])
        for part in parts:
            norm = part == "N"
            canvas.arrow(last, (branch, y))
            canvas.box(
                branch - 0.22,
                y,
                0.44,
                0.3,
                part,
                edge=NORM if norm else INK,
                colour=NORM if norm else INK,
            )
            last = (branch, y + 0.3)
            y += 0.52
        canvas.arrow(last, (branch, 2.55), (x + 0.11, 2.55))
    return canvas
