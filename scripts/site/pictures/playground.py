"""The playground: training runs in the reader's browser, side by side.

The screen is one script, the engine another: a worker runs it, or the page itself
where a browser refuses workers. Without scripts a line says where the recorded run is.
"""

import html

from mkdocs.structure.files import File

from scripts.site.data import facts
from scripts.site.pictures import explore
from scripts.site.reading.source import SourceError

NAMES = ("screen",)
FOLDER = explore.FOLDER / "playground"
STYLE = FOLDER / "playground.css"
SCREEN, WORKER = FOLDER / "screen.js", FOLDER / "worker.js"
PUBLISHED = {"playground.js": SCREEN, "training.js": WORKER}  # below explore.ASSETS
EXPERIMENT = "running_maximum_loss"
WORDS = {
    "en": {
        "why": "Why?",
        "still": "Training here needs scripts. The recorded run is drawn below.",
    },
    "zh": {"why": "为什么？", "still": "在这里训练需要脚本。录下的训练画在下面。"},
}


def make(name: str, language: str, page_root: str) -> str:
    """The screen as HTML. SourceError for an unknown name or without its record."""
    if name not in NAMES:
        raise SourceError(f"unknown playground {name!r}; known: {', '.join(NAMES)}")
    if EXPERIMENT not in facts.recorded():
        raise SourceError(f"no record of {EXPERIMENT} for the playground")
    words, assets = WORDS[language], page_root + explore.ASSETS
    given = {
        "engine": f"{assets}training.js",
        "bare": facts.facts()[EXPERIMENT]["no_layers_opening"],
    }
    data = "".join(f' data-{key}="{html.escape(text)}"' for key, text in given.items())
    return (
        '<div class="playground" data-search-exclude>'
        f'<link rel="stylesheet" href="{assets}{STYLE.name}">'
        f"<gradient-playground{data}><p>{words['still']} "
        f'<a href="{page_root}placement/pre-norm-vs-post-norm.md#gradient-dies">'
        f"{words['why']}</a></p></gradient-playground>"
        f'<script src="{assets}playground.js" defer></script></div>'
    )


def text(language: str) -> str:
    """The screen in words, for readers of plain text."""
    return WORDS[language]["still"]


def add(files, config) -> None:
    """Publish the screen, the engine that it starts, and their stylesheet."""
    for name, path in PUBLISHED.items():
        content = explore.classic(path)
        files.append(File.generated(config, explore.ASSETS + name, content=content))
    style = STYLE.read_text(encoding="utf-8")
    uri = explore.ASSETS + STYLE.name
    files.append(File.generated(config, uri, content=style))
