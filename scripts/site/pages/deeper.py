"""What stands under a page's heading #deeper folds, section by section.

The headings stay in sight, as the summaries of the folds. This is done to the finished
page, so that the search and the contents see its sections as they were written.
"""

import re

from scripts.site.reading.source import SourceError

FORK = '<h2 id="deeper">'
SECTION = re.compile(r'(?=<h2 id="[\w-]+">)')
HEADED = re.compile(
    r'(?P<head><h2 id="(?P<id>[\w-]+)">.*?</h2>)(?P<body>.*)', re.DOTALL
)
PERMALINK = re.compile(r'<a class="headerlink".*?</a>')  # no link in a summary
IN_SIGHT = ("limits", "questions", "references")  # what ends a page


def folded(html: str) -> str:
    """The page with its deeper sections folded; SourceError if none ends them."""
    above, fork, below = html.partition(FORK)
    if not fork:
        return html
    first, *sections = SECTION.split(below)
    found = [HEADED.fullmatch(section) for section in sections]
    if not found or found[-1]["id"] not in IN_SIGHT:
        raise SourceError(f"#deeper without one of {', '.join(IN_SIGHT)} after it")
    return "".join([above, fork, first, *map(_fold, found)])


def _fold(section: re.Match) -> str:
    if section["id"] in IN_SIGHT:
        return section[0]
    head = PERMALINK.sub("", section["head"])
    body = f"<summary>{head}</summary>{section['body']}"
    return f'<details class="deeper">{body}</details>'
