"""The same three logits times 1, 4 and 16: what softmax makes of them."""

from math import exp, log

from scripts.site.pictures.diagram import INK, MUTED, SERIES, Canvas

WORDS = {
    "zh": {
        "caption": "同样三个 logit（2、1、0），放大之后再做 softmax："
        "柱子是注意力权重，H 是熵。",
        "alt": "三组柱子，每组三根，下面写着 H。乘 1：一根高、一根矮、一根很矮。"
        "乘 4：几乎只剩第一根。乘 16：第一根是 1，另外两根是 0。"
        "H 从左到右变小，最后是 0。",
        "times": "logit 乘 {}",
    },
    "en": {
        "caption": "The same three logits (2, 1, 0), scaled up before the softmax: "
        "bars are attention weights, H is the entropy.",
        "alt": "Three groups of three bars, H below each. Times 1: a tall bar, a low "
        "one, a very low one. Times 4: hardly more than the first. Times 16: the "
        "first is 1, the other two are 0. H shrinks from left to right, down to 0.",
        "times": "logits times {}",
    },
}
LOGITS = (2, 1, 0)
LOW, TALL, BAR = 0.55, 1.5, 0.34  # inches


def weights(scale: int) -> list[float]:
    powers = [exp(scale * (z - max(LOGITS))) for z in LOGITS]
    return [power / sum(powers) for power in powers]


def draw(words: dict) -> Canvas:
    canvas = Canvas(5.0, 2.6)
    for i, scale in enumerate((1, 4, 16)):
        left = 0.12 + 1.62 * i
        shares = weights(scale)
        canvas.text(left + 0.76, 2.44, words["times"].format(scale), weight="bold")
        canvas.line([(left, LOW), (left + 1.52, LOW)], colour=INK, width=1.1)
        for j, share in enumerate(shares):
            x = left + 0.12 + 0.47 * j
            if share > 0.001:
                tall = TALL * share
                canvas.box(x, LOW, BAR, tall, fill=SERIES[j], edge="none", round_by=0)
            canvas.text(x + BAR / 2, LOW + TALL * share + 0.13, f"{share:.2f}")
        entropy = -sum(p * log(p) for p in shares)
        said = f"H = {entropy:.2f}"
        canvas.text(left + 0.76, 0.25, said, colour=MUTED)
    return canvas
