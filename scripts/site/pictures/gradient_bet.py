"""The home page's card: two recorded runs to bet on, drawn from their record.

A map a run: layers upwards, steps to the right; the fuller the colour, the larger the
gradient of the loss after that layer. Without scripts maps and verdict are shown;
home.js closes them until a reader has bet.
"""

import html
from math import log10

from scripts.site.data import facts
from scripts.site.data.facts import Names
from scripts.site.reading.source import SourceError

NAMES = ("gradient",)
EXPERIMENT = "running_maximum_loss"
ARMS = ("pre", "post")
LEAST, MOST, LEVELS = -7, -3, 8  # exponents of the colour scale, and its shades
SEED = 0
FORMULAS = {"pre": "x + f(norm(x))", "post": "norm(x + f(x))"}
WORDS = {
    "en": {
        "title": "Pre-Norm or Post-Norm: which one learns?",
        "prompt": "Two decoders of {opening_layers} layers, with the same start, data "
        "and learning rate. Only the place of the norm differs. Place your bet:",
        "pre": "Pre-Norm",
        "post": "Post-Norm",
        "end": "loss {loss}",
        "step": "step",
        "layer": "one row a layer, embedding below",
        "small": "gradient ≤ 1e-7",
        "large": "≥ 1e-3",
        "verdict": "At this learning rate only Pre-Norm learns. Post-Norm ends worse "
        "than embedding, norm and output head alone ({no_layers_opening}). Its middle "
        "layers get little gradient, and its tokens come close to one vector; the runs "
        "do not say which is the cause. At a third of the rate it learns too.",
        "setting": "The task: name the largest token so far. Adam at "
        "{opening_rate} without warm-up; losses: medians of five starts, maps: one.",
        "why": "Why?",
        "train": "Train them yourself",
        "alt": "Maps of the gradient by layer and step. Pre-Norm stays coloured in all "
        "layers; Post-Norm turns pale, most of all in the middle.",
    },
    "zh": {
        "title": "Pre-Norm、Post-Norm，谁学得会？",
        "prompt": "两个 {opening_layers} 层的解码器，起点、数据、学习率都相同，"
        "只有归一化的位置不同。押一个：",
        "pre": "Pre-Norm",
        "post": "Post-Norm",
        "end": "损失 {loss}",
        "step": "训练步数",
        "layer": "一行一层，最下面是嵌入",
        "small": "梯度 ≤ 1e-7",
        "large": "≥ 1e-3",
        "verdict": "在这个学习率下，只有 Pre-Norm 学得会。Post-Norm 最后比只有嵌入、"
        "归一化和输出层的模型（{no_layers_opening}）还差。中间几层的梯度很小，"
        "各个 token 也接近同一个向量，哪个是原因，这些训练说明不了。"
        "学习率降到三分之一，它也学得会。",
        "setting": "任务：说出到目前为止最大的 token。Adam，学习率 {opening_rate}，"
        "不预热；损失是五个起点的中位数，图是其中一个。",
        "why": "为什么？",
        "train": "自己训练",
        "alt": "两幅梯度图，横轴是步，纵轴是层。Pre-Norm 各层一直有颜色，Post-Norm "
        "褪了色，中间最明显。",
    },
}


def make(name: str, language: str, page_root: str) -> str:
    """The card as HTML. SourceError for an unknown name or without its record."""
    words, said = _words(name, language)
    record = facts.recorded()[EXPERIMENT][0]
    lanes = "".join(_lane(record, arm, words, said[f"{arm}_opening"]) for arm in ARMS)
    scale = "".join(
        f'<i style="opacity: {level / LEVELS:.3g}"></i>' for level in range(LEVELS + 1)
    )
    return (
        "<div data-search-exclude><gradient-bet>"
        f"<p><strong>{words['title']}</strong></p>"
        f'<p class="prompt">{words["prompt"]}</p>'
        f'<div class="lanes" role="img" aria-label="{html.escape(words["alt"])}">'
        f"{lanes}</div>"
        f'<p class="axis" aria-hidden="true"><span>{words["step"]} 0</span>'
        f"<span>{words['layer']}</span><span>{said['steps']}</span></p>"
        f'<p class="scale" aria-hidden="true">{words["small"]}{scale}'
        f"{words['large']}</p>"
        f'<p class="outcome">{words["verdict"]} <small>{words["setting"]}</small></p>'
        f'<p class="next"><a class="md-button md-button--primary" href="{page_root}'
        f'placement/pre-norm-vs-post-norm.md#gradient-dies">{words["why"]}</a> '
        f'<a class="md-button" href="{page_root}playground/index.md">{words["train"]}'
        "</a></p>"
        "</gradient-bet></div>"
    )


def text(name: str, language: str) -> str:
    """The card in words, for readers of plain text."""
    words, _ = _words(name, language)
    return " ".join(words[key] for key in ("title", "prompt", "verdict", "setting"))


def _words(name: str, language: str) -> tuple[dict[str, str], Names]:
    """The words filled with the facts, and the facts."""
    if name not in NAMES:
        raise SourceError(f"unknown bet {name!r}; known: {', '.join(NAMES)}")
    if EXPERIMENT not in facts.recorded():
        raise SourceError(f"no record of {EXPERIMENT} for the bet on the gradient")
    said = facts.facts()[EXPERIMENT]
    words = WORDS[language].items()
    return {key: text.format_map(_Kept(said)) for key, text in words}, said


class _Kept(dict):
    """Facts, and what is filled in later as it stands."""

    def __missing__(self, name: str) -> str:
        return "{" + name + "}"


def _lane(record, arm: str, words: dict, loss: str) -> str:
    rows = record.select(arm=arm, quantity="gradient", seed=SEED)
    values = [row["values"][::2] for row in sorted(rows, key=lambda r: r["depth"])]
    end = words["end"].format(loss=loss)
    return (
        f'<figure data-arm="{arm}"><figcaption><b>{words[arm]}</b> '
        f"<code>{FORMULAS[arm]}</code>"
        f'<span class="end">{end}</span></figcaption>{gradient_map(values)}</figure>'
    )


def gradient_map(values: list[list[float | None]]) -> str:
    """An SVG of cells: (layers, frames) gradients, the first layer at the bottom.

    Cells of one shade are one path; null, a run that has ended, has no cell.
    """
    height, width = len(values), len(values[0])
    cells: dict[int, list[str]] = {}
    for layer, row in enumerate(values):
        for frame, value in enumerate(row):
            cells.setdefault(shade(value), []).append(
                f"M{frame} {height - 1 - layer}h1v1h-1z"
            )
    paths = "".join(
        f'<path fill-opacity="{level / LEVELS:.3g}" d="{"".join(places)}"/>'
        for level, places in sorted(cells.items())
        if level
    )
    return (
        f'<svg viewBox="0 0 {width} {height}" preserveAspectRatio="none" '
        f'aria-hidden="true">{paths}</svg>'
    )


def shade(value: float | None) -> int:
    """0 to LEVELS, by the exponent of a gradient between LEAST and MOST."""
    if not value:
        return 0
    share = (log10(value) - LEAST) / (MOST - LEAST)
    return round(LEVELS * min(1.0, max(0.0, share)))
