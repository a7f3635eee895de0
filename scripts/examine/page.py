"""The report as one HTML page that needs no other file: both languages, the drawing."""

import html
import re

from scripts.examine.text import (
    against_lines,
    entry_line,
    heading,
    layers_of,
    no_faults,
    row_lines,
)
from scripts.examine.words import WORDS
from scripts.site.atlas import drawing, rows

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1f; --paper: #fff; --line: #767680;
  --norm: #dbe8ff; --branch: #f1f1f4; --inner: #c3d7fb; --fault: #a3171d; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6ea; --paper: #1b1b1f;
  --line: #9a9aa4; --norm: #263b63; --branch: #2d2d34; --inner: #375489;
  --fault: #ff9a94; } }
body { background: var(--paper); color: var(--ink); margin: 0 auto; max-width: 46rem;
  padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
code { font: .9em ui-monospace, monospace; }
.equations { overflow-x: auto; white-space: pre; }
.picture { overflow-x: auto; }
.fault { border-inline-start: .25rem solid var(--fault); padding-inline-start: .75rem; }
.fault h3 { color: var(--fault); }
svg.block text { fill: var(--ink); font: 12px ui-monospace, monospace; }
svg.block rect, svg.block path, svg.block circle { stroke: var(--line); fill: none; }
svg.block rect.norm { fill: var(--norm); }
svg.block rect.branch { fill: var(--branch); }
svg.block rect.inner { fill: var(--inner); }
svg.block circle { fill: var(--paper); }
svg.block { max-width: none; }
nav a { margin-inline-end: 1rem; color: inherit; }
"""


def page(report: dict) -> str:
    """The whole page."""
    title = html.escape(report["name"])
    both = "\n".join(_section(report, language) for language in ("en", "zh"))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1><code>{title}</code></h1>\n"
        '<nav><a href="#en">English</a><a href="#zh" lang="zh">中文</a></nav>\n'
        f"<main>\n{both}</main>\n</body>\n</html>\n"
    )


def _code(text: str) -> str:
    """Escaped text, what stands in backticks as code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text, quote=False))


def _list(lines) -> str:
    return "<ul>\n" + "".join(f"<li>{_code(line)}</li>\n" for line in lines) + "</ul>\n"


def _section(report: dict, language: str) -> str:
    words = WORDS[language]
    tag = "zh-Hans" if language == "zh" else "en"
    parts = [f'<section id="{language}" lang="{tag}">\n']
    title = words["title"].format(f"`{report['name']}`")
    parts.append(f"<h2>{_code(title)}</h2>\n{_list(heading(report, language))}")
    parts.append(_faults(report, language))
    for row in report["rows"]:
        parts.append(f"<h3>{html.escape(layers_of(row, language))}</h3>\n")
        parts.append(_picture(row, words))
        lines = "\n".join(html.escape(line) for line in row["equations"])
        parts.append(f'<p class="equations"><code>{lines}</code></p>\n')
        parts.append(_list(_clean(row_lines(row, language))))
    if report["reads"]:
        parts.append(f"<p>{words[report['reads']]}</p>\n")
    if report["remarks"]:
        remarks = [entry_line(entry, language) for entry in report["remarks"]]
        parts.append(f"<h3>{words['remarks']}</h3>\n{_list(remarks)}")
    if report["against"]:
        name = words["against"].format(f"`{report['against']['name']}`")
        parts.append(f"<h3>{_code(name)}</h3>\n")
        parts.append(_list(against_lines(report, language)))
    parts.append(f"<p>{words['limits']}</p>\n")
    parts.append("</section>\n")
    return "".join(parts)


def _clean(lines):
    """Lines of the atlas, whose reasons are escaped already."""
    return [html.unescape(line) for line in lines]


def _faults(report: dict, language: str) -> str:
    words = WORDS[language]
    if not report["faults"]:
        return f"<p><strong>{no_faults(report, language)}</strong></p>\n"
    lines = [entry_line(entry, language) for entry in report["faults"]]
    return f'<div class="fault"><h3>{words["faults"]}</h3>\n{_list(lines)}</div>\n'


def _picture(row: dict, words: dict) -> str:
    if not row["equations"]:
        return ""
    label = words["drawing"].format("; ".join(row["equations"]))
    try:
        picture = drawing.draw(row["equations"], label, rows.within(row))
    except drawing.EquationError:
        return ""  # the equations stand below in any case
    return f'<div class="picture" tabindex="0">{picture}</div>\n'
