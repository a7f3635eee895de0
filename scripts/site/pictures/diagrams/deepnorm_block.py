"""One DeepNorm sublayer: alpha on the stream, beta in the branch's matrices."""

from scripts.site.pictures.diagram import INK, MUTED, SERIES, SMALL, Canvas

WORDS = {
    "en": {
        "caption": "One DeepNorm sublayer. The factor α acts in every forward pass; "
        "β acts once, when the coloured matrices are drawn.",
        "alt": "The stream x splits. The upper path is multiplied by alpha and goes "
        "into a sum. The lower path goes through the branch into the same sum. After "
        "the sum comes a LayerNorm, whose output is the new stream. Below, the two "
        "kinds of branch: in attention the query and key matrices are clear, the value "
        "and output matrices coloured; in the feed-forward network both matrices are "
        "coloured. The initial values of coloured matrices are multiplied by beta, "
        "those of clear ones stay as they are.",
        "branch": "branch",
        "attention": "attention",
        "feed_forward": "feed-forward",
        "query": "query",
        "key": "key",
        "value": "value",
        "output": "output",
        "up": "up",
        "down": "down",
        "drawn": "initial",
        "scaled": "× β",
        "unscaled": "× 1",
    },
    "zh": {
        "caption": "一个 DeepNorm 子层。α 在每次前向传播里都起作用；"
        "β 只在给着色的矩阵取初始值时用一次。",
        "alt": "残差流 x 分成两路。上面一路乘以 α 后进入加法；下面一路经过分支，"
        "进入同一个加法。加法之后是 LayerNorm，它的输出就是新的残差流。下方是两种分支："
        "注意力里，查询和键的矩阵不着色，值和输出的矩阵着色；前馈网络的两个矩阵都着色。"
        "着色的矩阵的初始值乘 β，不着色的不变。",
        "branch": "分支",
        "attention": "注意力",
        "feed_forward": "前馈网络",
        "query": "查询",
        "key": "键",
        "value": "值",
        "output": "输出",
        "up": "升维",
        "down": "降维",
        "drawn": "初始值",
        "scaled": "× β",
        "unscaled": "× 1",
    },
}


def draw(words: dict) -> Canvas:
    canvas = Canvas(width=5.0, height=3.15)
    top, low = 2.85, 2.1
    canvas.text(0.2, top, "x")
    canvas.arrow((0.35, top), (1.55, top))
    canvas.box(1.55, top - 0.2, 0.7, 0.4, "× α", edge=SERIES[1], colour=SERIES[1])
    canvas.arrow((2.25, top), (3.17, top))
    canvas.plus(3.28, top)
    canvas.arrow((3.39, top), (3.65, top))
    canvas.box(3.65, top - 0.2, 0.95, 0.4, "LayerNorm")
    canvas.arrow((4.6, top), (4.95, top))
    canvas.arrow((0.85, top), (0.85, low), (1.35, low))
    canvas.box(1.35, low - 0.2, 1.1, 0.4, words["branch"], edge=INK)
    canvas.arrow((2.45, low), (3.28, low), (3.28, top - 0.11))

    def row(y: float, name: str, cells: list[tuple[str, bool]]) -> None:
        canvas.text(0.1, y, name, size=SMALL, align="left", colour=MUTED)
        for i, (cell, scaled) in enumerate(cells):
            colour = SERIES[0] if scaled else MUTED
            canvas.box(
                1.2 + 0.93 * i,
                y - 0.18,
                0.82,
                0.36,
                words[cell],
                edge=colour,
                colour=colour if scaled else INK,
                fill="none",
            )

    row(
        1.4,
        words["attention"],
        [("query", False), ("key", False), ("value", True), ("output", True)],
    )
    row(0.85, words["feed_forward"], [("up", True), ("down", True)])
    canvas.text(0.1, 0.31, words["drawn"], size=SMALL, align="left", colour=MUTED)
    canvas.box(
        1.2,
        0.13,
        0.82,
        0.36,
        words["scaled"],
        edge=SERIES[0],
        colour=SERIES[0],
        fill="none",
    )
    canvas.box(2.13, 0.13, 0.82, 0.36, words["unscaled"], edge=MUTED, fill="none")
    return canvas
