"""The picture of a block from its equations, as SVG that takes the page's colours.

An equation is a sum: what the stream carries, plus branches, each a chain of calls:

    a = x + Attention(N[input_layernorm](x))
    y = N[ln_2](a + 0.5·FFN(a))

Read from bottom to top; the stream is the line on the left. Norms inside a
branch stand in its box: those of what goes in below its name, others above.
"""

import html
import re
from dataclasses import dataclass
from itertools import pairwise

# A number, one for each token or channel, a stored one, or a formula of the depth.
NUMBER = (
    r"\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w(])|[A-Za-z_][\w.]*(?=[⊙·])"
    r"|\([\d.]+/?√?L\)(?=·)"
)
TOKEN = re.compile(rf"\s*(?:({NUMBER})|(N\[[^\]]*\]|[A-Za-z_]\w*)|(.))")
CHAR, BOX, GAP, STEP = 7.0, 26, 14, 40  # px: a letter, a box, between, a level
INNER, PAD = 18, 6  # px: a norm inside a branch's box, around it
STREAM, MARGIN = 26, 12  # px: the stream's x, around the picture


class EquationError(ValueError):
    """An equation that is no sum of chains."""


@dataclass(frozen=True)
class Term:
    """``factor`` times the calls, innermost first, of a variable or of a sum."""

    factor: str
    calls: tuple[str, ...]
    inner: "str | tuple[Term, ...]"


def parse(text: str) -> tuple[str, tuple[Term, ...]]:
    """(left side, the terms of the right side) of an equation."""
    left, equals, right = text.partition("=")
    if not equals or not left.strip().isidentifier():
        raise EquationError(f"no equation: {text!r}")
    tokens = [m.groups() for m in TOKEN.finditer(right.strip())]
    terms, end = _sum(tokens, 0)
    if end != len(tokens):
        raise EquationError(f"cannot read the end of {text!r}")
    return left.strip(), terms


def _sum(tokens, at):
    terms = []
    while True:
        term, at = _term(tokens, at)
        terms.append(term)
        if at == len(tokens) or tokens[at][2] != "+":
            return tuple(terms), at
        at += 1


def _term(tokens, at):
    factor = ""
    if at < len(tokens) and tokens[at][0]:
        factor, at = tokens[at][0], at + 1
        if at < len(tokens) and tokens[at][2] in ("·", "*", "⊙"):
            at += 1
    if factor and at < len(tokens) and tokens[at][2] == "(":
        inner, at = _sum(tokens, at + 1)
        if at == len(tokens) or tokens[at][2] != ")":
            raise EquationError("a bracket is not closed")
        return Term(factor, (), inner), at + 1
    if at == len(tokens) or not tokens[at][1]:
        raise EquationError("a term is missing")
    name, at = tokens[at][1], at + 1
    if at == len(tokens) or tokens[at][2] != "(":
        return Term(factor, (), name), at
    inner, at = _sum(tokens, at + 1)
    if at == len(tokens) or tokens[at][2] != ")":
        raise EquationError("a bracket is not closed")
    if len(inner) == 1 and not inner[0].factor:
        return Term(factor, (*inner[0].calls, name), inner[0].inner), at + 1
    return Term(factor, (name,), inner), at + 1


def draw(equations: list[str], label: str, within=None) -> str:
    """The SVG of a block. EquationError if an equation is no sum of chains.

    ``within`` is {branch: (norms below its name, norms above)}.
    """
    within = within or {}
    parsed = [parse(equation) for equation in equations]
    for (left, _), (_, terms) in pairwise(parsed):
        if _stream_of(terms) != left:
            raise EquationError(f"{left!r} is not what the next line carries on")
    marks, y, right = [], 0.0, 0.0
    marks.append(_text(STREAM + 8, y, _stream_of(parsed[0][1])))
    for left, terms in parsed:
        after, terms = _peeled(terms)
        stream = next((t for t in terms if not t.calls), None)
        branches = [term for term in terms if term is not stream]
        if any(not term.calls for term in branches):
            raise EquationError(f"a bare tensor is added into {left!r}")
        shared = _shared(branches)
        y += GAP
        fork = y
        if branches and (stream or len(branches) > 1):
            top, right = _branches(marks, fork, branches, shared, stream, right, within)
            y = top + STEP - GAP
            marks.append(_line([(STREAM, fork - GAP), (STREAM, y - 9)]))
            marks.append(_plus(STREAM, y))
            if stream and stream.factor:
                marks.append(_text(STREAM + 8, y - 22, f"×{_bare(stream.factor)}"))
            y += 9
        else:  # nothing is added: the chain stands on the stream
            chain = branches[0] if branches else stream
            after = (*chain.calls, *after)
        for name in after:
            y, right = _on_stream(marks, y, name, right, within)
        marks.append(_line([(STREAM, y), (STREAM, y + GAP)]))
        y += GAP
        marks.append(_text(STREAM + 8, y, left))
    height, width = y + 2 * MARGIN, max(right, STREAM + 60) + MARGIN
    flip = f'<g transform="translate(0,{height - MARGIN:g})">{"".join(marks)}</g>'
    return (
        f'<svg class="block" role="img" aria-label="{html.escape(label)}" '
        f'viewBox="0 0 {width:g} {height:g}" width="{width:g}">{flip}</svg>'
    )


def _stream_of(terms) -> str:
    """The variable that the stream carries into a sum."""
    carried = next((term for term in terms if not term.calls), terms[0])
    inner = carried.inner
    return inner if isinstance(inner, str) else _stream_of(inner)


def _peeled(terms) -> tuple[tuple[str, ...], tuple[Term, ...]]:
    """(calls around a whole sum, its terms)."""
    if len(terms) == 1 and isinstance(terms[0].inner, tuple):
        (term,) = terms
        return (*term.calls, *([f"×{term.factor}"] if term.factor else [])), term.inner
    return (), terms


