"""The interview's texts with nothing left to resolve, as Markdown and as HTML.

What the site's own pages get from MkDocs, flashcards get from here. Formulas stand
between the marks that Anki's MathJax knows: \\( \\) and \\[ \\].
"""

from functools import cache

from scripts.site.data.facts import NAME
from scripts.site.data.facts import text as fact_text


def markdown(text: str) -> str:
    """A text of the bank with its facts and citations filled in."""
    return NAME.sub(lambda match: fact_text(match["name"]), text.strip())


@cache
def _converter():
    from markdown import Markdown

    options = {"pymdownx.arithmatex": {"generic": True}}
    return Markdown(extensions=list(options), extension_configs=options)


@cache
def html(text: str) -> str:
    """Markdown in which nothing is left to resolve, as HTML."""
    return _converter().reset().convert(text)
