"""The policy of a page: of inline scripts only the theme's run, each by its hash.

Which these are is read from the templates that write the page, so that a new version
of the theme brings its own. An inline script that no template has stops the build.
"""

import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from scripts.site.laws import markup
from scripts.site.reading.source import SourceError

PLACE = "'inline-scripts'"  # in main.html, where the hashes go
# While serving MkDocs adds a script of its own; offline the frame that stands in for
# the search's worker has one that holds the reader's own path.
ANYTHING = "'unsafe-inline'"
INLINE = re.compile(r"<script[^>]*>(?P<code>.*?)</script>", re.DOTALL)
VALUE = re.compile(r"\{\{.*?\}\}", re.DOTALL)  # what Jinja fills in: an address
ADDRESS = r"""[^"'<>\\(){};]*"""


def own(folders: Iterable[str]) -> Callable[[str], bool]:
    """Whether a script is one of the templates' of these folders."""
    known = _known(tuple(folders))
    return lambda code: any(pattern.fullmatch(code) for pattern in known)


@cache
def _known(folders: tuple[str, ...]) -> list[re.Pattern]:
    texts = (
        path.read_text(encoding="utf-8")
        for folder in folders
        for path in sorted(Path(folder).rglob("*.html"))
    )
    codes = {found["code"] for text in texts for found in INLINE.finditer(text)}
    parts = (map(re.escape, VALUE.split(code)) for code in sorted(codes) if code)
    return [re.compile(ADDRESS.join(part)) for part in parts]


def apply(html: str, is_own: Callable[[str], bool]) -> str:
    """A page with the hashes of its inline scripts in its policy."""
    codes = markup.inline_scripts(markup.tags(html))
    if foreign := [code for code in codes if not is_own(code)]:
        raise SourceError(f"an inline script that no template has: {foreign[0][:60]!r}")
    if html.count(PLACE) != 1:
        raise SourceError(f"no policy with {PLACE} in the page")
    return html.replace(PLACE, " ".join(map(markup.digest, dict.fromkeys(codes))))
