"""Labs: one percent script in, one executed notebook a language out.

Code cells stand once; text cells come in pairs, `# %% [markdown] lang="zh"` and
`lang="en"`, with the same `id="..."` if they hold a heading. A code cell that draws
carries `alt_zh` and `alt_en`, one alternative text for its picture. The executed
notebooks are committed, so building the site needs neither torch nor a kernel.
"""

import hashlib
import os
import re
import tempfile
from pathlib import Path

from scripts.errors import UserError
from scripts.measure.digest import snippets_digest
from scripts.measure.records import write_whole
from scripts.site.reading.source import LANGUAGES, ROOT

LABS = ROOT / "docs" / "labs"
EXECUTED = ROOT / "docs" / "figures"  # / <language> / labs / <lab>.ipynb
STYLE = ROOT / "docs" / "theme" / "lab.mplstyle"
SLOWEST = 300  # seconds a cell may take
# Pictures as SVG with nothing in them that changes from run to run.
SETUP = "%config InlineBackend.figure_formats = ['svg']"
ENVIRONMENT = os.environ | {
    "MATPLOTLIBRC": str(STYLE),
    "PYTHONPATH": str(ROOT),
    "SOURCE_DATE_EPOCH": "0",
}


class LabError(UserError):
    """A lab that is not written as meant or does not run. One line."""


def sources() -> list[Path]:
    return sorted(LABS.glob("*.py"))


def uri(source: Path) -> str:
    """Where the lab stands in either language: labs/deep-stack.ipynb."""
    return f"labs/{source.stem.replace('_', '-')}.ipynb"


def executed_path(source: Path, language: str) -> Path:
    return EXECUTED / language / uri(source)


def digest(source: Path) -> str:
    """Of the script's text, the style, and the code of the snippets it imports."""
    text = source.read_text(encoding="utf-8")
    parts = [text, STYLE.read_text(encoding="utf-8"), snippets_digest(text)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def notebook(source: Path, language: str):
    """The lab in one language, not executed. Raises LabError for unpaired text."""
    import jupytext

    book = jupytext.read(source, fmt="py:percent")
    _check_pairs(book.cells, source)
    book.cells = [
        cell
        for cell in book.cells
        if cell.cell_type == "code" or cell.metadata["lang"] == language
    ]
    for number, cell in enumerate(book.cells):
        kept = {"alt": f"alt_{language}", "heading": "id"}
        given = {name: cell.metadata.get(key) for name, key in kept.items()}
        cell.metadata = {name: value for name, value in given.items() if value}
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book.metadata = {"kernelspec": kernel}
    book.nbformat, book.nbformat_minor = 4, 5
    return book


def _check_pairs(cells, source: Path) -> None:
    def fail(cell, words):
        start = cell.source.strip().splitlines()[0][:40]
        raise LabError(f"{source.name}: {words}: {start!r}")

    texts = [i for i, cell in enumerate(cells) if cell.cell_type == "markdown"]
    for place in range(0, len(texts), 2):
        pair = [cells[i] for i in texts[place : place + 2]]
        together = len(pair) == 2 and texts[place + 1] == texts[place] + 1
        if not together or [c.metadata.get("lang") for c in pair] != [*LANGUAGES]:
            fail(pair[0], "text without a twin beside it")
        for cell in pair:
            count = len(re.findall(r"^#{1,3} ", cell.source, re.MULTILINE))
            same_id = cell.metadata.get("id") == pair[0].metadata.get("id")
            if not same_id or count != ("id" in cell.metadata):
                fail(cell, "one heading a text cell, with the same id as its twin")
    for cell in cells:
        if ("alt_zh" in cell.metadata) != ("alt_en" in cell.metadata):
            fail(cell, "a picture with one alternative text only")


def execute(source: Path) -> None:
    """Run the lab once and write both languages' notebooks with its outputs."""
    from nbclient.exceptions import CellExecutionError
    from nbformat.v4 import new_code_cell

    books = {language: notebook(source, language) for language in LANGUAGES}
    book = notebook(source, "en")
    book.cells.insert(0, new_code_cell(SETUP))
    try:
        _run(book)
    except CellExecutionError as error:
        raise LabError(f"{source.name}: {error.ename}: {error.evalue}") from None
    outputs = [_clean(cell) for cell in book.cells[1:] if cell.cell_type == "code"]
    for language, other in books.items():
        code = [cell for cell in other.cells if cell.cell_type == "code"]
        for cell, out in zip(code, outputs, strict=True):
            cell.outputs, cell.execution_count = out, None
            pictures = sum("image/svg+xml" in o.get("data", {}) for o in out)
            if pictures != ("alt" in cell.metadata):
                raise LabError(
                    f"{source.name}: {pictures} pictures in the cell that starts "
                    f"{cell.source.splitlines()[0]!r}; one with alt_zh, alt_en is meant"
                )
        _write(other, executed_path(source, language))


def _run(book) -> None:
    """Execute a notebook in place, in a kernel that speaks to this process only."""
    from jupyter_client import KernelManager
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as sockets:
        manager = KernelManager(kernel_name="python3", transport="ipc")
        manager.ip = f"{sockets}/kernel"
        client = NotebookClient(book, km=manager, timeout=SLOWEST)
        try:
            client.execute(env=ENVIRONMENT)
        finally:
            if manager.has_kernel:
                manager.shutdown_kernel(now=True)
            if client.kc is not None:
                client.kc.stop_channels()
            manager.cleanup_resources()
            manager.context.destroy(linger=0)


def _clean(cell) -> list:
    """Outputs without what changes from run to run; stderr is an error."""
    kept = []
    for output in cell.outputs:
        if output.output_type == "stream" and output.name == "stderr":
            raise LabError(f"a cell wrote to stderr: {output.text.strip()[:80]}")
        if "data" in output:
            svg = output.data.get("image/svg+xml")
            plain = output.data.get("text/plain")
            data = {"image/svg+xml": svg} if svg else {"text/plain": plain}
            output.update(output_type="display_data", data=data, metadata={})
            output.pop("execution_count", None)
        if kept and output.output_type == kept[-1].output_type == "stream":
            kept[-1].text += output.text  # where it was cut is chance
        else:
            kept.append(output)
    return kept


def _write(book, path: Path) -> None:
    import nbformat

    nbformat.validate(book)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, nbformat.writes(book) + "\n")
