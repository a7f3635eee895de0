"""Reading pages: front matter, fences and the snippet sections they embed.

Everything that looks at a page's source (the laws, the block runner, the
notebooks, llms.txt) goes through this module, so that they all see the same
fences. Text in, text out; no MkDocs here.
"""

import ast
import re
import symtable
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from scripts.site.reading.files import ROOT, SourceError, load_yaml, read_text, where

SNIPPETS = ROOT / "snippets"
LANGUAGES = ("zh", "en")

FENCE = re.compile(r"^(?P<indent> *)(?P<mark>`{3,}|~{3,})(?P<info>.*)$")
EMBED = re.compile(r'^-{1,}8<-{1,} "(?P<file>[^":]+)(?::(?P<section>[^":]+))?"$')
MARKER = re.compile(r"-{1,}8<-{1,} \[(?P<kind>start|end): *(?P<name>[^\]]+)\]")
FRONT_MATTER = re.compile(r"\A---\n(.*?\n)---\n", re.DOTALL)


def last_changed(paths: Iterable[Path]) -> tuple[tuple[Path, int], ...]:
    """When each file was last changed, in ns: the key of what is made of them."""
    return tuple((path, path.stat().st_mtime_ns) for path in sorted(paths))


@dataclass(frozen=True)
class Fence:
    """One fenced block: ``line`` and ``end`` are the 1-based fence lines."""

    info: str
    body: str
    line: int
    end: int
    indent: int
    mark: str

    @property
    def embed(self) -> tuple[str, str | None] | None:
        """(file, section) when the body is exactly one embed, else None."""
        match = EMBED.match(self.body.strip())
        return (match["file"], match["section"]) if match else None


def fences(text: str) -> list[Fence]:
    """All fenced blocks of a page, in order, whatever their info string."""
    found, lines, i = [], text.splitlines(), 0
    while i < len(lines):
        opening = FENCE.match(lines[i])
        if not opening:
            i += 1
            continue
        mark, start = opening["mark"], i
        i += 1
        while i < len(lines) and not re.fullmatch(
            rf" *{re.escape(mark[0])}{{{len(mark)},}} *", lines[i]
        ):
            i += 1
        if i == len(lines):
            raise SourceError(f"line {start + 1}: fence is never closed")
        body = textwrap.dedent("\n".join(lines[start + 1 : i]))
        indent = len(opening["indent"])
        found.append(Fence(opening["info"], body, start + 1, i + 1, indent, mark))
        i += 1
    return found


def front_matter(text: str) -> dict:
    """The fields over a page. SourceError where there are none, or no title."""
    front = FRONT_MATTER.match(text)
    if not front:
        raise SourceError("line 1: no front matter between two lines ---")
    fields = load_yaml(front[1], "front matter", first_line=2)
    title = fields.get("title") if isinstance(fields, dict) else None
    if not isinstance(title, str):
        raise SourceError("line 1: front matter without a title")
    return fields


def without_front_matter(text: str) -> str:
    """The page's text with its front matter blanked, line numbers kept."""
    return FRONT_MATTER.sub(lambda m: "\n" * m[0].count("\n"), text)


def sections(text: str) -> dict[str, str]:
    """Sections of a snippet by name, markers removed.

    Raises SourceError for markers that are nested, unbalanced or repeated.
    """
    found: dict[str, str] = {}
    name, body = None, []
    for number, line in enumerate(text.splitlines(), 1):
        marker = MARKER.search(line)
        if marker is None:
            body.append(line)
        elif marker["kind"] == "start":
            if name is not None:
                raise SourceError(f"line {number}: section opens inside {name!r}")
            if marker["name"] in found:
                raise SourceError(f"line {number}: section {marker['name']!r} twice")
            name, body = marker["name"], []
        else:
            if marker["name"] != name:
                raise SourceError(
                    f"line {number}: end of {marker['name']!r}, open is {name!r}"
                )
            found[name], name = textwrap.dedent("\n".join(body)).strip("\n"), None
    if name is not None:
        raise SourceError(f"section {name!r} is never closed")
    return found


def check(text: str, root: Path = SNIPPETS) -> None:
    """Raise SourceError for the first fence that readers see but nobody runs."""
    for fence in fences(text):
        if fence.mark != "```" or fence.info not in ("python", "text"):
            opening = fence.mark + fence.info
            raise SourceError(
                f"line {fence.line}: fence {opening!r} would be skipped by the tests; "
                "only ```python and ```text are run"
            )
        if fence.embed is None:
            raise SourceError(f"line {fence.line}: a fence holds exactly one embed")
        try:
            embedded(*fence.embed, root)
        except SourceError as error:
            raise SourceError(f"line {fence.line}: {error}") from None


def embedded(file: str, section: str | None = None, root: Path = SNIPPETS) -> str:
    """The text that ``--8<-- "file:section"`` puts on a page."""
    path = root / file
    if not path.is_file():
        raise SourceError(f"no snippet {file}")
    text = read_text(path)
    if section is None:
        lines = [line for line in text.splitlines() if not MARKER.search(line)]
        return "\n".join(lines).strip("\n")
    try:
        return sections(text)[section]
    except SourceError as error:
        raise SourceError(f"{file}: {error}") from None
    except KeyError:
        raise SourceError(f"no section {section!r} in {file}") from None


