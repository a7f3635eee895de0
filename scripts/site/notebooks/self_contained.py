"""What the copy button of a page hands over: code that runs by itself.

A block of a page goes on where earlier blocks stopped and imports snippets of earlier
pages. Of the cells of the page's notebook, which hold all of that, a block needs those
that define the names it uses or act on them, what those need in their turn, and, if
it calls anything, the last seed before it.
"""

import ast
import builtins
import json
import re
import symtable
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial

from scripts.site.reading.source import global_names, import_line, imports, without

SEED = "manual_seed"
NOTE = re.compile(r" *# \(\d+\)!$", re.MULTILINE)  # where a remark hangs on the page
GIVEN = re.compile(r"\bGiven: (\w+)\(")  # what a stub, still without a body, may call
GAP = re.compile(r"\n{4,}")  # where imports or marks of sections stood
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


ENVIRONMENT = "os"  # a cell that acts on it sets a variable that imports read

Parts = list[str | int]  # a program: import lines and numbers of cells, in order


def script(sources: list[str], blocks: list[Parts], page: Parts | None) -> str:
    """A script with the programs of a page's blocks, and with that of the page, for the
    theme to put together.
    """
    cells = [_body(source) for source in sources]
    data = {"cells": cells, "blocks": blocks} | ({"page": page} if page else {})
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return f"dispatchEvent(new CustomEvent('programs',{{detail:{text}}}));\n"


def program(sources: list[str], parts: Parts) -> str:
    """A block's program as one file. The theme joins the same parts in the same way."""
    texts = [p if isinstance(p, str) else _body(sources[p]) for p in parts]
    return "\n\n\n".join(filter(None, texts)) + "\n"


@dataclass(frozen=True)
class Cell:
    """What a cell's code does with names."""

    reads: frozenset[str]
    asks: frozenset[str]  # of those that it reads, the ones it takes from elsewhere
    binds: frozenset[str]
    acts_on: frozenset[str]  # imported, or taken from elsewhere
    calls: bool  # something, which may draw random numbers
    seeds: bool
    imports: tuple[ast.Import | ast.ImportFrom, ...]


def copies(sources: list[str]) -> list[Parts]:
    """For each cell of a program, in order, what it needs to run without the others.

    Imports come first; before them only cells that set an environment variable.
    """
    cells = [_cell(source) for source in sources]
    needed: list[set[int]] = []  # cells that define what a cell reads
    changed: list[set[int]] = []  # cells whose names a cell acts upon
    last: dict[str, int] = {}  # a name, and the last cell so far that binds it
    seeds: list[int] = []
    found = []
    for index, cell in enumerate(cells):
        needed.append({last[n] for n in cell.asks if n in last})
        needed[-1].update(seeds[-1:] if cell.calls else [])
        changed.append({last[n] for n in cell.acts_on if n in last} - {index})
        last |= dict.fromkeys(cell.binds, index)
        if cell.seeds:
            seeds.append(index)
        chosen = _closed({index}, needed, changed)
        found.append(_parts(cells[: index + 1], chosen))
    return found


def whole(sources: list[str]) -> Parts:
    """All cells as one program."""
    cells = [_cell(source) for source in sources]
    return _parts(cells, [*range(len(cells))])


def _parts(cells: list[Cell], chosen: list[int]) -> Parts:
    first = [index for index in chosen if ENVIRONMENT in cells[index].acts_on]
    rest = [index for index in chosen if index not in first]
    early = {name for index in first for name in cells[index].reads}
    late = {name for index in rest for name in cells[index].reads} - early
    return [_imports(cells, early), *first, _imports(cells, late), *rest]


def _closed(
    cells: set[int], needed: list[set[int]], changed: list[set[int]]
) -> list[int]:
    """The cells, what they need, and what acted on these, until nothing is added."""
    more = cells.union(*(needed[cell] for cell in cells))
    more |= {cell for cell, touched in enumerate(changed) if touched & cells}
    return sorted(cells) if more == cells else _closed(more, needed, changed)


def _body(source: str) -> str:
    """A cell without the imports at its top level and without marks of remarks."""
    return GAP.sub("\n\n\n", NOTE.sub("", without(source, imports(source))))


@cache  # a live reload reads the cells of every page again
def _cell(source: str) -> Cell:
    body = ast.parse(source).body
    imported = frozenset().union(*map(_binds, imports(source)))
    statements = [n for n in body if not isinstance(n, ast.Import | ast.ImportFrom)]
    binds = frozenset().union(*map(_binds, statements))
    asks = frozenset(_asked(statements, {*dir(builtins), *imported}, binds)[0])
    asks |= frozenset(GIVEN.findall(source))
    return Cell(
        reads=frozenset().union(*map(_reads, statements)),
        asks=asks,
        binds=binds,
        acts_on=frozenset(_acts_on(body)) & (asks | imported),
        calls=any(map(_calls, statements)),
        seeds=any(map(_is_seed, body)),
        imports=imports(source),
    )


