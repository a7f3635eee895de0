"""The digest of measured code: which edits age a record, and which do not.

A digest covers what `measure` reaches: functions and constants of the
experiment's file, the helpers under scripts/ that it uses, symbol by symbol,
and every snippet module it imports, whole, also through imports inside
functions and through other snippets. Comments, docstrings, formatting,
`facts`, `plot`, `WORDS` and `DESIGN` do not age a record. The digest is the same under
every Python version, so a record made elsewhere can be checked here.
"""

import ast
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path

from scripts.measure.records import EXPERIMENTS, ROOT, Record, RecordError, experiments

DIGITS = 16  # hex digits kept; enough to tell versions of one file apart
# The plumbing between a measurement and its file: no effect on a number.
PLUMBING = {"scripts.measure.records"}
DRAW = "scripts.measure.draw"  # what the figures of several experiments share


def _dump(node: object) -> str:
    """An AST as text: no positions, no empty fields, any Python version."""
    if isinstance(node, ast.AST):
        fields = (
            f"{name}={_dump(value)}"
            for name, value in ast.iter_fields(node)
            if value is not None and value != [] and name != "type_comment"
        )
        return f"{type(node).__name__}({','.join(fields)})"
    if isinstance(node, list):
        return f"[{','.join(map(_dump, node))}]"
    return f"{type(node).__name__}:{node!r}"


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(
            node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        ):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:]
    return tree


