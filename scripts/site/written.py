"""The interview's texts with nothing left to resolve, as Markdown and as HTML.

What the site's own pages get from MkDocs, flashcards get from here. Formulas stand
between the marks that Anki's MathJax knows: \\( \\) and \\[ \\].
"""

from functools import cache


def fill(name: str) -> str:
    """The text of ``facts.<experiment>.<name>``, or ``cite.<key>`` as a link."""
    from scripts.site import facts

    kind, _, rest = name.partition(".")
    if kind == "cite":
        reference = facts.cite()[rest]
        return f"([{reference.authors}, {reference.year}]({reference.url}))"
    value = facts.facts()
    for step in rest.split("."):
        value = value[step]
    return str(value)


def markdown(text: str) -> str:
    """A text of the bank with its facts and citations filled in."""
    from scripts.site import facts

    facts.check_names(text)
    return facts.NAME.sub(lambda match: fill(match["name"]), text.strip())


@cache
def _converter():
    from markdown import Markdown

    options = {"pymdownx.arithmatex": {"generic": True}}
    return Markdown(extensions=list(options), extension_configs=options)


@cache
def html(text: str) -> str:
    """Markdown in which nothing is left to resolve, as HTML."""
    return _converter().reset().convert(text)
