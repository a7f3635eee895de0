"""A decoder from tokens to logits, every norm of it marked."""

from scripts.site.pictures.diagram import GRID, INK, MUTED, NORM, SMALL, Canvas

WORDS = {
    "en": {
        "embedding": "embedding",
        "tokens": "tokens",
        "linear": "q, k, v",
        "rope": "RoPE on q, k",
        "mix": "softmax(qk) v",
        "out": "out",
        "gate": "SiLU(gate) · up",
        "down": "down",
        "head": "head = embedding, transposed",
        "logits": "logits",
        "blocks": "× 8 blocks",
        "stream": "residual stream",
        "norm1": "attention_norm",
        "norm2": "ffn_norm",
        "norm3": "norm",
        "qk": "q_norm, k_norm",
        "count1": "8",
        "count2": "8",
        "count3": "1",
        "countqk": "optional: 8 + 8",
        "caption": "A decoder with 8 blocks. Blue: its norms, and how many the "
        "whole model has. The residual stream itself is never normalized.",
        "alt": "From bottom to top: tokens, embedding, then the residual stream "
        "as a vertical line. Two branches leave it and return in a plus. The "
        "first goes through attention_norm, the linear layers q, k and v, the "
        "optional q_norm and k_norm, RoPE, softmax and out. The second goes "
        "through ffn_norm, the gated layers and down. This repeats for 8 blocks. "
        "At the top the stream passes norm, then the head that is the embedding "
        "transposed, and gives logits.",
    },
    "zh": {
        "embedding": "嵌入",
        "tokens": "token",
        "linear": "q、k、v",
        "rope": "q、k 做 RoPE",
        "mix": "softmax(qk) v",
        "out": "out",
        "gate": "SiLU(gate) · up",
        "down": "down",
        "head": "输出层：嵌入的转置",
        "logits": "logits",
        "blocks": "× 8 个块",
        "stream": "残差流",
        "norm1": "attention_norm",
        "norm2": "ffn_norm",
        "norm3": "norm",
        "qk": "q_norm、k_norm",
        "count1": "8",
        "count2": "8",
        "count3": "1",
        "countqk": "可选：8 + 8",
        "caption": "8 个块的解码器。橙色是归一化，旁边是整个模型里的个数。"
        "残差流本身从不归一化。",
        "alt": "自下而上：token、嵌入，然后是竖线表示的残差流。两个分支离开它，"
        "再在加号处回来。第一个分支依次经过 attention_norm、线性层 q、k、v、"
        "可选的 q_norm 和 k_norm、RoPE、softmax 和 out。第二个分支依次经过 "
        "ffn_norm、门控层和 down。这样重复 8 个块。顶端，残差流经过 norm，"
        "再经过输出层（嵌入的转置），得到 logits。",
    },
}
STREAM, LEFT, WIDE, HIGH = 0.75, 1.55, 1.95, 0.34


COUNTS = {"norm1": "count1", "norm2": "count2", "qk": "countqk"}


def draw(words: dict[str, str]) -> Canvas:
    canvas = Canvas(5.0, 7.3)
    canvas.text(STREAM, 0.15, words["tokens"], size=SMALL, colour=MUTED)
    canvas.arrow((STREAM, 0.27), (STREAM, 0.48))
    canvas.box(0.2, 0.5, 1.1, HIGH, words["embedding"], size=SMALL)
    canvas.box(0.12, 1.05, 4.76, 4.98, fill="none", edge=GRID, round_by=0.1)
    canvas.text(4.74, 5.83, words["blocks"], size=SMALL, colour=MUTED, align="right")
    attention = ["norm1", "linear", "qk", "rope", "mix", "out"]
    first = branch(canvas, words, 1.25, attention)
    second = branch(canvas, words, first + 0.2, ["norm2", "gate", "down"])
    canvas.text(
        STREAM - 0.3, 2.7, words["stream"], size=SMALL, colour=MUTED, rotation=90
    )
    canvas.line([(STREAM, 0.84), (STREAM, first - 0.11)])
    canvas.line([(STREAM, first + 0.11), (STREAM, second - 0.11)])
    canvas.arrow((STREAM, second + 0.11), (STREAM, 6.18))
    canvas.plus(STREAM, first)
    canvas.plus(STREAM, second)
    canvas.box(0.2, 6.2, 1.1, HIGH, words["norm3"], size=SMALL, edge=NORM, colour=NORM)
    count = {"size": SMALL, "colour": NORM, "align": "left"}
    canvas.text(1.42, 6.37, words["count3"], **count)
    canvas.arrow((STREAM, 6.54), (STREAM, 6.74))
    canvas.box(0.2, 6.76, 2.4, HIGH, words["head"], size=SMALL)
    canvas.arrow((2.6, 6.93), (3.0, 6.93))
    canvas.text(3.1, 6.93, words["logits"], size=SMALL, colour=MUTED, align="left")
    return canvas


def branch(
    canvas: Canvas, words: dict[str, str], bottom: float, parts: list[str]
) -> float:
    """A branch upwards from bottom; the height at which it is added."""
    step, middle = 0.45, LEFT + WIDE / 2
    y = bottom + 0.17
    canvas.arrow((STREAM, bottom), (middle, bottom), (middle, y - 0.01))
    for part in parts:
        if part != parts[0]:
            canvas.arrow((middle, y - step + HIGH), (middle, y))
        norm = part in COUNTS
        canvas.box(
            LEFT,
            y,
            WIDE,
            HIGH,
            words[part],
            size=SMALL,
            colour=NORM if norm else INK,
            edge=NORM if norm else MUTED,
            lines="--" if part == "qk" else "-",
        )
        if norm:
            count = {"size": SMALL, "colour": NORM, "align": "left"}
            canvas.text(LEFT + WIDE + 0.1, y + HIGH / 2, words[COUNTS[part]], **count)
        y += step
    top = y - step + HIGH
    turn = top + 0.14
    canvas.arrow((middle, top), (middle, turn), (STREAM + 0.12, turn))
    return turn
