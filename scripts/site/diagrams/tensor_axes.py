"""Which cells of a (batch, sequence, feature) tensor share their statistics."""

from scripts.site.diagram import GRID, MUTED, PANEL, SERIES, Canvas

WORDS = {
    "zh": {
        "caption": "BatchNorm 与 LayerNorm：涂色的格子共用一个均值和一个方差。",
        "alt": (
            "两排图，每排是一个 batch 里的两个序列，各画成一张网格：横向是位置，纵向是"
            "特征；第二个序列的最后两个位置是填充，格子是空的。上排是 BatchNorm：涂色的"
            "是同一个特征的整整一行，横跨两个序列的所有位置，连填充也在内。下排是"
            " LayerNorm：涂色的只有一列，即一个 token 的全部特征。"
        ),
        "batch_norm": "BatchNorm",
        "layer_norm": "LayerNorm",
        "first": "序列 1",
        "second": "序列 2",
        "position": "位置",
        "feature": "特征",
        "row": "一个特征，batch 里的所有 token",
        "column": "一个 token，它的所有特征",
        "padding": "填充",
    },
    "en": {
        "caption": "BatchNorm and LayerNorm: the coloured cells share one mean and"
        " one variance.",
        "alt": (
            "Two rows of drawings. Each shows the two sequences of a batch as grids"
            " with positions across and features down; the last two positions of the"
            " second sequence are padding and drawn empty. Above, BatchNorm: the"
            " coloured cells are one whole row, a single feature at all positions of"
            " both sequences, padding included. Below, LayerNorm: the coloured cells"
            " are one column, all features of a single token."
        ),
        "batch_norm": "BatchNorm",
        "layer_norm": "LayerNorm",
        "first": "sequence 1",
        "second": "sequence 2",
        "position": "position",
        "feature": "feature",
        "row": "one feature, all tokens of the batch",
        "column": "one token, all its features",
        "padding": "padding",
    },
}

CELL = 0.25
POSITIONS, FEATURES, PADS = 6, 4, 2
LEFT = (0.95, 2.9)  # of the two sequences


def draw(words: dict[str, str]) -> Canvas:
    canvas = Canvas(width=5.0, height=4.14)
    _norm(canvas, words, 2.4, "batch_norm", "row", SERIES[0])
    _norm(canvas, words, 0.32, "layer_norm", "column", SERIES[1])
    return canvas


def _norm(canvas, words, bottom, name, what, colour):
    """One norm: both sequences, the cells that share statistics filled."""
    top = bottom + FEATURES * CELL
    canvas.text(0.12, top + 0.58, words[name], align="left", weight="bold")
    canvas.text(1.35, top + 0.58, words[what], align="left", colour=colour)
    for sequence, left in enumerate(LEFT):
        middle = left + POSITIONS * CELL / 2
        canvas.text(middle, top + 0.22, words[("first", "second")[sequence]])
        for position in range(POSITIONS):
            pad = sequence == 1 and position >= POSITIONS - PADS
            for feature in range(FEATURES):
                shared = {
                    "row": feature == 1,
                    "column": sequence == 0 and position == 2,
                }[what]
                canvas.box(
                    left + position * CELL,
                    top - (feature + 1) * CELL,
                    CELL,
                    CELL,
                    fill=colour if shared else ("none" if pad else PANEL),
                    edge=GRID if pad and not shared else MUTED,
                    round_by=0,
                )
        start = left + (POSITIONS - PADS / 2) * CELL
        label = words["padding"] if sequence else words["position"]
        place = start if sequence else middle
        canvas.text(place, bottom - 0.18, label, colour=MUTED)
    canvas.arrow(
        (LEFT[0], bottom - 0.18), (LEFT[0] + 0.42, bottom - 0.18), colour=MUTED
    )
    canvas.text(0.48, top - 0.5 * CELL, words["feature"], colour=MUTED)
    canvas.arrow((0.48, top - CELL), (0.48, bottom), colour=MUTED)
