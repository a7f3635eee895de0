"""Eight blocks with two norms each, and the last one before the head."""

from scripts.site.pictures.diagram import INK, MUTED, NORM, PANEL, SERIES, SMALL, Canvas

WORDS = {
    "zh": {
        "caption": "八层，每层两个 RMSNorm：先是注意力入口的，再是前馈网络入口的。"
        "输出层之前还有一个，一共 17 个。",
        "alt": "一条横线是残差流，从左边的嵌入通到右边的输出层。线上有八个块，每块里"
        "上下两个带编号的方框，上面是注意力入口的归一化，下面是前馈网络入口的归一化，"
        "编号从 1 到 16。第八块之后、输出层之前是第 17 个。",
        "attention": "注意力入口",
        "feed_forward": "前馈入口",
        "last": "最终归一化",
    },
    "en": {
        "caption": "Eight layers with two RMSNorms each: first the one at the "
        "entrance of attention, then that of the feed-forward network. One "
        "more before the head makes 17.",
        "alt": "A horizontal line is the residual stream, from the embedding on the "
        "left to the head on the right. On it are eight blocks, in each two numbered "
        "boxes, the upper one at the entrance of attention, the lower one at that of "
        "the feed-forward network, numbered 1 to 16. After block eight, before the "
        "head, is number 17.",
        "attention": "entrance of attention",
        "feed_forward": "entrance of feed-forward",
        "last": "the last one",
    },
}
LEFT, STEP, CELL = 0.12, 0.535, 0.36  # inches
STREAM = 1.2


def draw(words: dict) -> Canvas:
    canvas = Canvas(5.0, 2.5)
    canvas.arrow((0.02, STREAM), (4.98, STREAM), colour=SERIES[0], width=3.2)
    for i in range(8):
        x = LEFT + STEP * i
        canvas.box(x - 0.05, 0.5, CELL + 0.1, 1.4, edge=MUTED, fill="none")
        for y, number in ((1.45, 2 * i + 1), (0.6, 2 * i + 2)):
            edge, attached = NORM, x + (0.08 if y > STREAM else CELL - 0.08)
            canvas.box(x, y, CELL, 0.35, str(number), edge=edge, fill=PANEL)
            near = y if y > STREAM else y + 0.35
            ends = [(attached, STREAM), (attached, near)]
            canvas.arrow(*ends, colour=INK, width=1.1)
    canvas.box(4.43, STREAM - 0.18, CELL, 0.35, "17", edge=NORM, fill=PANEL)
    note = {"align": "left", "colour": MUTED, "size": SMALL + 1}
    canvas.text(LEFT, 2.12, "↑ " + words["attention"], **note)
    canvas.text(LEFT, 0.28, "↓ " + words["feed_forward"], **note)
    last = note | {"align": "right"}
    canvas.text(4.9, 2.12, words["last"], **last)
    canvas.line([(4.61, 2.0), (4.61, STREAM + 0.2)], colour=MUTED, width=1.0)
    return canvas
