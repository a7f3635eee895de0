"""In which type each step of RMSNorm is kept: no upcast, and the two cast orders."""

from scripts.site.diagram import MUTED, PANEL, SERIES, SMALL, Canvas

WORDS = {
    "en": {
        "caption": "The type in which each step of RMSNorm is kept, for half-precision "
        "input and gain. Boxes "
        "marked 16 are rounded to half precision; r is 1/RMS.",
        "alt": "A table of boxes. Columns: x, its square, mean plus epsilon, r, r x, "
        "times gamma. First row, no upcast: all six boxes are 16; the square is marked "
        "as infinite in float16 from 256 on, so that the row turns to zeros. Second "
        "row, Llama and T5: x is 16, the square, the mean and r are 32, r x and the "
        "result are 16: rounded twice. Third row, Gemma and nn.RMSNorm: x is 16, the "
        "square, the mean, r and r x are 32, the result is 16: rounded once.",
        "naive": "no upcast",
        "llama": "cast, then gain:\nLlama, T5",
        "gemma": "gain, then cast:\nGemma, nn.RMSNorm",
        "overflow": "float16: x² = ∞ from 256 on, so the row is 0",
        "twice": "rounded twice",
        "once": "rounded once",
        "mean": "mean\n+ ε",
    },
    "zh": {
        "caption": "输入和增益都是半精度时，RMSNorm 的每一步以什么类型存放。标着 16 "
        "的方框都舍入到半精度；r 是 RMS 的倒数。",
        "alt": "方框排成的表。列依次是 x、它的平方、均值加 ε、r、r x、乘 γ。第一行不"
        "提升精度：六个方框都是 16；平方处标明，在 float16 里从 256 起就是无穷大，"
        "整行因此变成零。第二行是 Llama 和 T5：x 是 16，平方、均值和 r 是 32，r x 和"
        "结果是 16：舍入两次。第三行是 Gemma 和 nn.RMSNorm：x 是 16，平方、均值、r 和 "
        "r x 是 32，结果是 16：舍入一次。",
        "naive": "不提升精度",
        "llama": "先转换，再乘增益：\nLlama、T5",
        "gemma": "先乘增益，再转换：\nGemma、nn.RMSNorm",
        "overflow": "float16：从 256 起 x² = ∞，整行变成 0",
        "twice": "舍入两次",
        "once": "舍入一次",
        "mean": "均值\n+ ε",
    },
}
STEPS = ("x", "x²", "mean", "r", "r x", "γ r x")
KEPT = {  # bits in which each step is kept
    "naive": (16, 16, 16, 16, 16, 16),
    "llama": (16, 32, 32, 32, 16, 16),
    "gemma": (16, 32, 32, 32, 32, 16),
}
NOTES = {"naive": "overflow", "llama": "twice", "gemma": "once"}
NAMES, CELL, TALL, STEP = 1.62, 0.55, 0.3, 0.68


def draw(words: dict[str, str]) -> Canvas:
    canvas = Canvas(5.0, 2.54)
    left = [NAMES + i * CELL for i in range(len(STEPS))]
    for x, step in zip(left, STEPS, strict=True):
        text = words.get(step, step)
        canvas.text(x + 0.24, 2.3, text, size=SMALL, colour=MUTED)
    for row, (name, bits) in enumerate(KEPT.items()):
        low = 1.7 - row * STEP
        canvas.text(0.06, low + TALL / 2, words[name], size=SMALL, align="left")
        for x, kept in zip(left, bits, strict=True):
            wide = kept == 32
            colour = SERIES[0] if wide else SERIES[1]
            canvas.box(
                x,
                low,
                0.48,
                TALL,
                str(kept),
                edge=colour,
                colour=colour,
                weight="bold" if wide else "normal",
                fill=PANEL,
            )
        note = NOTES[name]
        end = left[-1] + 0.48
        canvas.text(
            end, low - 0.13, words[note], size=SMALL, align="right", colour=SERIES[1]
        )
    return canvas
