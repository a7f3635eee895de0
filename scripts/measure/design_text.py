"""What a page tells of an experiment's design: DESIGN and its record, as text.

What it asks, what would refute it, arms, controls, the rates tried and chosen, widths,
seeds, and what it lacks.
"""

from collections.abc import Iterable

from scripts.measure import design, figures
from scripts.measure.records import Record, load_experiment

LABELS = {
    "en": {
        "question": "Question",
        "refuted_by": "What would refute it",
        "arms": "Arms",
        "controls": "Controls",
        "without_layers": "embedding and head without layers",
        "frozen": "{}, its blocks frozen at initialization",
        "grid": "Learning rates",
        "none": "all failed",
        "widths": "Widths",
        "seeds": "Seeds",
        "stopping": "Stopping rule",
        "lacks": "Rules that it does not meet",
        "join": "; ",
        "and": ", ",
        "space": " ",
    },
    "zh": {
        "question": "问题",
        "refuted_by": "什么结果会推翻它",
        "arms": "实验组",
        "controls": "对照",
        "without_layers": "没有层，只有嵌入和输出层",
        "frozen": "{}，各块冻结在初始值",
        "grid": "学习率",
        "none": "全部失败",
        "widths": "宽度",
        "seeds": "随机种子",
        "stopping": "停止规则",
        "lacks": "没有满足的规则",
        "join": "；",
        "and": "、",
        "space": "",
    },
}


def described(record: Record, language: str, facts: dict) -> dict:
    """``items``: [head, text] of all that is known of the design; ``rates``: the best
    rate of each arm, ``heads`` and ``rows`` of cells, or None where none was chosen."""
    shape, texts, name = _read(record, language, facts)
    labels, runs = LABELS[language], shape.read(record)
    arms = texts.get("arms", {})
    items = {
        labels["question"]: texts["question"],
        labels["refuted_by"]: texts["refuted_by"],
        labels["arms"]: labels["join"].join(arms.get(a, name(a)) for a in shape.arms),
        labels["controls"]: labels["join"].join(
            arms.get(a, name(a)) for a in shape.controls
        ),
        texts.get("grid", labels["grid"]): _numbers((r.rate for r in runs), labels),
        labels["widths"]: _numbers((r.width for r in runs), labels),
        labels["seeds"]: labels["and"].join(map(str, record.provenance["seeds"])),
        labels["stopping"]: texts["stopping"],
        labels["lacks"]: labels["space"].join(
            dict.fromkeys(reason[language] for reason in shape.lacks.values())
        ),
    }
    return {
        "items": [[head, text] for head, text in items.items() if text],
        "rates": _rates(runs, texts, name, labels),
    }


def _read(record: Record, language: str, facts: dict) -> tuple:
    """The design, its texts, and what an arm is called: as in the figure, or so."""
    module = load_experiment(record.experiment)
    words = figures.fill(module.WORDS[language], facts)
    labels, shape = LABELS[language], module.DESIGN
    texts = figures.fill(shape.words[language], facts)
    frozen = {twin: arm for arm, twin in shape.frozen.items()}

    def name(arm: str) -> str:
        if isinstance(words.get(arm), str):
            return words[arm]
        if arm in texts.get("arms", {}):
            return texts["arms"][arm]
        if arm in frozen:
            return labels["frozen"].format(name(frozen[arm]))
        return labels["without_layers"] if arm == shape.without_layers else arm

    return shape, texts, name


def _numbers(values: Iterable[float | None], labels: dict) -> str:
    numbers = sorted({value for value in values if value is not None})
    return labels["and"].join(f"{value:.10g}" for value in numbers)


def _rates(runs: list, texts: dict, name, labels: dict) -> dict | None:
    """The best rates as a table, a row an arm, a column a cell; * is at the edge."""
    best, at_edge = design.chosen(runs), design.edges(runs)
    if len({run.rate for run in runs if run.rate is not None}) < 2:
        return None
    cells = list(dict.fromkeys(cell for _, cell in best if cell is not None)) or [None]

    def shown(arm: str, cell: tuple | None) -> str:
        place = (arm, cell) if (arm, cell) in best else (arm, None)
        if place not in best:
            return ""
        rate = labels["none"] if best[place] is None else f"{best[place]:.10g}"
        return rate + ("*" if place in at_edge else "")

    named = (labels["and"].join(map(name, map(str, cell or ()))) for cell in cells)
    heads = [texts.get("cell", ""), *named]
    rows = [
        [name(arm), *(shown(arm, cell) for cell in cells)]
        for arm in dict.fromkeys(arm for arm, _ in best)
    ]
    return {"heads": heads if any(heads) else [], "rows": rows, "edge": bool(at_edge)}
