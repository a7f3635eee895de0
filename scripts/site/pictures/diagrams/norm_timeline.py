"""Released models by date and placement of their norms, from docs/data/models.yml."""

from collections import Counter
from itertools import accumulate

from scripts.site.atlas import models
from scripts.site.pictures.diagram import GRID, INK, MUTED, PANEL, SERIES, SMALL, Canvas

INPUTS = (models.FILE,)
WORDS = {
    "zh": {
        "caption": (
            "什么时候变了什么：每个圆点是一个模型，横轴是发布时间（不详的按文献），"
            "一行是一种位置。实心橙点带 QK-Norm。"
        ),
        "alt": (
            "时间轴，从 2017 年到 2026 年，五行圆点。Post-Norm 一行集中在最左边，"
            "之后只零星出现。Pre-Norm 加 LayerNorm 从 GPT-2 开始，"
            "2024 年之后只有零星几个点。"
            "Pre-Norm 加 RMSNorm 从 2023 年起最密，2025 年起约有一半是实心橙点，即带 "
            "QK-Norm。归一化放在分支输出处的一行，2024 年起才成片出现。"
        ),
        "post": "Post-Norm",
        "pre_layer": "Pre-Norm，LayerNorm",
        "pre_rms": "Pre-Norm，RMSNorm",
        "output": "分支输出处（含夹心）",
        "other": "其他",
        "none": "无 QK-Norm",
        "qk": "有 QK-Norm",
    },
    "en": {
        "caption": (
            "What changed when: a dot is a model, by its release, or its document "
            "where that is not known, and by where its norms are. Filled dots have "
            "QK-Norm."
        ),
        "alt": (
            "A time line from 2017 to 2026 with five rows of dots. Post-Norm is at "
            "the far left and is rare afterwards. Pre-Norm with LayerNorm begins with "
            "GPT-2 and has few dots after 2024. Pre-Norm with RMSNorm is the densest "
            "row from 2023 on; from 2025 about half of its dots are filled, with "
            "QK-Norm. The row of norms on the output of the branch fills only from "
            "2024 on."
        ),
        "post": "Post-Norm",
        "pre_layer": "Pre-Norm, LayerNorm",
        "pre_rms": "Pre-Norm, RMSNorm",
        "output": "branch output (sandwich too)",
        "other": "other",
        "none": "no QK-Norm",
        "qk": "QK-Norm",
    },
}
LANES = {"post": 0.6, "pre_layer": 0.9, "pre_rms": 1.25, "output": 0.75, "other": 0.6}
FIRST, LAST = 2017, 2027
LEFT, RIGHT, TOP, DOT = 0.12, 4.88, 4.45, 0.047


def lane(model: dict) -> str:
    """The row of a model."""
    if model["placement"] in ("pre", "pre-parallel"):
        return "pre_rms" if model["norm"] == "RMSNorm" else "pre_layer"
    if model["placement"] in ("sandwich", "branch-output"):
        return "output"
    shifted = ("post", "residual-after-norm")  # one structure, cut at two places
    return "post" if model["placement"] in shifted else "other"


def when(model: dict) -> float:
    """The middle of a model's month, in years."""
    year, month = models.month(model).split("-")
    return int(year) + (int(month) - 0.5) / 12


def draw(words: dict[str, str]) -> Canvas:
    canvas = Canvas(5.0, 4.9)

    def across(year: float) -> float:
        return LEFT + (RIGHT - LEFT) * (year - FIRST) / (LAST - FIRST)

    bottoms = dict(zip(LANES, accumulate(LANES.values()), strict=True))
    bottom = TOP - sum(LANES.values())
    for year in range(FIRST, LAST):
        canvas.line([(across(year), bottom), (across(year), TOP)], colour=GRID)
        canvas.text(across(year + 0.5), bottom - 0.14, str(year), size=SMALL)
    columns: Counter = Counter()
    for name, height in LANES.items():
        y = TOP - bottoms[name] + height
        canvas.line([(LEFT, y), (RIGHT, y)], colour=GRID)
        canvas.text(LEFT + 0.05, y - 0.13, words[name], align="left", colour=INK)
    for model in models.models():
        x = across(when(model))
        column = round(x / (2.3 * DOT))
        row = lane(model)
        level = columns[row, column]
        columns[row, column] += 1
        has = model["qk_norm"] not in (None, "none")
        y = TOP - bottoms[row] + 0.1 + level * 2.2 * DOT
        dot(canvas, column * 2.3 * DOT, y, SERIES[1] if has else PANEL, has)
    x = LEFT + 0.05
    for key, has in (("none", False), ("qk", True)):
        dot(canvas, x + DOT, TOP + 0.25, SERIES[1] if has else PANEL, has)
        canvas.text(x + 0.16, TOP + 0.25, words[key], align="left", size=SMALL)
        x += 1.5
    return canvas


def dot(canvas: Canvas, x: float, y: float, fill: str, filled: bool) -> None:
    edge = fill if filled else MUTED
    canvas.box(x - DOT, y - DOT, 2 * DOT, 2 * DOT, fill=fill, edge=edge, round_by=DOT)
