"""A page with what is written from data in its place: lists, claims, questions."""

from scripts.site.data import claims, reference_lists
from scripts.site.data.facts import NAME
from scripts.site.questions import interview_pages

WRITTEN = {"lists": reference_lists, "claims": claims, "interview": interview_pages}


def expand(text: str, language: str) -> str:
    """The page's Markdown; what is written may hold boxes and code itself."""

    def fill(match):
        kind, _, name = match["name"].partition(".")
        return WRITTEN[kind].make(name, language) if kind in WRITTEN else match[0]

    return NAME.sub(fill, text)
