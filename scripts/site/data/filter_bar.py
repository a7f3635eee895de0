"""The buttons above a list that choose among its rows; site.js answers them."""

from collections.abc import Iterable

WORDS = {
    "en": {"all": "all", "public": "asked in public lists", "open": "open all answers"},
    "zh": {"all": "全部", "public": "公开题单里问过", "open": "展开全部答案"},
}


def filter_bar(
    values: Iterable[str],
    names: dict[str, str],
    label: str,
    language: str,
    *,
    public: int = 0,
    answers: bool = False,
) -> str:
    """One line of HTML.

    Args:
        values: What each row of the list is, in the list's order.
        names: The words for each of these.
        label: What the bar is called to a screen reader.
        language: "en" or "zh".
        public: How many rows were asked in public lists; their button comes last.
        answers: Whether a button opens and closes all answers of the list.

    """
    values, words = list(values), WORDS[language]
    choices = [("", words["all"], len(values))]
    choices += [(v, names[v], values.count(v)) for v in dict.fromkeys(values)]
    if public:
        choices.append(("public", words["public"], public))
    buttons = [
        f'<button type="button" value="{value}" '
        f'aria-pressed="{"false" if value else "true"}">{name} {count}</button>'
        for value, name, count in choices
    ]
    if answers:
        pressed = 'class="all-answers" aria-pressed="false"'
        buttons.append(f'<button type="button" {pressed}>{words["open"]}</button>')
    return (
        f'<div class="filter" role="group" aria-label="{label}" data-search-exclude>'
        f"{''.join(buttons)}</div>"
    )
