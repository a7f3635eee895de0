"""Every page with code as a notebook that runs on its own.

Code cells are the page's blocks; a block that imports a snippet of an earlier page
is preceded by a cell with that snippet's code, so the reader needs torch, on pages
with kernels Triton as well, and nothing of this repository. Outputs are the committed
.out files.
"""

import ast
import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from mkdocs.structure.files import File

from scripts.measure.records import RECORDS
from scripts.site.notebooks import judge
from scripts.site.pages.page_parts import (
    Part,
    has_code,
    lasting,
    once,
    parts,
    whereabouts,
)
from scripts.site.reading.files import read_text
from scripts.site.reading.source import ROOT, embedded, imports, last_changed, without

PREFIX = "snippets."
CONSTRAINTS = ROOT / "requirements.txt"
SETUP = """\
#@title {title}
from pathlib import Path

Path("judge.py").write_text(r'''{source}''', "utf-8")
from judge import check
"""
RUN = {  # who runs a notebook that lies on GitHub
    "Colab": "https://colab.research.google.com",
    "ModelScope": "https://modelscope.cn/notebook/share",
}
TRITON = re.compile(r"^(import|from) triton\b", re.MULTILINE)


def add(file, files, config) -> None:
    """Publish a notebook beside a page with code: rms-norm.md -> rms-norm.ipynb."""
    path = Path(file.abs_src_path)
    if not has_code(read_text(path)):
        return
    language, site_url = config.theme["language"], config.site_url or "/"
    words = json.dumps(config.extra["words"])
    made = _made(path, file.src_uri, language, site_url, words, stamps(path))
    files.append(File.generated(config, uri_of(file), content=made))


def stamps(path: Path) -> tuple:
    """When a page and what pages are made of were last changed."""
    return (path.stat().st_mtime_ns, *_sources())


@cache  # a live reload asks again for every page
def _made(path, uri, language, site_url, words, stamps) -> str:
    """The notebook of a page."""
    make = practice if judge.on_page(uri) else notebook
    return dumps(make(path, language, site_url, json.loads(words)))


@cache
def _sources() -> tuple:
    """What pages embed beside their own text; a changed file is a changed stamp."""
    names = ("snippets", "tests/snippets", "tests/claims", "docs/data")
    folders = [*(ROOT / name for name in names), RECORDS]
    files = (path for folder in folders for path in folder.rglob("*.*"))
    return last_changed([*files, CONSTRAINTS])


def read_again() -> None:
    """Look for changed sources; each build starts with this."""
    _sources.cache_clear()


def uri_of(file) -> str:
    return file.src_uri.removesuffix(".md") + ".ipynb"


def link(page, files, folder: str | None = None) -> None:
    """Tell the theme where the page's notebook is, and where it runs.

    folder: where the built notebooks of this language lie, "owner/name/blob/branch/en".
    """
    if found := files.get_file_from_path(uri_of(page.file)):
        page.meta["notebook"] = found.url
        if folder:
            at = f"{folder}/{found.dest_uri}"
            page.meta["open_in"] = [[n, f"{to}/github/{at}"] for n, to in RUN.items()]


def notebook(path: Path, language: str, site_url: str, words: dict) -> dict:
    """The page as a Jupyter notebook (nbformat 4.5)."""
    page = once(path, language, site_url)
    return _book(page, _uri(path, language), language, site_url, words)


def practice(path: Path, language: str, site_url: str, words: dict) -> dict:
    """A page of tasks as a notebook: below each cell to write in stands its check,
    and below that the answer, folded, as text that running all cells leaves alone.
    """
    uri, page = _uri(path, language), []
    for part in parts(path, language, site_url, folded=True):
        page.append(part)
        if part.kind == "code" and (name := judge.name_of(part.file)):
            page.append(Part("code", f'check("{name}")'))
    words = words | {
        "notebook": words["notebook"] + words["notebook_practice"],
        "notebook_triton": words["practice_triton"],
    }
    book = _book(page, uri, language, site_url, words)
    source = judge.text(language, site_url, judge.on_page(uri))
    setup = _code(SETUP.format(title=words["judge"], source=source))
    setup["metadata"] = {"cellView": "form", "jupyter": {"source_hidden": True}}
    book["cells"].insert(1, setup | {"id": "judge"})
    return book


