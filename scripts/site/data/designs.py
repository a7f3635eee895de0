"""The design of an experiment as a page shows it, folded: `[[ designs.<name> ]]`.

Its text stands in docs/facts, written by `render`.
"""

import html

LABELS = {
    "en": {
        "title": "Design",
        "chosen": "Best rate of each, by the median over seeds",
        "edge": "* the least or the greatest that was tried",
        "colon": ": ",
    },
    "zh": {
        "title": "实验设计",
        "chosen": "各自最好的学习率（按种子的中位数）",
        "edge": "* 是试过的最小值或最大值",
        "colon": "：",
    },
}


def block(described: dict, language: str) -> str:
    """A folded block: HTML on one line, so that it may stand in a box."""
    labels = LABELS[language]
    items = "".join(
        f"<li><strong>{html.escape(head)}</strong>{labels['colon']}"
        f"{html.escape(text, quote=False)}</li>"
        for head, text in described["items"]
    )
    return (
        f'<details class="abstract" data-search-exclude><summary>{labels["title"]}'
        f"</summary><ul>{items}</ul>{_rates(described['rates'], labels)}</details>"
    )


def plain(described: dict, language: str) -> str:
    """The design as Markdown, for notebooks and llms.txt."""
    labels = LABELS[language]
    items = [f"- {head}{labels['colon']}{text}" for head, text in described["items"]]
    return "\n".join([f"**{labels['title']}**", "", *items])


def _rates(rates: dict | None, labels: dict) -> str:
    if rates is None:
        return ""
    top = f"<thead>{_row(rates['heads'], 'th')}</thead>" if rates["heads"] else ""
    note = f"<p>{labels['edge']}</p>" if rates["edge"] else ""
    return (
        f'<p>{labels["chosen"]}</p><table class="chosen">{top}<tbody>'
        f"{''.join(_row(row, 'td') for row in rates['rows'])}</tbody></table>{note}"
    )


def _row(cells: list[str], tag: str) -> str:
    inside = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
    return f"<tr>{inside}</tr>"
