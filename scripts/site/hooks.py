"""MkDocs hook of both language projects: which step happens at which event.

The steps themselves are modules beside this one.
"""

import contextlib
import posixpath
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from mkdocs.exceptions import PluginError  # noqa: E402
from mkdocs.plugins import event_priority  # noqa: E402

from scripts.measure.records import RecordError  # noqa: E402
from scripts.site.atlas import compare, downloads  # noqa: E402
from scripts.site.data import citations, claims, facts, reference_lists  # noqa: E402
from scripts.site.notebooks import copied_programs, judge, labs, page_notebooks  # noqa: E402
from scripts.site.pages import coloured, deeper, macros, page_parts  # noqa: E402
from scripts.site.pictures import explore, playground  # noqa: E402
from scripts.site.publish import (  # noqa: E402
    anki_decks,
    cards,
    llms,
    offline,
    policy,
    published_records,
    search,
)
from scripts.site.questions import interview_pages  # noqa: E402
from scripts.site.reading import (  # noqa: E402
    formulas,
    generated,
    outputs,
    source,
    translations,
)
from scripts.site.reading.files import read_text  # noqa: E402

# Names, punctuation and blanks in code have the colour of the text around them:
# their spans are a fifth of a page's bytes.
UNCOLOURED = re.compile(r'<span class="(?:n|p|w)">([^<]*)</span>')
CHINESE_EM = re.compile(r"<em>(?=[^<]*[\u3400-\u9fff])")

# What templates leave around ends of lines, a tenth of a page's bytes.
BLANKS = re.compile(r"(<(pre|script|textarea)\b.*?</\2>)|\s*\n\s*", re.DOTALL)
AROUND_NAMES = re.compile(r'(<span class="md-ellipsis">)\n([^<>]*)\n(</span>)')

# Comments, indents and ends of lines of the stylesheet; a blank before a colon counts.
CSS_COMMENT, CSS_BLANKS = re.compile(r"/\*.*?\*/", re.DOTALL), re.compile(r"\s+")
CSS_AROUND = re.compile(r" ?([{};,>]) ?|(?<=:) ")

# A link to a page in HTML that Markdown did not read.
RAW_LINK = re.compile(r'href="(?P<page>(?:\.\./)?[\w/-]+\.md)(?P<anchor>#[\w-]+)?"')


def _resolved(link, page, files) -> str:
    folder = posixpath.dirname(page.file.src_uri)
    target = posixpath.normpath(posixpath.join(folder, link["page"]))
    file = files.get_file_from_path(target)
    url = file.url_relative_to(page.file) if file else link["page"]
    return f'href="{url}{link["anchor"] or ""}"'


@contextlib.contextmanager
def one_line(where):
    """What is wrong with a page or a record as one line that names it."""
    try:
        yield
    except (source.SourceError, outputs.OutputError, RecordError) as error:
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
    reference_lists.read_again()
    facts.read_again()
    page_notebooks.read_again()
    page_parts.read_again()
    with one_line("generated files"):
        generated.check()
    with one_line("pages"):
        reference_lists.pages(config.theme["language"])
    with one_line("records"):
        facts.facts()
        macros.check_drawn(config.theme["language"])
    with one_line("references"):
        citations.references()
    with one_line("interview"):
        interview_pages.check(config.theme["language"])
    with one_line("search"):
        search.teach_jieba()
    search.teach_material()
    coloured.remember()
    offline.prepare(config)
    if not config.repo_url:
        config.edit_uri = None
    return config


@event_priority(100)  # before mkdocs-jupyter, which wraps the labs' notebooks
def on_files(files, config, **_):
    with one_line("pages"):
        translations.check()
    with one_line("labs"):
        labs.add(files, config)
    for file in list(files.documentation_pages()):
        if file.src_uri.endswith(".md"):
            with one_line(_path(file, config)):
                source.check(read_text(Path(file.abs_src_path)))
                page_notebooks.add(file, files, config)
                copied_programs.add(file, files, config)
    published_records.add(files, config)
    explore.add(files, config)
    playground.add(files, config)
    offline.add(files, config)
    with one_line("atlas"):
        downloads.add(files, config)
        compare.add(files, config)
    with one_line("decks"):
        anki_decks.add(files, config)
    with one_line("judge"):
        judge.add(files, config)
    return files


@event_priority(100)  # before macros, which resolves [[ ]]
def on_page_markdown(markdown, page, config, files, **_):
    if labs.is_lab(page):  # its Markdown is the notebook's JSON
        download = files.get_file_from_path(labs.download_uri(page.file))
        page.meta["notebook"] = download.url
        copied_programs.link(page, files)
        return markdown
    with one_line(_path(page.file, config)):
        macros.check_names(markdown)
    lie = config.extra.get("notebooks")
    lie = lie and f"{lie}/{config.theme['language']}"
    page_notebooks.link(page, files, lie)
    copied_programs.link(page, files)
    with one_line(_path(page.file, config)):
        if names_typed := search.other_names(page.meta):
            page.meta["tags"] = names_typed
    language, path = config.theme["language"], page.file.src_uri
    with one_line("claims"):
        markdown = claims.append_links(markdown, path, language)
    with one_line("interview"):
        markdown = interview_pages.append_links(markdown, path, language)
    return citations.append_list(markdown, config)


def on_nav(nav, config, **_):
    config.extra["nav_object"] = nav


def on_page_content(html, page, config, files, **_):
    html = RAW_LINK.sub(lambda link: _resolved(link, page, files), html)
    if labs.is_lab(page):
        html = labs.slim(html, page)
    html = formulas.render(UNCOLOURED.sub(r"\1", html), page)
    html = dotted(html)
    page.meta["card"] = cards.address(page, config)
    formulas.render_contents(page.toc)
    return html


def dotted(html: str) -> str:
    """Emphasis of Chinese words by a dot below each; a variable stays slanted."""
    return CHINESE_EM.sub('<em class="dotted">', html)


def on_post_page(output, page, config, **_):
    with one_line(_path(page.file, config)):
        return _with_policy(deeper.folded(without_blanks(output)), config)


def without_blanks(html: str) -> str:
    """A page without the blanks that templates leave."""
    html = BLANKS.sub(lambda found: found[1] or "\n", html)
    return AROUND_NAMES.sub(r"\1\2\3", html)


def on_post_template(output_content, template_name, config, **_):
    if not template_name.endswith(".html"):
        return output_content
    with one_line(template_name):
        return _with_policy(output_content, config)


def _with_policy(html: str, config) -> str:
    if config.extra.get("serving") or offline.wanted(config):
        return html.replace(policy.PLACE, policy.ANYTHING)
    return policy.apply(html, policy.own(config.theme.dirs))


def on_post_build(config, **_):
    if not _dirty:  # it holds all pages, and only some were read
        llms.write(config)
        cards.write(config)
    search.mend_worker(config.site_dir)
    search.slim_index(config.site_dir)
    stylesheet = Path(config.site_dir) / "assets" / "site.css"
    stylesheet.write_text(lean(stylesheet.read_text("utf-8")), "utf-8")


def lean(css: str) -> str:
    """The stylesheet without what only people read."""
    css = CSS_BLANKS.sub(" ", CSS_COMMENT.sub("", css))
    return CSS_AROUND.sub(lambda found: found[1] or "", css).strip()
