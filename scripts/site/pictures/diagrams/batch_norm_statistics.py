"""BatchNorm's two variances: from the workers into the batch, and into the averages."""

from scripts.site.pictures.diagram import INK, MUTED, SERIES, SMALL, Canvas

WORDS = {
    "zh": {
        "caption": (
            "一个特征的统计量走到哪里。训练用当前 batch 的有偏方差 v；"
            "存下来给 eval 模式用的，照论文和 PyTorch 是无偏的。动量在 PyTorch 里是 m，"
            "在 Keras 里是 1 − m。"
        ),
        "alt": (
            "从左到右的数据流。左边三张卡，各送出自己的 n、μ、v，即 token 数、均值和"
            "方差，合成整个 batch 的 μ 和 v。从这里分两路：上面一路直接用 v 归一化，"
            "得到训练模式的输出。下面一路先把 v 乘 N 除以 N − 1，变成无偏方差，"
            "再以权重 m 并入滑动平均，旧的平均值占 1 − m；"
            "eval 模式的输出用滑动平均来归一化。"
        ),
        "worker": "卡",
        "sends": "各送 n, μ, v",
        "batch": "整个 batch",
        "spread": "v 含卡间差异",
        "biased": "有偏，除以 N",
        "train": "训练输出",
        "unbiased": "无偏：v · N/(N − 1)",
        "averages": "滑动平均",
        "new": "新的占 m",
        "old": "旧的占 1 − m",
        "eval": "eval 输出",
    },
    "en": {
        "caption": (
            "Where the statistics of a feature go. Training uses the biased variance "
            "v of this batch; the paper and PyTorch store the unbiased one for eval "
            "mode. The momentum is m in PyTorch and 1 − m in Keras."
        ),
        "alt": (
            "A flow from left to right. Three workers at the left each send n, μ and "
            "v, their count of tokens, mean and variance, which are merged into μ and "
            "v of the whole batch. From there two paths. The upper one normalizes by "
            "v at once and gives the output of train mode. The lower one first "
            "multiplies v by N over N − 1, the unbiased variance, which enters the "
            "running averages with weight m, the old averages keeping 1 − m; these "
            "give the output of eval mode."
        ),
        "worker": "worker",
        "sends": "send n, μ, v",
        "batch": "whole batch",
        "spread": "v with their spread",
        "biased": "biased, over N",
        "train": "train mode",
        "unbiased": "unbiased: v · N/(N − 1)",
        "averages": "averages",
        "new": "new: m",
        "old": "old: 1 − m",
        "eval": "eval mode",
    },
}


def draw(words: dict[str, str]) -> Canvas:
    canvas = Canvas(width=5.0, height=2.4)
    note = {"size": SMALL, "colour": MUTED}
    for i, y in enumerate((1.98, 1.56, 1.14), start=1):
        canvas.box(0.05, y, 0.85, 0.32, f"{words['worker']} {i}")
        canvas.arrow((0.9, y + 0.16), (1.2, y + 0.16), (1.2, 1.72), (1.4, 1.72))
    canvas.text(0.05, 0.95, words["sends"], align="left", **note)
    canvas.box(1.4, 1.4, 1.15, 0.64, f"{words['batch']}\nμ, v", edge=INK)
    canvas.text(1.975, 2.18, words["spread"], **note)

    canvas.arrow((2.55, 1.72), (3.95, 1.72), colour=SERIES[0])
    canvas.text(3.2, 1.86, words["biased"], size=SMALL, colour=SERIES[0])
    train = {"edge": SERIES[0], "colour": SERIES[0]}
    canvas.box(3.95, 1.54, 1.0, 0.36, words["train"], **train)

    canvas.arrow((1.975, 1.4), (1.975, 0.45), (2.35, 0.45), colour=SERIES[1])
    canvas.text(
        2.08, 1.1, words["unbiased"], align="left", size=SMALL, colour=SERIES[1]
    )
    canvas.text(1.9, 0.58, words["new"], align="right", size=SMALL, colour=SERIES[1])
    canvas.box(2.35, 0.25, 1.05, 0.4, words["averages"], edge=INK)
    canvas.arrow((3.2, 0.65), (3.2, 0.86), (2.55, 0.86), (2.55, 0.65))
    canvas.text(3.3, 0.86, words["old"], align="left", **note)
    canvas.arrow((3.4, 0.45), (3.95, 0.45), colour=SERIES[1])
    stored = {"edge": SERIES[1], "colour": SERIES[1]}
    canvas.box(3.95, 0.27, 1.0, 0.36, words["eval"], **stored)
    return canvas
