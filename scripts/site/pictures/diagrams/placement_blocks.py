"""One layer of a Post-Norm and of a Pre-Norm Transformer, stream and branches."""

from scripts.site.pictures.diagram import INK, NORM, PANEL, SERIES, SMALL, Canvas

WORDS = {
    "zh": {
        "caption": "同一层的两种归一化位置。粗线是残差流，归一化是有颜色的方框。",
        "alt": (
            "两列并排，自下而上都从嵌入开始。粗的竖线是残差流，注意力和前馈网络"
            "各是一条从残差流分出、再在加号处加回来的分支。左列 Post-Norm："
            "分支直接读残差流，每个加号之后，归一化的方框套在残差流上，"
            "最后直接到输出层。右列 Pre-Norm：归一化的方框在分支里，位于子层之前，"
            "残差流从嵌入到最后一个加号不经过任何方框，最后有一个归一化，再到输出层。"
        ),
        "attention": "注意力",
        "feed_forward": "前馈网络",
        "norm": "归一化",
        "final": "最后的归一化",
        "head": "输出层",
        "embedding": "嵌入",
    },
    "en": {
        "caption": (
            "One layer, two placements. The thick line is the residual stream, "
            "the coloured boxes are norms."
        ),
        "alt": (
            "Two columns, read from the embedding at the bottom upwards. The thick "
            "vertical line is the residual stream; attention and feed-forward are "
            "two branches that leave it and return to it at a plus. Left, Post-Norm: "
            "a branch reads the stream itself, and after each plus a norm is on "
            "the stream; the head follows directly. Right, Pre-Norm: the norm is "
            "in the branch, before the sublayer; the stream runs from the embedding "
            "to the last plus through no box at all, and one final norm is "
            "before the head."
        ),
        "attention": "Attention",
        "feed_forward": "Feed-forward",
        "norm": "Norm",
        "final": "Final norm",
        "head": "Head",
        "embedding": "Embedding",
    },
}
STREAM, BRANCH, WIDE = 0.62, 1.72, 1.12  # of a column: line, branch, box


def draw(words) -> Canvas:
    canvas = Canvas(4.9, 5.3)
    for left, title in ((0.0, "Post-Norm"), (2.45, "Pre-Norm")):
        pre = title == "Pre-Norm"
        x = left + STREAM
        canvas.text(left + 1.2, 5.12, title, weight="bold")
        canvas.box(x - 0.5, 0.08, 1.0, 0.3, words["embedding"], size=SMALL)
        for low, name in ((0.38, "attention"), (2.2, "feed_forward")):
            block(canvas, left, low, words[name], words["norm"], pre)
        top = 4.02
        if pre:
            norm(canvas, x, 4.18, 1.12, words["final"])
            stream(canvas, x, top, 4.18)
            top = 4.48
        stream(canvas, x, top, 4.64, arrow=True)
        canvas.box(x - 0.5, 4.64, 1.0, 0.3, words["head"], size=SMALL)
    return canvas


def block(canvas, left, low, name, norm_name, pre) -> None:
    """One block of 1.82 inches, from the stream at low."""
    x, branch = left + STREAM, left + BRANCH
    fork, join = low + 0.22, low + 1.2
    stream(canvas, x, low, join - 0.11)
    canvas.plus(x, join)
    middle = low + (0.88 if pre else 0.71)
    canvas.line([(x, fork), (branch, fork)], colour=INK)
    if pre:
        norm(canvas, branch, low + 0.36, 0.8, norm_name)
        canvas.line([(branch, fork), (branch, low + 0.36)], colour=INK)
        canvas.line([(branch, low + 0.66), (branch, middle - 0.15)], colour=INK)
        stream(canvas, x, join + 0.11, low + 1.82)
    else:
        canvas.line([(branch, fork), (branch, middle - 0.15)], colour=INK)
        norm(canvas, x, low + 1.4, 0.8, norm_name)
        stream(canvas, x, join + 0.11, low + 1.4)
        stream(canvas, x, low + 1.7, low + 1.82)
    canvas.box(branch - WIDE / 2, middle - 0.15, WIDE, 0.3, name, size=SMALL)
    canvas.arrow((branch, middle + 0.15), (branch, join), (x + 0.11, join), colour=INK)


def norm(canvas, x, low, width, name) -> None:
    canvas.box(x - width / 2, low, width, 0.3, name, edge=NORM, fill=PANEL, size=SMALL)


def stream(canvas, x, low, high, arrow=False) -> None:
    canvas.line([(x, low), (x, high)], colour=SERIES[0], width=3.2, arrow=arrow)
