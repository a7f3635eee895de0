"""One thing, one colour, in every figure.

A placement, a norm or a control of the logits has the same colour wherever it is
drawn. A plot asks by name, `figures.style("pre")`; whatever asks by number keeps the
colours by their place in its own list.
"""

from collections.abc import Iterable

# Name of an arm: its place among figures.SERIES, and how figures label it.
COLOURED: dict[str, tuple[int, list[str]]] = {
    "post": (0, ["Post-Norm"]),
    "pre": (1, ["Pre-Norm", "Pre-LN"]),
    "deepnorm": (2, ["DeepNorm"]),
    "small_writers": (3, ["GPT-2's initialization", "GPT-2 的初始化"]),
    "sandwich": (4, ["Sandwich norm", "夹心归一化"]),
    "normformer": (5, ["NormFormer"]),
    "rms_norm": (0, ["RMSNorm", "scaling (RMSNorm)", "只缩放（RMSNorm）"]),
    "layer_norm": (1, ["LayerNorm", "both (LayerNorm)", "两步都做（LayerNorm）"]),
    "batch_norm": (4, ["BatchNorm"]),
    "plain": (0, ["plain attention", "plain", "普通注意力"]),
    "qk_norm": (1, ["QK-Norm"]),
    "soft_cap": (2, ["soft cap 50", "软上限 50"]),
    "qk_clip": (3, ["QK-Clip 100"]),
}
# Arms that stand beside these in one figure.
BESIDE_THEM = {
    "attention_norm": 3,
    "both": 4,  # QK-Norm and a cap
    "branch_output": 3,
    "centring": 2,
    "half_depth": 2,
    "head_scale": 2,
    "inner_norm": 4,
    "neither": 3,
    "norms_only": 0,
    "pre_without_final_norm": 3,
    "scaled": 5,
    "scaling": 2,
}
PLACES = BESIDE_THEM | {
    word: place
    for name, (place, labels) in COLOURED.items()
    for word in (name, *labels)
}


def misplaced(drawn: Iterable[tuple[str, str]], series: tuple[str, ...]) -> list[str]:
    """What is drawn in another colour than its own: (label, hex) of each line.

    Colours outside ``series`` (grey for a control, ink) are free.
    """
    return [
        f"{label!r} is drawn in colour {series.index(colour) + 1}, not {place + 1}"
        for label, colour in drawn
        if colour in series
        and (place := PLACES.get(label)) is not None
        and series.index(colour) != place
    ]
