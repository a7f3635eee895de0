"""Which cells of an (N, C, L) tensor share their statistics, norm by norm."""

from scripts.site.pictures.diagram import GRID, INK, MUTED, PANEL, SERIES, SMALL, Canvas

WORDS = {
    "zh": {
        "caption": "一个张量，三根轴 N、C、L，六种归一化。蓝色的格子共用统计量。",
        "alt": (
            "六幅小图，每幅都是并排的两个样本，每个样本是四行通道、六列位置的网格。"
            "BatchNorm：两个样本的第一行全部着色。InstanceNorm：只有第一个样本的第一行"
            "。分两组的 GroupNorm：第一个样本的上面两行，所有位置。只有一组的 "
            "GroupNorm：第一个样本的全部格子。LayerNorm 与 RMSNorm：第一个样本的第一列"
            "，所有通道。两个头的逐头 QK-Norm：第一列的上面两格。"
        ),
        "batch": "BatchNorm",
        "instance": "InstanceNorm",
        "group": "GroupNorm，2 组",
        "whole": "GroupNorm，1 组",
        "layer": "LayerNorm、RMSNorm",
        "head": "QK-Norm，2 个头",
        "channel": "C：通道、特征",
        "place": "L：位置",
        "sample": "N = 2 个样本",
    },
    "en": {
        "caption": "One tensor (N, C, L), six norms. Blue cells share statistics.",
        "alt": (
            "Six small pictures, each with two samples side by side, each sample a "
            "grid of four rows of channels and six columns of positions. BatchNorm: "
            "the first row of both samples is coloured. InstanceNorm: the first row "
            "of the first sample only. GroupNorm with two groups: the upper two rows "
            "of the first sample, all positions. GroupNorm with one group: every cell "
            "of the first sample. LayerNorm and RMSNorm: the first column of the "
            "first sample, all channels. QK-Norm per head with two heads: the upper "
            "two cells of that column."
        ),
        "batch": "BatchNorm",
        "instance": "InstanceNorm",
        "group": "GroupNorm, 2 groups",
        "whole": "GroupNorm, 1 group",
        "layer": "LayerNorm, RMSNorm",
        "head": "QK-Norm, 2 heads",
        "channel": "C: channels, features",
        "place": "L: positions",
        "sample": "N = 2 samples",
    },
}
ROWS, COLUMNS, CELL = 4, 6, 0.17
# (samples, rows, columns) that share their statistics, from the first cell on
SHARED = {
    "batch": (2, 1, COLUMNS),
    "instance": (1, 1, COLUMNS),
    "group": (1, 2, COLUMNS),
    "whole": (1, ROWS, COLUMNS),
    "layer": (1, ROWS, 1),
    "head": (1, 2, 1),
}


def sample(canvas: Canvas, x: float, y: float, rows: int, columns: int) -> None:
    """One sample's grid with its top left at (x, y)."""
    wide, tall = COLUMNS * CELL, ROWS * CELL
    canvas.box(x, y - tall, wide, tall, round_by=0, edge="none", fill=PANEL)
    if rows:
        canvas.box(
            x,
            y - rows * CELL,
            columns * CELL,
            rows * CELL,
            round_by=0,
            edge="none",
            fill=SERIES[0],
        )
    for i in range(ROWS + 1):
        canvas.line([(x, y - i * CELL), (x + wide, y - i * CELL)], colour=GRID, width=1)
    for i in range(COLUMNS + 1):
        canvas.line([(x + i * CELL, y), (x + i * CELL, y - tall)], colour=GRID, width=1)


def draw(words: dict) -> Canvas:
    canvas = Canvas(width=5.0, height=3.75)
    step = COLUMNS * CELL + 0.1
    for i, (name, (samples, rows, columns)) in enumerate(SHARED.items()):
        x, y = 0.15 + 2.5 * (i % 2), 3.4 - 1.1 * (i // 2)
        canvas.text(x, y + 0.17, words[name], align="left", weight="bold")
        sample(canvas, x, y, rows, columns)
        both = samples == 2
        sample(canvas, x + step, y, rows if both else 0, columns)
    for x, name in ((0.15, "sample"), (1.75, "channel"), (3.85, "place")):
        canvas.text(x, 0.2, words[name], size=SMALL, colour=MUTED, align="left")
    canvas.arrow((1.65, 0.3), (1.65, 0.08), colour=INK)
    canvas.arrow((3.5, 0.2), (3.75, 0.2), colour=INK)
    return canvas
