"""Plausible mistakes in a Python file, each an edit of one place.

The kinds are those that readers and ports make: a sign, an axis, a dtype, a detached
or non-contiguous tensor, a default, an order, a bound off by one.
"""

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

SWAPPED = {  # operators, in the words of ast
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "//",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.And: "or",
    ast.Or: "and",
}
NAMES = {  # functions, methods and dtypes that are taken for each other
    "mean": "sum",
    "sum": "mean",
    "amax": "amin",
    "amin": "amax",
    "max": "min",
    "min": "max",
    "any": "all",
    "all": "any",
    "rsqrt": "sqrt",
    "sqrt": "rsqrt",
    "abs": "neg",
    "triu": "tril",
    "tril": "triu",
    "zeros": "ones",
    "ones": "zeros",
    "zeros_like": "ones_like",
    "ones_like": "zeros_like",
    "cos": "sin",
    "sin": "cos",
    "log": "log2",
    "exp": "exp2",
    "softmax": "log_softmax",
    "float64": "float32",
    "float32": "bfloat16",
    "bfloat16": "float16",
    "float16": "bfloat16",
    "append": "insert",
    "endswith": "startswith",
    "startswith": "endswith",
    "sorted": "list",
    "first": "last",
    "floor": "ceil",
    "ceil": "floor",
    "removeprefix": "strip",
}
DROPPED = {  # methods without which the tensor is another one, or none the less
    *("float", "double", "half", "to", "type_as", "detach", "clone", "contiguous"),
    *("abs", "clamp", "square", "neg", "transpose", "expand", "strip", "resolve"),
}
SYMMETRIC = {  # functions of which the first two arguments may change places
    *("promote_types", "equal", "allclose", "isclose", "maximum", "minimum", "gap"),
}
DETACHED = {"rsqrt", "sqrt", "mean", "var", "sum", "square", "pow", "norm", "amax"}


@dataclass(frozen=True)
class Variant:
    """One edit: ``old`` at a place of a file becomes ``new``; ``text`` is the file."""

    line: int
    kind: str
    old: str
    new: str
    text: str

    @property
    def lot(self) -> str:
        """Decides the order of trying: the same in every run, without a pattern."""
        what = f"{self.line}\0{self.kind}\0{self.old}\0{self.new}"
        return hashlib.sha256(what.encode()).hexdigest()


def variants(text: str) -> list[Variant]:
    """All variants of a file that are Python, in the order of their lots."""
    lines = text.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    raw, found = text.encode(), {}
    for kind, node, new in _edits(ast.parse(text)):
        a = starts[node.lineno - 1] + node.col_offset
        b = starts[node.end_lineno - 1] + node.end_col_offset
        old = raw[a:b].decode()
        edited = (raw[:a] + new.encode() + raw[b:]).decode()
        if old != new and edited not in found and _is_python(edited):
            found[edited] = Variant(node.lineno, kind, old, new, edited)
    return sorted(found.values(), key=lambda variant: variant.lot)


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _edits(tree: ast.Module) -> Iterator[tuple[str, ast.AST, str]]:
    """(kind, node, what it becomes); words for people stay as they are."""
    for node in _executed(tree):
        for kind, new in _of(node):
            yield kind, node, new


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes that run: no docstrings, annotations, messages, imports or names."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "exc", "msg", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST):
                continue
            if isinstance(child, (ast.Import, ast.ImportFrom, ast.JoinedStr)):
                continue
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                continue
            if hasattr(child, "lineno"):
                yield child
            yield from _executed(child)


def _of(node: ast.AST) -> Iterator[tuple[str, str]]:
    """(kind, what it becomes) of one node."""
    write = ast.unparse
    match node:
        case ast.BinOp(left, op, right):
            if swapped := SWAPPED.get(type(op)):
                yield "operator", f"({write(left)} {swapped} {write(right)})"
            if isinstance(op, (ast.Sub, ast.Div, ast.Pow, ast.MatMult)):
                sign = {ast.Sub: "-", ast.Div: "/", ast.Pow: "**", ast.MatMult: "@"}
                mark = sign[type(op)]
                yield "order", f"({write(right)} {mark} {write(left)})"
            if isinstance(op, (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow)):
                yield "term dropped", f"({write(left)})"
        case ast.Compare(left, [op], [right]) if type(op) in SWAPPED:
            yield "operator", f"({write(left)} {SWAPPED[type(op)]} {write(right)})"
        case ast.BoolOp(op, values):
            joined = f" {SWAPPED[type(op)]} ".join(f"({write(v)})" for v in values)
            yield "operator", f"({joined})"
            yield "condition dropped", f"({write(values[0])})"
        case ast.UnaryOp(ast.USub() | ast.Not(), operand):
            yield "sign", f"({write(operand)})"
        case ast.IfExp(_, body, orelse):
            yield "branch", f"({write(body)})"
            yield "branch", f"({write(orelse)})"
        case ast.Constant(bool() as value):
            yield "constant", str(not value)
        case ast.Constant(int() as value):
            yield "constant", str(value + 1)
            yield "constant", str(-value) if value else "-1"
        case ast.Constant(float() as value):
            yield "constant", repr(value * 10 if value else 1.0)
        case ast.Attribute(value, name) if name in NAMES:
            yield "name", f"{write(value)}.{NAMES[name]}"
        case ast.Slice(lower, upper, _) if upper is not None and lower is None:
            yield "slice", f"{write(upper)}:"
        case ast.Call(function, arguments, keywords):
            yield from _calls(node, function, arguments, keywords)


def _calls(node, function, arguments, keywords) -> Iterator[tuple[str, str]]:
    write = ast.unparse

    def call(positional, named) -> str:
        return write(ast.Call(function, positional, named))

    name = getattr(function, "attr", getattr(function, "id", ""))
    plain = [a for a in arguments if not isinstance(a, ast.Starred)]
    if len(plain) == len(arguments) >= 2 and name not in SYMMETRIC:
        yield "order", call([arguments[1], arguments[0], *arguments[2:]], keywords)
    for keyword in keywords:
        if keyword.arg:
            rest = [other for other in keywords if other is not keyword]
            yield "default", call(arguments, rest)
    if name in DROPPED and isinstance(function, ast.Attribute):
        yield "call dropped", f"({write(function.value)})"
    if name in DETACHED:
        yield "detached", f"{write(node)}.detach()"
