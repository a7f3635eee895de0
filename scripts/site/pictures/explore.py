"""Live figures: ES modules of docs/theme/explore as one classic script each.

A browser refuses modules at file:// addresses, and instant navigation runs a classic
script again. So modules are joined: imports and the word export go, and each name at
the top of a module is the only one of its kind. The opening state that a page holds for
readers without scripts is written by the same code, run during the build.
"""

import html
import json
import re
from pathlib import Path

from mkdocs.structure.files import File

from scripts.site.reading.javascript import running
from scripts.site.reading.source import ROOT, SourceError

FOLDER = ROOT / "docs" / "theme" / "explore"
ENGINE, FIGURES = FOLDER / "engine", FOLDER / "figures"
HOME = FOLDER / "home.js"
STYLE = FIGURES / "explore.css"
ASSETS = "assets/explore/"
IMPORT = re.compile(
    r'^import \{[^}]*\} from "(?P<file>\.{1,2}/[^"]+)";\n', re.MULTILINE
)
# Comments that have their lines to themselves: they stay in the source.
COMMENT = re.compile(r"^ *(?://.*|/\*\*(?:[^*]|\*(?!/))*\*/)\n", re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:const|function\*?|class) )", re.MULTILINE)


def modules(path: Path) -> list[Path]:
    """A module and all that it imports, each after what it needs."""
    found: list[Path] = []
    for match in IMPORT.finditer(path.read_text(encoding="utf-8")):
        deeper = modules((path.parent / match["file"]).resolve())
        found += [module for module in deeper if module not in found]
    return [*found, path]


def joined(*paths: Path) -> str:
    """The code of modules and of all that they import, in one scope."""
    every = dict.fromkeys(module for path in paths for module in modules(path))
    texts = (path.read_text(encoding="utf-8") for path in every)
    return "\n".join(map(bare, texts))


def bare(text: str) -> str:
    """A module without what only its source needs: comments, imports, exports."""
    for part in (COMMENT, IMPORT, EXPORT):
        text = part.sub("", text)
    return text.strip()


def names() -> list[str]:
    """Live figures: every module but those that they share."""
    found = {path.stem for path in FIGURES.glob("*.js")}
    return sorted(found - {"element", "picture", "space"})


def script(name: str) -> str:
    """A figure and all that it needs as one classic script."""
    return classic(FIGURES / f"{name}.js")


def classic(path: Path) -> str:
    """A module and all that it needs, in a scope of its own."""
    return f'(() => {{\n"use strict";\n{joined(path)}\n}})();\n'


def ask(name: str, expression: str):
    """The value of an expression in which ``figure`` is the live figure."""
    if name not in names():
        raise SourceError(f"unknown live figure {name!r}; known: {', '.join(names())}")
    call = f"JSON.stringify(((figure) => {expression})(explore.{name}))"
    return json.loads(running(script(name)).eval(call))


def page(name: str, language: str, root: str) -> str:
    """A live figure in its opening state; ``root`` leads to the language's pages."""
    caption = ask(name, f"figure.words.{language}.caption")
    assets = root + ASSETS
    return (
        f'<figure class="explore" data-search-exclude id="explore-{name}">'
        f'<link rel="stylesheet" href="{assets}{STYLE.name}">'
        f"<figcaption>{html.escape(caption)}</figcaption>"
        f"<explore-{name}>{ask(name, f'figure.page({language!r})')}</explore-{name}>"
        f'<script src="{assets}{name}.js" defer></script></figure>'
    )


def text(name: str, language: str) -> str:
    """The opening state in words, for notebooks and plain Markdown."""
    words = f"figure.words.{language}"
    caption = ask(name, f"{words}.caption")
    return f"*{caption}* {ask(name, f'figure.says(figure.opening, {words})')}"


def add(files, config) -> None:
    """Publish the figures' scripts, their stylesheet and the home page's script."""
    for name in names():
        uri = f"{ASSETS}{name}.js"
        files.append(File.generated(config, uri, content=script(name)))
    files.append(File.generated(config, "assets/home.js", content=classic(HOME)))
    style = STYLE.read_text(encoding="utf-8")
    files.append(File.generated(config, ASSETS + STYLE.name, content=style))