def _shared(branches: list[Term]) -> int:
    """How many first calls all branches have in common."""
    if len(branches) < 2:
        return 0
    chains = [(term.inner, *term.calls) for term in branches]
    same = 0
    while all(len(c) > same + 1 and c[same] == chains[0][same] for c in chains):
        same += 1
    return max(same - 1, 0)


def _branches(marks, fork, branches, shared, stream, right, within):
    """Columns of boxes from the fork upwards; (y of the highest, right edge)."""
    common = _height(branches[0].calls[:shared], within)
    top = fork + max(_height(term.calls, within) for term in branches)
    x0 = STREAM + 34
    if stream and stream.factor:  # written beside the stream
        x0 = max(x0, STREAM + 20 + CHAR * (len(_bare(stream.factor)) + 1))
    x = x0
    ends = []
    for number, term in enumerate(branches):
        names = term.calls[shared:] if number else term.calls
        width = max(_size(name, within)[0] for name in names)
        middle = x + width / 2
        y = foot = fork + (common if number else 0)
        own = stream is None or term.inner == stream.inner
        if number and shared:
            foot += 6  # clear of the box below
            marks.append(_line([(ends[0], foot), (middle, foot)]))
        elif own:
            marks.append(_line([(ends[-1] if ends else STREAM, y), (middle, y)]))
        else:
            inner = term.inner if isinstance(term.inner, str) else "…"
            marks.append(_text(middle + 6, y + 2, inner))
        for name in names:
            marks.append(_line([(middle, foot), (middle, y + GAP)], arrow=True))
            marks.append(_box(middle, y + GAP, width, name, within))
            y += GAP + _size(name, within)[1]
            foot = y
        marks.append(_line([(middle, y), (middle, top + STEP - GAP)]))
        if term.factor:
            marks.append(_text(middle + 6, top + 8, f"×{_bare(term.factor)}"))
        ends.append(middle)
        right = max(right, x + width)
        if term.factor:
            right = max(right, middle + 12 + CHAR * (len(_bare(term.factor)) + 1))
        x = max(x + width, right) + 16
    joint = top + STEP - GAP
    marks.append(_line([(ends[-1], joint), (STREAM + 9, joint)], arrow=True))
    return top, max(right, x0)


def _on_stream(marks, y, name, right, within):
    width, height = _size(name, within)
    left = 2
    marks.append(_line([(STREAM, y), (STREAM, y + GAP)], arrow=True))
    marks.append(_box(left + width / 2, y + GAP, width, name, within))
    return y + GAP + height, max(right, left + width)


def _bare(factor: str) -> str:
    return factor.strip("()")


def _label(name: str) -> str:
    return name[2:-1] if name.startswith("N[") else name


def _height(names, within: dict) -> float:
    """Boxes on each other with the gaps below them."""
    return sum(_size(name, within)[1] + GAP for name in names)


def _inner_width(norm: str) -> float:
    return len(norm) * CHAR + 10


def _row_width(norms) -> float:
    """Norms inside a box beside each other."""
    return sum(_inner_width(norm) + PAD for norm in norms) - PAD


def _size(name: str, within: dict) -> tuple[float, float]:
    """Width and height of a call's box, with the norms inside it."""
    width, height = len(_label(name)) * CHAR + 16, float(BOX)
    for norms in within.get(name, ()):
        if norms:
            width = max(width, _row_width(norms) + 2 * PAD)
            height += INNER + PAD
    return width, height


def _box(middle, y, width, name, within) -> str:
    kind = "norm" if name.startswith("N[") else "branch"
    _, height = _size(name, within)
    below, above = within.get(name, ((), ()))
    base = y + (INNER + PAD if below else 0)
    marks = [
        f'<rect class="{kind}" x="{middle - width / 2:g}" y="{-y - height:g}" '
        f'width="{width:g}" height="{height:g}" rx="4"/>'
        f'<text x="{middle:g}" y="{-base - BOX / 2 + 4:g}" text-anchor="middle">'
        f"{html.escape(_label(name))}</text>"
    ]
    for norms, at in ((below, y + PAD), (above, base + BOX)):
        x = middle - _row_width(norms) / 2
        for norm in norms:
            wide = _inner_width(norm)
            marks.append(
                f'<rect class="inner" x="{x:g}" y="{-at - INNER:g}" '
                f'width="{wide:g}" height="{INNER}" rx="3"/>'
                f'<text x="{x + wide / 2:g}" y="{-at - INNER / 2 + 4:g}" '
                f'text-anchor="middle">{html.escape(norm)}</text>'
            )
            x += wide + PAD
    return "".join(marks)


def _text(x, y, text) -> str:
    return f'<text x="{x:g}" y="{-y - 2:g}">{html.escape(text)}</text>'


def _line(points, arrow=False) -> str:
    path = "M" + "L".join(f"{x:g} {-y:g}" for x, y in points)
    head = ""
    if arrow:
        (x0, _), (x1, y1) = points[-2:]
        if x0 == x1:
            head = f"M{x1 - 4:g} {-y1 + 7:g}L{x1:g} {-y1:g}L{x1 + 4:g} {-y1 + 7:g}"
        else:
            head = f"M{x1 + 7:g} {-y1 - 4:g}L{x1:g} {-y1:g}L{x1 + 7:g} {-y1 + 4:g}"
    return f'<path d="{path}{head}"/>'


def _plus(x, y) -> str:
    return (
        f'<circle cx="{x}" cy="{-y:g}" r="9"/>'
        f'<path d="M{x - 5} {-y:g}H{x + 5}M{x} {-y - 5:g}V{-y + 5:g}"/>'
    )
