"""MkDocs hook of both language projects: which step happens at which event.

The steps themselves are modules beside this one.
"""

import contextlib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from mkdocs.exceptions import PluginError  # noqa: E402
from mkdocs.plugins import event_priority  # noqa: E402

from scripts.measure.records import RecordError  # noqa: E402
from scripts.site import (  # noqa: E402
    citations,
    claims,
    facts,
    formulas,
    labs,
    llms,
    notebooks,
    published,
    search,
    source,
    twins,
)

# Names, punctuation and blanks in code have the colour of the text around them:
# their spans are a fifth of a page's bytes.
UNCOLOURED = re.compile(r'<span class="(?:n|p|w)">([^<]*)</span>')


@contextlib.contextmanager
def one_line(where):
    """What is wrong with a page or a record as one line that names it."""
    try:
        yield
    except (source.SourceError, RecordError) as error:
        raise PluginError(f"{where}: {error}") from None


def _path(file, config) -> str:
    return f"docs/{config.theme['language']}/pages/{file.src_uri}"


_dirty = False


def on_startup(dirty, **_):
    global _dirty
    _dirty = dirty
    # MkDocs takes the path back after loading this file; the macros need it.
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))


@event_priority(100)  # before macros, whose traceback nobody wants to read
def on_config(config, **_):
    with one_line("records"):
        facts.facts()
    with one_line("references"):
        citations.references()
    search.teach_jieba()
    if not config.repo_url:
        config.edit_uri = None
    return config


@event_priority(100)  # before mkdocs-jupyter, which wraps the labs' notebooks
def on_files(files, config, **_):
    with one_line("pages"):
        twins.check()
    labs.add(files, config)
    for file in list(files.documentation_pages()):
        if file.src_uri.endswith(".md"):
            with one_line(_path(file, config)):
                source.check(Path(file.abs_src_path).read_text(encoding="utf-8"))
                notebooks.add(file, files, config)
    published.add(files, config)
    return files


@event_priority(100)  # before macros, which resolves [[ ]]
def on_page_markdown(markdown, page, config, files, **_):
    if labs.is_lab(page):  # its Markdown is the notebook's JSON
        download = files.get_file_from_path(labs.download_uri(page.file))
        page.meta["notebook"] = download.url
        return markdown
    with one_line(_path(page.file, config)):
        facts.check_names(markdown)
    notebooks.link(page, files)
    with one_line("claims"):
        language = config.theme["language"]
        markdown = claims.append_links(markdown, page.file.src_uri, language)
    return citations.append_list(markdown, config)


def on_nav(nav, config, **_):
    config.extra["nav_object"] = nav


def on_page_content(html, page, config, **_):
    if labs.is_lab(page):
        html = labs.slim(html, page)
    return formulas.render(UNCOLOURED.sub(r"\1", html), page)


def on_post_build(config, **_):
    if not _dirty:  # it holds all pages, and only some were read
        llms.write(config)
    search.mend_worker(config.site_dir)
