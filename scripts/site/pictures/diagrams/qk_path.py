"""The path of queries and keys: projection, norm, RoPE, scale, dot product."""

from scripts.site.pictures.diagram import MUTED, SERIES, SMALL, Canvas

WORDS = {
    "zh": {
        "caption": "QK-Norm 在投影和点积之间，只作用于查询和键。",
        "alt": "数据从上往下：x 分成三路，分别经过 W_q、W_k、W_v。查询和键各经过"
        "一个归一化和 RoPE，查询再乘缩放，然后两者做点积，经过掩码和 softmax 得到"
        "权重。值这一路不归一化，直接与权重相乘，最后经过 W_o。归一化之前长度任意，"
        "之后长度有界。",
        "query": "查询",
        "key": "键",
        "value": "值",
        "norm": "QK-Norm",
        "scale": "乘缩放",
        "product": "点积 = logit",
        "softmax": "掩码，softmax",
        "mix": "对值加权求和，再经过 W_o",
        "free": "长度不限",
        "fixed": "增益限定长度",
        "turn": "只转动",
    },
    "en": {
        "caption": "QK-Norm is between projection and dot product, "
        "on queries and keys only.",
        "alt": "Data flows down. x splits into three paths through W_q, W_k and "
        "W_v. Queries and keys each pass a norm and RoPE, queries also the scale; "
        "then they meet in the dot product, which mask and softmax turn into "
        "weights. The values are not normed; they meet the weights below, and "
        "W_o follows. Before the norms the lengths are free, after them bounded.",
        "query": "queries",
        "key": "keys",
        "value": "values",
        "norm": "QK-Norm",
        "scale": "times scale",
        "product": "dot product = logit",
        "softmax": "mask, softmax",
        "mix": "weighted sum of values, then W_o",
        "free": "any length",
        "fixed": "gain bounds the length",
        "turn": "turns only",
    },
}
TALL = 0.3
QUERY, KEY, VALUE = 0.66, 1.94, 4.3  # centres of the columns
X, PROJECTION, NORM, ROPE, SCALE, PRODUCT, SOFTMAX, SUM = (
    0.08 + 0.5 * row for row in range(7, -1, -1)
)  # bottoms of the rows


def draw(words: dict[str, str]) -> Canvas:
    canvas = Canvas(width=5.0, height=X + TALL + 0.08)
    middle = (QUERY + KEY) / 2

    def box(x, y, text, width=1.06, **options):
        canvas.box(x - width / 2, y, width, TALL, text, **options)

    def down(x, start, end):
        canvas.arrow((x, start), (x, end + TALL))

    box(2.48, X, "x", width=4.7)
    for x, name in ((QUERY, "query"), (KEY, "key"), (VALUE, "value")):
        down(x, X, PROJECTION)
        box(x, PROJECTION, words[name])
    for x in (QUERY, KEY):
        down(x, PROJECTION, NORM)
        box(x, NORM, words["norm"], edge=SERIES[1], colour=SERIES[1])
        down(x, NORM, ROPE)
        box(x, ROPE, "RoPE")
    down(QUERY, ROPE, SCALE)
    box(QUERY, SCALE, words["scale"])
    down(QUERY, SCALE, PRODUCT)
    down(KEY, ROPE, PRODUCT)
    box(middle, PRODUCT, words["product"], width=2.34)
    down(middle, PRODUCT, SOFTMAX)
    box(middle, SOFTMAX, words["softmax"], width=2.34)
    down(middle, SOFTMAX, SUM)
    box(2.48, SUM, words["mix"], width=4.7)
    down(VALUE, PROJECTION, SUM)
    note = {"size": SMALL, "colour": MUTED, "align": "left"}
    for y, name in ((PROJECTION, "free"), (NORM, "fixed"), (ROPE, "turn")):
        canvas.text(2.56, y + TALL / 2, words[name], **note)
    return canvas