def _one_import_each(tree: ast.Module) -> ast.Module:
    """`from a import b, c` as two imports, so that each counts for itself."""
    body: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            body += [ast.Import([alias]) for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            body += [
                ast.ImportFrom(statement.module, [alias], statement.level)
                for alias in statement.names
            ]
        else:
            body.append(statement)
    tree.body = body
    return tree


class _Part:
    """A top-level statement, and what digests ask of it; many ask the same."""

    def __init__(self, statement: ast.stmt):
        self.statement = statement
        self.nodes = list(ast.walk(statement))
        self.defined = _defined(statement)
        self.used = {node.id for node in self.nodes if isinstance(node, ast.Name)}

    @cached_property
    def text(self) -> str:
        return _dump(self.statement)


def _parse(path: Path) -> list[_Part]:
    return _parsed(path, path.stat().st_mtime_ns)


@cache
def _parsed(path: Path, stamp: int) -> list[_Part]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        raise RecordError(f"{path.name} line {error.lineno}: {error.msg}") from None
    return _parts(_one_import_each(_without_docstrings(tree)))


def _parts(tree: ast.Module) -> list[_Part]:
    return [_Part(statement) for statement in tree.body]


def _text(parts: Iterable[_Part]) -> str:
    """As `_dump` writes a list."""
    return f"[{','.join(part.text for part in parts)}]"


def _defined(statement: ast.stmt) -> set[str]:
    """The names that a top-level statement does no more than define."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {a.asname or a.name.partition(".")[0] for a in statement.names}
    if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        return set()
    targets = [ast.unparse(target) for target in getattr(statement, "targets", [])]
    if targets == ["DESIGN"]:
        return {"DESIGN"}  # not what its comprehensions name, say `norm`
    return {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _reached(parts: list[_Part], roots: Iterable[str]) -> list[_Part]:
    """The parts that the roots use, in file order.

    Statements that define no name (a call, a bare loop) always count.
    """
    wanted, kept = set(roots), set()
    while True:
        new = {
            i
            for i, part in enumerate(parts)
            if i not in kept and (not part.defined or part.defined & wanted)
        }
        if not new:
            return [parts[i] for i in sorted(kept)]
        kept |= new
        for i in new:
            wanted |= parts[i].used


def _module_file(name: str, root: Path) -> Path | None:
    path = root.joinpath(*name.split("."))
    if path.with_suffix(".py").is_file():
        return path.with_suffix(".py")
    return None


def _imports(
    parts: Iterable[_Part], root: Path
) -> Iterator[tuple[str, set[str] | None]]:
    """(module, names) of each import; names is None for the whole module.

    Of another experiment they are the attributes that are read: its figure and
    texts are nothing to this one.
    """
    nodes = [node for part in parts for node in part.nodes]
    read: dict[str, set[str]] = {}
    uses: Counter[str] = Counter()
    for node in nodes:
        if isinstance(node, ast.Name):
            uses[node.id] += 1
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            read.setdefault(node.value.id, set()).add(node.attr)
            uses[node.value.id] -= 1
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, None
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner, name = f"{node.module}.{alias.name}", alias.asname or alias.name
                if _module_file(inner, root):
                    sibling = node.module == "scripts.experiments" and not uses[name]
                    yield inner, read.get(name) if sibling else None
                else:
                    yield node.module, {alias.name}


class _Closure:
    """Everything reached from some names of one file."""

    def __init__(self, root: Path):
        self.root = root
        self.parts: dict[str, str] = {}  # module -> dumped code
        self.packages: set[str] = set()  # imports from outside the tree
        self._names: dict[str, set[str]] = {}
        self._whole: set[str] = set()

    def add(self, module: str, path: Path, names: set[str] | None) -> None:
        known = self._names.setdefault(module, set())
        if module in self._whole or (names is not None and names <= known):
            return
        if names is None:
            self._whole.add(module)
        parts = _parse(path)
        if names is not None:
            known |= names
            parts = _reached(parts, known)
        self.parts[module] = _text(parts)
        for imported, symbols in _imports(parts, self.root):
            found = _module_file(imported, self.root)
            if found is None:
                self.packages.add(imported.partition(".")[0])
            elif imported.startswith("snippets."):
                self.add(imported, found, None)
            elif imported not in PLUMBING:
                self.add(imported, found, symbols)

    def digest(self) -> str:
        text = "\n".join(f"{name} {self.parts[name]}" for name in sorted(self.parts))
        return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def closure(
    experiment: str,
    roots: Iterable[str] = ("measure",),
    *,
    folder: Path = EXPERIMENTS,
    root: Path = ROOT,
) -> _Closure:
    """What the named parts of an experiment reach."""
    known = experiments(folder)
    if experiment not in known:
        raise RecordError(
            f"unknown experiment {experiment!r}; known: {', '.join(known) or 'none'}"
        )
    reached = _Closure(root)
    path = folder / f"{experiment}.py"
    reached.add(f"scripts.experiments.{experiment}", path, set(roots))
    return reached


def code_digest(experiment: str, **where: Path) -> str:
    """The digest of what `measure` reaches."""
    return closure(experiment, ("measure",), **where).digest()


def packages(experiment: str, **where: Path) -> set[str]:
    """The packages from outside this tree that the measured code imports."""
    return closure(experiment, ("measure",), **where).packages


def part_digest(experiment: str, roots: Iterable[str]) -> str:
    """The digest of the experiment file's own code that the roots reach.

    And of what this uses of the strokes that figures share, `draw`.
    """
    parts = _reached(_parse(EXPERIMENTS / f"{experiment}.py"), roots)
    text, strokes = _text(parts), _parse(_module_file(DRAW, ROOT))
    used = [names for module, names in _imports(parts, ROOT) if module == DRAW]
    if used:
        whole = None in used
        text += _text(strokes if whole else _reached(strokes, set().union(*used)))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def file_digest(path: Path) -> str:
    """The digest of one Python file, comments and docstrings aside."""
    text = _text(_parse(path))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def is_stale(record: Record, **where: Path) -> bool:
    """Whether the measured code has changed since the record was made."""
    return record.provenance["digest"] != code_digest(record.experiment, **where)


def module_digest(module: str) -> str:
    """The digest of one snippet module and of all snippets that it imports."""
    reached = _Closure(ROOT)
    path = _module_file(module, ROOT)
    if path is None:
        raise RecordError(f"no module {module}")
    reached.add(module, path, None)
    return reached.digest()


def snippets_digest(text: str) -> str:
    """The digest of the snippets that a piece of code imports."""
    reached = _Closure(ROOT)
    for module, _ in _imports(_parts(ast.parse(text)), ROOT):
        path = _module_file(module, ROOT)
        if path is not None and module.startswith("snippets."):
            reached.add(module, path, None)
    return reached.digest()
