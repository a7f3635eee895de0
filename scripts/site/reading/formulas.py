"""Formulas: TeX to HTML and MathML by the vendored KaTeX, during the build.

Readers load no script for maths, a page reads well without scripts, and a formula
that KaTeX rejects fails the build with the page's name. A page with many formulas says
`formulas: mathml` in its front matter and gets the MathML alone, a tenth of the bytes.
"""

import html as html_module
import re
from functools import cache

from mkdocs.exceptions import PluginError

from scripts.site.reading.javascript import running
from scripts.site.reading.source import ROOT

KATEX = ROOT / "docs" / "theme" / "katex" / "katex.min.js"
# What arithmatex (generic) leaves in a page, and what labs.py makes of $...$.
FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\(?:\((?P<inline>.*?)\\\)'
    r"|\[(?P<display>.*?)\\\])</(?P=tag)>",
    re.DOTALL,
)
REPEATED = re.compile(r"\\\((.*?)\\\)")
# In HTML the parser knows what <math> is; the TeX beside it nobody reads.
WRAPPING = re.compile(
    r"<annotation .*?</annotation>|</?semantics>"
    r'| xmlns="http://www.w3.org/1998/Math/MathML"',
    re.DOTALL,
)
FINE = re.compile(r"(\d\.\d\d)\d+(?=em)")  # a hundredth of a letter is enough
MATHML = re.compile(r"<semantics>(.*?)<annotation ", re.DOTALL)


class FormulaError(ValueError):
    """A formula that KaTeX cannot read. One line."""


@cache
def _katex() -> str:
    return KATEX.read_text(encoding="utf-8")


@cache
def to_html(tex: str, display: bool) -> str:
    """One formula as KaTeX HTML with MathML beside it for screen readers."""
    from py_mini_racer import JSEvalException

    options = {"displayMode": display, "throwOnError": True, "strict": "error"}
    try:
        return running(_katex()).call("katex.renderToString", tex, options)
    except JSEvalException as error:
        reason = re.search(r"(?:Parse)?Error: (.*)", str(error))
        message = reason[1] if reason else str(error).splitlines()[0]
        # KaTeX marks the place with combining underlines, unreadable in a log.
        message = message.replace("\u0332", "")
        raise FormulaError(f"formula {tex.strip()!r}: {message}") from None


def render(html: str, page) -> str:
    """The page's HTML with every formula typeset."""
    only_mathml = page.meta.get("formulas") == "mathml"

    def typeset(match):
        display = match["display"] is not None
        tex = html_module.unescape(match["display"] if display else match["inline"])
        try:
            body = to_html(tex, display)
        except FormulaError as error:
            raise PluginError(f"{page.file.src_uri}: {error}") from None
        if only_mathml:
            block = ' display="block"' if display else ""
            return f"<math data-search-exclude{block}>{MATHML.search(body)[1]}</math>"
        # A display formula may scroll sideways on a phone: let keys reach it.
        focus = ' tabindex="0"' if display else ""
        body = FINE.sub(r"\1", WRAPPING.sub("", body))
        tag = match["tag"]
        return f'<{tag} class="arithmatex" data-search-exclude{focus}>{body}</{tag}>'

    return FORMULA.sub(typeset, html)


def render_contents(items) -> None:
    """Typeset the formulas of headings where the table of contents repeats them."""
    for item in items:
        item.title = REPEATED.sub(
            lambda match: to_html(html_module.unescape(match[1]), False), item.title
        )
        render_contents(item.children)
