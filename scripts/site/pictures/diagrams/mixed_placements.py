"""Four layers side by side: where Post-Norm, Pre-Norm, HybridNorm, Peri-LN norm."""

from scripts.site.pictures.diagram import MUTED, NORM, SMALL, Canvas

WORDS = {
    "en": {
        "caption": "One layer in four placements; the signal runs upwards",
        "alt": "Four columns, each a vertical stream with two branches, attention"
        " below and the feed-forward network (FFN) above. Post-Norm has a norm on"
        " the stream after each sum. Pre-Norm has a norm at the entrance of each"
        " branch. HybridNorm has no norm around attention, whose box says QKV"
        " norm, and a norm on the stream before the FFN branch leaves it. Peri-LN"
        " has a norm at the entrance and at the exit of each branch. A bracket"
        " under Post-Norm reads: Mix-LN, first layers; one under Pre-Norm reads:"
        " Mix-LN, the rest.",
        "post": "Post-Norm",
        "pre": "Pre-Norm",
        "hybrid": "HybridNorm",
        "peri": "Peri-LN",
        "norm": "norm",
        "attention": "attention",
        "qkv": "attention\nQKV norm",
        "network": "FFN",
        "first": "Mix-LN: first",
        "rest": "Mix-LN: rest",
    },
    "zh": {
        "caption": "一层的四种归一化位置；信号自下而上",
        "alt": "四列，每列一条竖直的残差流和两个分支，下面是注意力，上面是前馈网络。"
        "Post-Norm 在每次相加之后的残差流上有归一化。Pre-Norm 在每个分支的入口有"
        "归一化。HybridNorm 的注意力前后没有归一化，方框里写着 QKV 归一化；在前馈"
        "分支分出之前，残差流上有归一化。Peri-LN 在每个分支的入口和出口各有归一化。"
        "Post-Norm 下方的括线写着：Mix-LN 的前几层；Pre-Norm 下方写着：Mix-LN 的"
        "其余层。",
        "post": "Post-Norm",
        "pre": "Pre-Norm",
        "hybrid": "HybridNorm",
        "peri": "Peri-LN",
        "norm": "归一化",
        "attention": "注意力",
        "qkv": "注意力\nQKV 归一化",
        "network": "前馈网络",
        "first": "Mix-LN：前几层",
        "rest": "Mix-LN：其余层",
    },
}
COLUMN, BRANCH, HIGH = 1.23, 0.76, 0.24


def _norm(canvas, x, y, wide, words):
    canvas.box(x, y, wide, HIGH, words["norm"], size=SMALL, edge=NORM, colour=NORM)


def _half(canvas, stream, base, kind, body, words):
    """One branch of a column: from base up to base + 1.5."""
    left = stream + 0.2
    centre = left + BRANCH / 2
    split = base + (0.4 if kind == "stream" else 0.08)
    join = base + 1.24
    tall = HIGH if "\n" not in body else 0.42
    low = split + 0.1
    canvas.line([(stream, split), (centre, split), (centre, low)])
    if kind in ("pre", "peri"):
        _norm(canvas, left, low, BRANCH, words)
        low += HIGH + 0.08
        canvas.line([(centre, low - 0.08), (centre, low)])
    canvas.box(left, low, BRANCH, tall, body, size=SMALL)
    top = low + tall
    if kind == "peri":
        canvas.line([(centre, top), (centre, top + 0.08)])
        _norm(canvas, left, top + 0.08, BRANCH, words)
        top += HIGH + 0.08
    canvas.arrow((centre, top), (centre, join), (stream + 0.11, join))
    canvas.plus(stream, join)
    if kind == "stream":
        _norm(canvas, stream - 0.2, base + 0.08, 0.5, words)
    if kind == "post":
        _norm(canvas, stream - 0.2, join + 0.17, 0.5, words)


def draw(words) -> Canvas:
    canvas = Canvas(5.0, 4.4)
    columns = (
        ("post", "post", "post"),
        ("pre", "pre", "pre"),
        ("hybrid", "none", "stream"),
        ("peri", "peri", "peri"),
    )
    for index, (title, first, second) in enumerate(columns):
        stream = 0.3 + index * COLUMN
        canvas.text(stream + 0.36, 4.26, words[title], weight="bold")
        canvas.arrow((stream, 0.42), (stream, 4.02), colour=MUTED)
        body = words["qkv"] if title == "hybrid" else words["attention"]
        _half(canvas, stream, 0.45, first, body, words)
        _half(canvas, stream, 2.08, second, words["network"], words)
    for left, part in ((0.12, "first"), (0.12 + COLUMN, "rest")):
        right = left + 1.1
        canvas.line([(left, 0.36), (left, 0.28), (right, 0.28), (right, 0.36)])
        canvas.text((left + right) / 2, 0.13, words[part], size=SMALL)
    return canvas
