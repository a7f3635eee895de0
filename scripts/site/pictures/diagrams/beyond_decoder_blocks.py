"""Four blocks that are no plain decoder layer, with their norms and gates marked."""

from scripts.site.pictures.diagram import MUTED, NORM, SERIES, SMALL, Canvas

WORDS = {
    "en": {
        "caption": "One branch of four blocks; the signal runs upwards. "
        "Blue: a norm. Orange: a learned factor without statistics.",
        "alt": "Four columns of boxes, read from below. Mamba-2: RMSNorm; projection"
        " and convolution; the state space; times SiLU of z; RMSNorm per group; W_out."
        " Gated delta rule: RMSNorm; projection and convolution; L2 norm of q and k;"
        " the delta rule; RMSNorm per head; times SiLU of z; W_out. DiT: LayerNorm"
        " without a gain; scale and shift from the condition c; q, k and v;"
        " RMSNorm of q and k (in Flux and SD 3.5); softmax attention; W_o; times"
        " alpha from c. Gated attention: RMSNorm; q, k and v; RMSNorm of q and k;"
        " softmax attention; times the sigmoid of a gate; W_o. Norms are orange,"
        " gates and scales green.",
        "mamba": "Mamba-2",
        "delta": "delta rule",
        "dit": "DiT",
        "gated": "gated attention",
        "convolution": "project, conv",
        "state": "state space",
        "rule": "delta rule",
        "unit": "L2: q, k",
        "group": "RMSNorm\nper group",
        "head": "RMSNorm\nper head",
        "gainless": "LayerNorm\nwithout gain",
        "modulate": "× (1 + scale)\n+ shift, from c",
        "qk": "RMSNorm: q, k",
        "softmax": "attention",
        "alpha": "× α, from c",
    },
    "zh": {
        "caption": "四种块各画一个分支，信号自下而上。"
        "橙色是归一化，绿色是不算统计量的可学习因子。",
        "alt": "四列方框，自下而上读。Mamba-2：RMSNorm；投影和卷积；状态空间；乘 z 的"
        " SiLU；按组的 RMSNorm；W_out。带门控的 delta 规则：RMSNorm；投影和卷积；q、k"
        " 的 L2 归一化；delta 规则；按头的 RMSNorm；乘 z 的 SiLU；W_out。DiT：不带"
        "增益的 LayerNorm；由条件 c 给出的缩放和平移；q、k、v；q、k 的 RMSNorm（Flux 和"
        " SD 3.5 里有）；softmax 注意力；W_o；乘由 c 给出的 α。门控注意力：RMSNorm；"
        "q、k、v；q、k 的 RMSNorm；softmax 注意力；乘门的 sigmoid；W_o。归一化是橙色，"
        "门和缩放是绿色。",
        "mamba": "Mamba-2",
        "delta": "delta 规则",
        "dit": "DiT",
        "gated": "门控注意力",
        "convolution": "投影，卷积",
        "state": "状态空间",
        "rule": "delta 规则",
        "unit": "L2：q, k",
        "group": "RMSNorm\n按组",
        "head": "RMSNorm\n按头",
        "gainless": "LayerNorm\n不带增益",
        "modulate": "× (1 + scale)\n+ shift，来自 c",
        "qk": "RMSNorm：q, k",
        "softmax": "注意力",
        "alpha": "× α，来自 c",
    },
}
GATE = SERIES[2]
COLUMNS = {
    "mamba": (
        (NORM, "RMSNorm"),
        (None, "convolution"),
        (None, "state"),
        (GATE, "× SiLU(z)"),
        (NORM, "group"),
        (None, "$W_{out}$"),
    ),
    "delta": (
        (NORM, "RMSNorm"),
        (None, "convolution"),
        (NORM, "unit"),
        (None, "rule"),
        (NORM, "head"),
        (GATE, "× SiLU(z)"),
        (None, "$W_{out}$"),
    ),
    "dit": (
        (NORM, "gainless"),
        (GATE, "modulate"),
        (None, "$W_q, W_k, W_v$"),
        (NORM, "qk"),
        (None, "softmax"),
        (None, "$W_o$"),
        (GATE, "alpha"),
    ),
    "gated": (
        (NORM, "RMSNorm"),
        (None, "$W_q, W_k, W_v$"),
        (NORM, "qk"),
        (None, "softmax"),
        (GATE, "× sigmoid(g)"),
        (None, "$W_o$"),
    ),
}
WIDE, PITCH, HIGH, GAP, BOTTOM = 1.13, 1.235, 0.4, 0.15, 0.36


def draw(words) -> Canvas:
    tallest = max(map(len, COLUMNS.values()))
    top = BOTTOM + tallest * (HIGH + GAP)
    canvas = Canvas(width=5.0, height=top + 0.5)
    for index, (title, boxes) in enumerate(COLUMNS.items()):
        left = 0.08 + index * PITCH
        centre = left + WIDE / 2
        canvas.text(centre, top + 0.36, words[title], weight="bold")
        canvas.text(centre, 0.1, "x", size=SMALL, colour=MUTED)
        canvas.arrow((centre, 0.2), (centre, BOTTOM))
        for row, (kind, word) in enumerate(boxes):
            low = BOTTOM + row * (HIGH + GAP)
            colours = {"edge": kind, "colour": kind} if kind else {}
            text = words.get(word, word)
            canvas.box(left, low, WIDE, HIGH, text, size=SMALL, **colours)
            if row + 1 < len(boxes):
                canvas.arrow((centre, low + HIGH), (centre, low + HIGH + GAP))
        last = BOTTOM + len(boxes) * (HIGH + GAP) - GAP
        canvas.arrow((centre, last), (centre, top + 0.02))
        canvas.text(centre, top + 0.13, "+ x", size=SMALL, colour=MUTED)
    return canvas
