"""Code is coloured once for both languages, and alike means the same HTML."""

import pygments
import pytest
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer, TextLexer
from pymdownx import highlight

from scripts.site.pages import coloured

CODE = "x = 1\n"


def listing(code=CODE, lexer=PythonLexer, formatter=HtmlFormatter, strip=True, **how):
    return coloured.Listing(code, lexer(stripall=strip), formatter(**how))


def test_the_html_is_that_of_pygments_made_once(monkeypatch):
    plain = pygments.highlight
    made = []

    def counted(code, lexer, formatter):
        made.append(code)
        return plain(code, lexer, formatter)

    monkeypatch.setattr(highlight, "highlight", plain)
    monkeypatch.setattr(pygments, "highlight", counted)
    coloured._html.cache_clear()
    coloured.remember()
    wanted = plain(CODE, PythonLexer(), HtmlFormatter())
    for _ in range(2):
        assert highlight.highlight(CODE, PythonLexer(), HtmlFormatter()) == wanted
    assert made == [CODE]
    assert highlight.highlight(CODE, TextLexer(), HtmlFormatter()) != wanted
    assert len(made) == 2


@pytest.mark.parametrize(
    "other",
    [
        listing("y = 1\n"),
        listing(lexer=TextLexer),
        listing(strip=False),
        listing(linenos=True),
        listing(formatter=type("Other", (HtmlFormatter,), {})),
    ],
)
def test_what_decides_the_html_tells_listings_apart(other):
    assert listing() == listing() and hash(listing()) == hash(listing())
    assert listing() != other