def path_of(uri: str, language: str) -> Path:
    return ROOT / "docs" / language / "pages" / uri


def _uri(path: Path, language: str) -> str:
    return path.relative_to(path_of("", language)).as_posix()


def _book(
    page: Iterable[Part], uri: str, language: str, site_url: str, words: dict
) -> dict:
    cells = [_text("")]
    for part in page:
        if part.kind == "text":
            cells.append(_text(lasting(part.text, site_url)))
        elif part.kind == "code":
            cells.append(_code(part.text))
        else:
            printer = next(c for c in reversed(cells) if c["cell_type"] == "code")
            printer["outputs"] = [_stream(part.text)]
    given = {part.file for part in page if part.kind == "code"}
    cells = _self_contained(cells, given, words)
    tested = dict(
        re.findall(r"^(\S+)==(\S+)", CONSTRAINTS.read_text("utf-8"), re.MULTILINE)
    )
    needs = words["notebook"] + words["notebook_triton"] * _imports_triton(cells)
    origin = whereabouts(uri, language, site_url)
    cells[0]["source"] = needs.format(page=origin, **tested)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def lab(path: Path, words: dict) -> dict:
    """An executed lab as readers download it."""
    book = json.loads(path.read_text(encoding="utf-8"))
    return book | {"cells": _self_contained(book["cells"], set(), words)}


def with_snippets(sources: list[str], words: dict) -> list[dict]:
    """Cells of code, below cells with the snippets that they import."""
    return _self_contained([_code(source) for source in sources], set(), words)


def _self_contained(cells: list[dict], given: set[str], words: dict) -> list[dict]:
    """The cells with the code of the snippets that they import, and numbered ids.

    ``given`` names the snippet files whose code stands in the cells themselves.
    """
    out = []
    for cell in cells:
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            for file in _imported(source, given):
                given = given | {file}
                head = note(words, file)
                out.append(_code(f"{head}\n{_without_imports(embedded(file))}"))
            cell = cell | {"source": _without_imports(source)}
        out.append(cell)
    return [cell | {"id": f"cell-{number}"} for number, cell in enumerate(out)]


def note(words: dict, file: str) -> str:
    return f"# {words['earlier']}: snippets/{file}"


def _imports_triton(cells: list[dict]) -> bool:
    code = (c["source"] for c in cells if c["cell_type"] == "code")
    return any(TRITON.search(source) for source in code)


def dumps(book: dict) -> str:
    return json.dumps(book, ensure_ascii=False, indent=1) + "\n"


def _snippet_imports(code: str) -> list[ast.ImportFrom]:
    return [
        node
        for node in imports(code)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PREFIX)
    ]


def _imported(code: str, given: set) -> list[str]:
    """Snippet files that the code imports and that no cell gives yet, deepest first."""
    found = []
    for node in _snippet_imports(code):
        file = node.module.removeprefix(PREFIX).replace(".", "/") + ".py"
        if file not in given and file not in found:
            deeper = _imported(embedded(file), given | set(found))
            found += [f for f in deeper if f not in found]
            found.append(file)
    return found


def _without_imports(code: str) -> str:
    """The code without its imports of snippets, whose names earlier cells define."""
    nodes = _snippet_imports(code)
    aliases = [alias for node in nodes for alias in node.names if alias.asname]
    renamed = [f"{alias.asname} = {alias.name}" for alias in aliases]
    rest = without(code, nodes)
    if not renamed:
        return rest
    lines = rest.splitlines()
    kept = imports(rest)
    last = kept[-1].end_lineno if kept else 0
    return "\n".join([*lines[:last], *renamed, *lines[last:]])


def _text(text: str) -> dict:
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def _code(code: str) -> dict:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": code,
    }


def _stream(text: str) -> dict:
    return {"name": "stdout", "output_type": "stream", "text": text + "\n"}
