"""Lab pages: executed notebooks into the site, and their HTML made light.

mkdocs-jupyter renders a notebook with 590 KB of inlined styles and pictures
without alternative text. Here the page keeps the cells and drops the rest; the
few rules that a lab needs stand in the site's own stylesheet.
"""

import html as html_module
import json
import re
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

from scripts.measure import figures, svg
from scripts.site.notebooks import copied_programs, page_notebooks
from scripts.site.notebooks.lab_source import EXECUTED, executed_path, sources, uri
from scripts.site.reading.files import read_json

CODE = re.compile(r"<(pre|code)\b.*?</\1>", re.DOTALL)
MATHS = re.compile(
    r"\$\$(?P<display>[^$]+?)\$\$|(?<![\\$\w])\$(?P<inline>[^$\n]+?)\$(?![\d$])"
)


def add(files, config) -> None:
    """The executed notebooks as pages, and as downloads that run on their own."""
    language = config.theme["language"]
    for source in sources():
        path = executed_path(source, language)
        if not path.is_file():
            raise PluginError(f"lab {source.name} is not rendered; run: make render")
        page = File(
            uri(source),
            src_dir=str(EXECUTED / language),
            dest_dir=config.site_dir,
            use_directory_urls=config.use_directory_urls,
        )
        files.append(page)
        read_json(path)  # which says what is wrong
        text = page_notebooks.dumps(page_notebooks.lab(path, config.extra["words"]))
        files.append(File.generated(config, download_uri(page), content=text))
        copied_programs.add(page, files, config)


def download_uri(file) -> str:
    stem = Path(file.src_uri).stem
    return f"labs/{stem}/{stem}.ipynb"


def is_lab(page) -> bool:
    return page.file.src_uri.startswith("labs/")


def slim(html: str, page) -> str:
    """The notebook's cells in the site's own dress, pictures inline and named."""
    from bs4 import BeautifulSoup

    book = json.loads(Path(page.file.abs_src_path).read_text(encoding="utf-8"))
    soup = BeautifulSoup(html, "html.parser")
    rendered = soup.select(".jp-RenderedMarkdown, .highlight-ipynb pre")
    if len(rendered) != len(book["cells"]):
        raise PluginError(
            f"{page.file.src_uri}: {len(book['cells'])} cells, {len(rendered)} rendered"
        )
    out, headings = [], []
    for number, (cell, tag) in enumerate(zip(book["cells"], rendered, strict=True)):
        if cell["cell_type"] == "markdown":
            out.append(_text(tag, cell["metadata"].get("heading"), headings))
        else:
            out.append(f'<div class="language-python highlight">{_code(tag)}</div>')
            out += _outputs(cell, f"picture-{number}")
    _name_headings(page.toc, iter(headings))
    return "\n".join(out)


def _text(tag, heading_id: str | None, headings: list) -> str:
    heading = tag.find(["h1", "h2", "h3"])
    if heading is not None:
        heading["id"] = heading_id
        link = heading.find(class_="anchor-link")
        link["class"], link["href"] = "headerlink", f"#{heading_id}"
        headings.append(heading_id)
    return _mark_formulas(tag.decode_contents())


def _name_headings(toc, ids) -> None:
    """Give the table of contents the ids that the headings carry."""
    for item in toc:
        item.id = next(ids)
        _name_headings(item.children, ids)


def _code(tag) -> str:
    return f"<pre><code>{tag.decode_contents().strip()}</code></pre>"


def _outputs(cell: dict, name: str):
    for output in cell["outputs"]:
        data = output.get("data", {})
        if "image/svg+xml" in data:
            picture = "".join(data["image/svg+xml"])
            yield (
                f'<figure class="measured" data-search-exclude>'
                f"{_themed(picture, cell['metadata']['alt'], name)}</figure>"
            )
        else:
            text = html_module.escape(
                "".join(output.get("text", data.get("text/plain")))
            )
            yield (
                '<div class="language-text highlight"><pre><code>'
                f"{text.rstrip()}</code></pre></div>"
            )


def _themed(picture: str, alt: str, name: str) -> str:
    """An inline SVG that follows the colour scheme, with ids of its own."""
    picture = svg.inline(svg.slim(picture))
    picture = re.sub(r'\bid="', f'id="{name}-', picture)
    picture = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", picture)
    for colour, meaning in figures.COLOURS.items():
        picture = picture.replace(colour, f"var(--figure-{meaning})")
    size = re.compile(r'(<svg[^>]*?) (?:width|height)="[^"]*"')
    picture = size.sub(r"\1", size.sub(r"\1", picture, count=1), count=1)
    return svg.named(picture.replace("<svg", '<svg role="img"', 1), alt)


def _mark_formulas(html: str) -> str:
    """$...$ of text cells as the elements that formulas.py typesets."""

    def mark(match):
        if match["display"] is not None:
            return f'<div class="arithmatex">\\[{match["display"]}\\]</div>'
        return f'<span class="arithmatex">\\({match["inline"]}\\)</span>'

    out, at = [], 0
    for skipped in CODE.finditer(html):
        out += [MATHS.sub(mark, html[at : skipped.start()]), skipped[0]]
        at = skipped.end()
    return "".join([*out, MATHS.sub(mark, html[at:])])