def first_line(file: str, section: str | None = None, root: Path = SNIPPETS) -> int:
    """The 1-based line of the snippet file at which its embedded text begins."""
    lines = read_text(root / file).splitlines()
    start = 0
    if section is not None:
        names = [MARKER.search(line) for line in lines]
        start = next(i for i, m in enumerate(names, 1) if m and m["name"] == section)
    return next(i for i, line in enumerate(lines[start:], start + 1) if line.strip())


def function(path: Path, name: str) -> str:
    """A function of a Python file, as it stands there."""
    found = _functions(path, path.stat().st_mtime_ns) if path.is_file() else {}
    if name not in found:
        raise SourceError(f"{where(path)} has no {name}")
    return found[name]


@cache
def _functions(path: Path, stamp: int) -> dict[str, str]:
    lines = read_text(path).splitlines()
    return {
        node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno])
        for node in ast.parse("\n".join(lines)).body
        if isinstance(node, ast.FunctionDef)
    }


def complete(path: Path, *names: str) -> str:
    """Names of a Python file below all that they need of that file: its imports,
    and the functions and constants that they use. A file of its own, ready to run.
    """
    known = _module(path, path.stat().st_mtime_ns)[2] if path.is_file() else {}
    for name in names:
        if name not in known:
            raise SourceError(f"{where(path)} has no {name}")
    return _complete(path, names, path.stat().st_mtime_ns)


@cache
def _complete(path: Path, names: tuple[str, ...], stamp: int) -> str:
    lines, body, owner = _module(path, stamp)
    needed, todo = {}, {*names}
    while todo:
        wanted = todo.pop()
        if wanted in owner and wanted not in needed:
            node = owner[wanted]
            needed[wanted] = node
            if not isinstance(node, ast.Import | ast.ImportFrom):
                todo |= global_names(_text(node, lines))
    imports, last = [], 0
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            used = [a for a in node.names if (a.asname or a.name) in needed]
            if used:
                between = lines[last : node.lineno - 1]
                imports += [""] if imports and "" in between else []
                imports.append(import_line(node, used))
                last = node.end_lineno
    wanted = {id(node) for node in needed.values()}
    others = [
        _text(node, lines)
        for node in body
        if id(node) in wanted and not isinstance(node, ast.Import | ast.ImportFrom)
    ]
    return "\n\n\n".join(filter(None, ["\n".join(imports), *others]))


@cache
def _module(path: Path, stamp: int) -> tuple[list[str], list[ast.stmt], dict]:
    """Lines, statements, and the statement that gives each name its meaning."""
    text = read_text(path)
    body = ast.parse(text).body
    return text.splitlines(), body, {name: n for n in body for name in bound(n)}


def bound(node: ast.stmt) -> list[str]:
    """The names that a statement of a module gives a meaning."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    if isinstance(node, ast.Assign):
        parts = [part for target in node.targets for part in ast.walk(target)]
        return [part.id for part in parts if isinstance(part, ast.Name)]
    return [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []


def _text(node: ast.stmt, lines: list[str]) -> str:
    decorators = getattr(node, "decorator_list", [])
    first = min(part.lineno for part in (node, *decorators))
    return "\n".join(lines[first - 1 : node.end_lineno])


@cache
def imports(text: str) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """The import statements at the top level of a module, in order."""
    body = ast.parse(text).body
    return tuple(n for n in body if isinstance(n, ast.Import | ast.ImportFrom))


def import_line(node: ast.Import | ast.ImportFrom, used: list[ast.alias]) -> str:
    """An import of some of its names, on several lines where it is long."""
    if isinstance(node, ast.Import):
        return ast.unparse(ast.Import(used))
    line = ast.unparse(ast.ImportFrom(node.module, used, node.level))
    if len(line) <= 88:
        return line
    names = "".join(f"    {ast.unparse(alias)},\n" for alias in used)
    return f"from {node.module} import (\n{names})"


def without(text: str, nodes: Sequence[ast.stmt]) -> str:
    """A module's text without some of its statements, which stand in order."""
    lines = text.splitlines()
    for node in reversed(nodes):
        del lines[node.lineno - 1 : node.end_lineno]
    return "\n".join(lines).strip("\n")


def global_names(text: str) -> set[str]:
    """The names that a piece of a module takes from outside of itself."""
    todo, found = [symtable.symtable(text, "<check>", "exec")], set()
    while todo:
        table = todo.pop()
        todo += table.get_children()
        outside = table.get_type() == "module"
        found |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced()
            # In a function named "top" Python calls parameters global and local.
            and (outside or (symbol.is_global() and not symbol.is_local()))
        }
    return found


@dataclass(frozen=True)
class Heading:
    """One ``## Title { #id }`` line; ``id`` is None where none is written."""

    level: int
    title: str
    id: str | None
    line: int


HEADING = re.compile(r"^(#{1,6}) +(.+?)(?: +\{ #([^ }]+) \})? *$")


def without_fences(text: str) -> str:
    """The page's text with front matter and fences blanked, line numbers kept."""
    lines = without_front_matter(text).splitlines()
    for fence in fences(text):
        lines[fence.line - 1 : fence.end] = [""] * (fence.end - fence.line + 1)
    return "\n".join(lines)


def headings(text: str) -> list[Heading]:
    """All headings outside fences, in order."""
    lines = enumerate(without_fences(text).splitlines(), 1)
    matches = ((number, HEADING.match(line)) for number, line in lines)
    return [Heading(len(m[1]), m[2], m[3], number) for number, m in matches if m]
