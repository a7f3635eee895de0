"""What the copy button of a page hands over: code that runs by itself.

A block of a page goes on where earlier blocks stopped and imports snippets of earlier
pages. Of the cells of the page's notebook, which hold all of that, a block needs those
that define the names it uses or act on them, what those need in their turn, and the
last seed before it.
"""

import ast
import builtins
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

SEED = "manual_seed"
NOTE = re.compile(r" *# \(\d+\)!$", re.MULTILINE)  # where a remark hangs on the page
IMPORTS = (ast.Import, ast.ImportFrom)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
SCOPES = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Copy:
    """A block's program: its import lines, and which cells follow them, in order."""

    imports: str
    cells: list[int]


def script(sources: list[str], own: list[int]) -> str:
    """A script with each block's program for the theme; ``own`` numbers the blocks."""
    bodies, every = [_body(source) for source in sources], copies(sources)
    blocks = [[every[index].imports, every[index].cells] for index in own]
    data = json.dumps(
        {"cells": bodies, "blocks": blocks}, ensure_ascii=False, separators=(",", ":")
    )
    return f"dispatchEvent(new CustomEvent('programs',{{detail:{data}}}));\n"


def program(sources: list[str], copy: Copy) -> str:
    """A block's program as one file. The theme joins the same parts in the same way."""
    bodies = [_body(sources[index]) for index in copy.cells]
    return "\n\n\n".join(filter(None, [copy.imports, *bodies])) + "\n"


def copies(sources: list[str]) -> list[Copy]:
    """For each cell of a program, in order, what it needs to run without the others."""
    trees = [ast.parse(source) for source in sources]
    needed: list[set[int]] = []  # cells that define what a cell reads
    changed: list[set[int]] = []  # cells whose names a cell acts upon
    last: dict[str, int] = {}  # a name, and the last cell so far that binds it
    seeds: list[int] = []
    found = []
    for index, tree in enumerate(trees):
        statements = [node for node in tree.body if not isinstance(node, IMPORTS)]
        needed.append({last[n] for n in _loaded_elsewhere(tree) if n in last})
        needed[-1].update(seeds[-1:])
        changed.append({last[n] for n in _acts_on(statements) if n in last} - {index})
        last |= dict.fromkeys(_bound(statements), index)
        if any(map(_is_seed, statements)):
            seeds.append(index)
        cells = _closed({index}, needed, changed)
        found.append(Copy(_imports(trees[: index + 1], cells), cells))
    return found


def _closed(
    cells: set[int], needed: list[set[int]], changed: list[set[int]]
) -> list[int]:
    """The cells, what they need, and what acted on these, until nothing is added."""
    more = cells.union(*(needed[cell] for cell in cells))
    more |= {cell for cell, touched in enumerate(changed) if touched & cells}
    return sorted(cells) if more == cells else _closed(more, needed, changed)


def _body(source: str) -> str:
    """A cell without the imports at its top level and without marks of remarks."""
    lines = source.splitlines()
    for node in reversed(ast.parse(source).body):
        if isinstance(node, IMPORTS):
            del lines[node.lineno - 1 : node.end_lineno]
    return NOTE.sub("", "\n".join(lines).strip("\n"))


def _imports(trees: list[ast.Module], cells: list[int]) -> str:
    """The imports, of all cells so far, whose names the chosen cells read."""
    read = set().union(*(_loaded(trees[cell].body) for cell in cells))
    modules: dict[str, None] = {}
    names: dict[str, dict[str, None]] = {}
    for node in (node for tree in trees for node in tree.body):
        for alias in node.names if isinstance(node, IMPORTS) else ():
            if (alias.asname or alias.name).split(".")[0] not in read:
                continue
            text = ast.unparse(alias)
            if isinstance(node, ast.Import):
                modules[f"import {text}"] = None
            else:
                names.setdefault(node.module, {})[text] = None
    lines = [f"from {name} import {', '.join(names[name])}" for name in names]
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


def _is_seed(node: ast.stmt) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    function = call.func if isinstance(call, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr == SEED


def _loaded_elsewhere(tree: ast.Module) -> set[str]:
    """Names that a cell takes from elsewhere.

    What a statement binds is the cell's own from the next statement on, and in a
    function's body, which runs later, from anywhere.
    """
    everywhere, own, asked = _bound(tree.body), set(dir(builtins)), set()
    for statement in tree.body:
        later = isinstance(statement, (ast.FunctionDef, ast.ClassDef))
        asked |= _loaded([statement]) - own - (everywhere if later else set())
        own |= _bound([statement])
    return asked


def _loaded(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that are read, without the own parameters and variables of functions."""
    return {name for node in nodes for name in _reads(node)}


def _reads(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield node.target.id
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, FUNCTIONS):
        body = node.body if isinstance(node.body, list) else [node.body]
        arguments = [arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)]
        yield from _loaded(body) - _bound(body) - {arg.arg for arg in arguments}
        children = [child for child in children if child not in body]
    for child in children:
        yield from _reads(child)


def _bound(nodes: Iterable[ast.AST]) -> set[str]:
    """Names that the statements bind where they stand."""
    return {name for node in nodes for name in _binds(node)}


def _binds(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
        yield getattr(node, "name", "")
    elif isinstance(node, IMPORTS):
        yield from ((a.asname or a.name).split(".")[0] for a in node.names)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif not isinstance(node, SCOPES):
        for child in ast.iter_child_nodes(node):
            yield from _binds(child)
