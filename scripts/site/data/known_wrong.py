"""Known-wrong variants as changes of a snippet's text: ``old => new``.

``docs/data/rejected/<page>.yml`` holds them below ``<file>.<name>`` of the function or
class that they get wrong. The tests compile the changed text, the page shows it.
"""

import re
from difflib import SequenceMatcher
from textwrap import dedent

from scripts.site.reading.files import SourceError, read_text
from scripts.site.reading.source import MARKER, SNIPPETS

CHANGE = re.compile(r"(everywhere )?(.+?) =>(?: (.*))?", re.DOTALL)
MARK = re.compile(r" *# \(\d+\)!$", re.MULTILINE)  # where the page has a note
IMPORT = re.compile(r"^from snippets\.([\w.]+) import", re.MULTILINE)


def text_of(module: str) -> str:
    """The text of a snippet by its dotted name, such as rms_norm.reference."""
    return read_text(SNIPPETS.joinpath(*module.split(".")).with_suffix(".py"))


def imports(text: str) -> list[str]:
    """The snippets that a snippet's text imports."""
    return IMPORT.findall(text)


def sources(module: str) -> dict[str, str]:
    """The texts of a snippet and of all that it imports, itself first."""
    texts, waiting = {}, [module]
    while waiting:
        name = waiting.pop(0)
        if name not in texts:
            texts[name] = text_of(name)
            waiting += imports(texts[name])
    return texts


def changed(module: str, name: str, changes: str | list[str]) -> dict[str, str]:
    """The new texts of the snippets that change, for a function or class of ``module``.

    A change is looked for in what has that name, then in its module, then in the
    snippets that it imports, and must stand there once; ``everywhere old => new``
    replaces all that its module has. A line of ``old`` may be indented in any way,
    and the lines of ``new`` get the indentation of the line where it begins.
    SourceError if a change stands nowhere or more than once.
    """
    texts = sources(module)
    before = dict(texts)
    for change in [changes] if isinstance(changes, str) else changes:
        everywhere, old, new = CHANGE.fullmatch(change).groups(default="")
        lines = map(re.escape, old.split("\n"))
        pattern = re.compile(r"\n[ ]*".join(lines))
        for here in texts:
            places = list(pattern.finditer(texts[here]))
            if here == module and not everywhere and len(places) > 1:
                start, end = _span(texts[here], name)
                inside = [p for p in places if start <= p.start() < end]
                places = inside or places
            if places:
                break
        else:
            raise SourceError(f"{module}.{name}: {old!r} is nowhere in {list(texts)}")
        if len(places) > 1 and not everywhere:
            raise SourceError(f"{here}: {old!r} stands {len(places)} times")
        for place in reversed(places):
            texts[here] = _replaced(texts[here], place, new)
    return {m: text for m, text in texts.items() if text != before[m]}


def _replaced(text: str, place: re.Match, new: str) -> str:
    line = text[text.rfind("\n", 0, place.start()) + 1 :]
    indent = line[: len(line) - len(line.lstrip(" "))]
    new = new.replace("\n", f"\n{indent}")
    return text[: place.start()] + new + text[place.end() :]


def _span(text: str, name: str) -> tuple[int, int]:
    """Where a function or class of a module begins and ends."""
    found = re.search(
        rf"^(?:def|class) {name}\b.*?(?=^[^\s)]|\Z)", text, re.DOTALL | re.MULTILINE
    )
    return found.span() if found else (0, len(text))


def difference(module: str, name: str, changes: str | list[str]) -> list[str]:
    """The lines that go, with '-', and those that come, with '+'.

    What comes alone is shown with the next line.
    """
    found = []
    for where, text in changed(module, name, changes).items():
        old, new = (MARK.sub("", t).splitlines() for t in (text_of(where), text))
        lines = []
        blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        for kind, i, j, k, m in blocks:
            if kind != "equal":
                lines += [("-", line) for line in old[i:j] if line.strip()]
                lines += [("+", line) for line in new[k:m] if line.strip()]
            if kind == "insert":  # in front of what?
                after = (line for line in new[m:] if line.strip())
                lines += [(" ", line) for line in after if not MARKER.search(line)][:1]
        code = dedent("\n".join(line for _, line in lines)).splitlines()
        if where != module:
            found.append(f"  # {where.replace('.', '/')}.py")
        pairs = zip(lines, code, strict=True)
        found += [f"{sign} {line}".rstrip() for (sign, _), line in pairs]
    return found