def _imports(cells: list[Cell], wanted: set[str]) -> str:
    """The imports, of all cells so far, that bind the names."""
    modules: dict[str, None] = {}
    names: dict[str, dict[str, ast.alias]] = {}
    for node in (node for cell in cells for node in cell.imports):
        for alias in node.names:
            if (alias.asname or alias.name).split(".")[0] not in wanted:
                continue
            if isinstance(node, ast.Import):
                modules[import_line(node, [alias])] = None
            else:
                names.setdefault(node.module, {})[ast.unparse(alias)] = alias
    lines = [
        import_line(ast.ImportFrom(module, [], 0), list(aliases.values()))
        for module, aliases in names.items()
    ]
    return "\n".join([*modules, *lines])


def _acts_on(nodes: Iterable[ast.AST]) -> set[str]:
    """Names whose objects a statement may change: x.f(), x.y = 1, x[0] = 1, @x.f."""
    return {name for node in nodes for name in _changes(node)}


def _changes(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield from _owner(node.value.func)
    for target in getattr(node, "targets", [getattr(node, "target", None)]):
        yield from _owner(target)
    for decorator in getattr(node, "decorator_list", []):
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        yield from _owner(called)
    if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        for child in ast.iter_child_nodes(node):
            yield from _changes(child)


def _owner(node: ast.AST | None) -> Iterator[str]:
    """x of x.y and of x[0].y"""
    inner = node
    while isinstance(inner, (ast.Attribute, ast.Subscript, ast.Call)):
        inner = inner.func if isinstance(inner, ast.Call) else inner.value
    if inner is not node and isinstance(inner, ast.Name):
        yield inner.id


def _calls(node: ast.AST) -> bool:
    """Whether it calls anything where it stands; a function's body runs later."""
    parts = ast.iter_child_nodes(node)
    if isinstance(node, FUNCTIONS):
        parts = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
    elif isinstance(node, ast.ClassDef):
        parts = node.body
    return isinstance(node, ast.Call) or any(map(_calls, parts))


def _is_seed(node: ast.stmt) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    function = call.func if isinstance(call, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr == SEED


def _asked(
    statements: list[ast.stmt], own: set[str], everywhere: frozenset[str]
) -> tuple[set[str], set[str]]:
    """Names that statements take from elsewhere, and the cell's own after them.

    What a statement binds is the cell's own from the next one on, and in a
    function's body, which runs later, from anywhere. Loops run at least once; of
    two branches either may run.
    """
    asked = set()
    for node in statements:
        head, branches = _parted(node)
        for each in head:
            later = isinstance(each, ast.FunctionDef | ast.ClassDef)
            asked |= _reads(each) - own - (everywhere if later else set())
            own = own | _binds(each)
        found = [_asked(branch, own, everywhere) for branch in branches]
        asked = asked.union(*(names for names, _ in found))
        own = set.intersection(*(after for _, after in found)) if found else own
    return asked, own


def _parted(node: ast.stmt) -> tuple[list[ast.stmt], list[list[ast.stmt]]]:
    """What a statement does first, and then the branches of which one runs."""
    at = partial(ast.copy_location, old_node=node)
    match node:
        case ast.For():
            head = at(ast.Assign([node.target], node.iter))
            return [head], [node.body + node.orelse]
        case ast.With():
            bound = [
                at(
                    ast.Assign([item.optional_vars], item.context_expr)
                    if item.optional_vars
                    else ast.Expr(item.context_expr)
                )
                for item in node.items
            ]
            return bound, [node.body]
        case ast.While():
            return [at(ast.Expr(node.test))], [node.body + node.orelse]
        case ast.If():
            return [at(ast.Expr(node.test))], [node.body, node.orelse]
    return [node], []


@cache
def _reads(node: ast.stmt) -> set[str]:
    """Names that a statement reads, those of the scopes in it left out."""
    names = global_names(ast.unparse(node))
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        names.add(node.target.id)  # to Python it is bound, not read
    return names


@cache
def _binds(node: ast.stmt) -> set[str]:
    """Names that a statement binds where it stands."""
    table = symtable.symtable(ast.unparse(node), "<cell>", "exec")
    symbols = table.get_symbols()
    return {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}
