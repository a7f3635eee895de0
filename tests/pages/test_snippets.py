"""Snippets are shown whole, in order, and print what their .out file says."""

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import markdown
import pytest

from scripts.site.reading import source

FILES = sorted(p for p in source.SNIPPETS.rglob("*") if p.suffix in (".py", ".out"))
FILES = [path.relative_to(source.SNIPPETS).as_posix() for path in FILES]
PROGRAMS = [name for name in FILES if name.endswith(".py")]
OUTPUTS = [name for name in FILES if name.endswith(".out")]
NAME = re.compile(r"[A-Za-z]\w*")


def violations(text: str) -> list[str]:
    """What is wrong with the section markers of one snippet."""
    try:
        names = source.sections(text)
    except source.SourceError as error:
        return [str(error)]
    found = [f"section name {name!r}" for name in names if not NAME.fullmatch(name)]
    found += [f"section {name!r} is empty" for name, body in names.items() if not body]
    inside = not names
    for number, line in enumerate(text.splitlines(), 1):
        if marker := source.MARKER.search(line):
            inside = marker["kind"] == "start"
            if not re.fullmatch(r"# --8<-- \[(start|end):\w+\]", line):
                found.append(f"line {number}: marker not alone or not at the margin")
        elif line.strip() and not inside:
            found.append(f"line {number}: outside every section")
    return found


def unshown(file: str, text: str, shown: list[tuple[str, str | None]]) -> list[str]:
    """How one page fails to show a snippet whole and in order."""
    here = [section for name, section in shown if name == file]
    whole: list[str | None] = [*source.sections(text)] or [None]
    return [f"page shows {here}, the file holds {whole}"] if here != whole else []


@cache
def embeds(text: str) -> list[tuple[str, str | None]]:
    """What a page shows: files and sections, in order."""
    return [fence.embed for fence in source.fences(text) if fence.embed]


@pytest.mark.parametrize("file", PROGRAMS)
def test_markers(file, no_violations):
    text = (source.SNIPPETS / file).read_text(encoding="utf-8")
    no_violations(f"snippets/{file}: {v}" for v in violations(text))


@pytest.mark.parametrize("file", PROGRAMS)
def test_shown_whole_and_in_order(file, pages, no_violations):
    text = (source.SNIPPETS / file).read_text(encoding="utf-8")
    showing = {}
    for page in pages:
        if any(name == file for name, _ in embeds(page.text)):
            showing[page.where] = unshown(file, text, embeds(page.text))
    no_violations([] if showing else [f"snippets/{file} is on no page"])
    no_violations(f"{where}: {file}: {v}" for where, vs in showing.items() for v in vs)


def shown_above(file: str, shown: list[str]) -> set[str]:
    """The files that a page shows right above this one."""
    return {upper for upper, lower in pairwise(shown) if lower == file}


@pytest.mark.parametrize("file", OUTPUTS)
def test_output_stands_under_its_program(file, pages):
    """There the page's blocks, which the tests run, are held to it."""
    text = (source.SNIPPETS / file).read_text(encoding="utf-8")
    assert text.strip(), f"snippets/{file} is empty"
    above = [shown_above(file, [name for name, _ in embeds(p.text)]) for p in pages]
    assert set().union(*above) == {file.removesuffix(".out") + ".py"}


@pytest.mark.parametrize("file", FILES)
def test_sections_read_as_mkdocs_reads_them(file):
    options = {
        "base_path": [str(source.SNIPPETS)],
        "check_paths": True,
        "dedent_subsections": True,
    }
    reader = markdown.Markdown(
        extensions=["pymdownx.snippets"],
        extension_configs={"pymdownx.snippets": options},
    ).preprocessors["snippet"]
    text = (source.SNIPPETS / file).read_text(encoding="utf-8")
    for section in [None, *source.sections(text)]:
        embed = f'--8<-- "{file}:{section}"' if section else f'--8<-- "{file}"'
        theirs = "\n".join(reader.run([embed])).strip("\n")
        assert theirs == source.embedded(file, section)


def test_every_folder_is_a_page(pages, no_violations):
    slugs = {Path(page.path).stem.replace("-", "_") for page in pages}
    folders = {Path(file).parent.as_posix() for file in FILES}
    no_violations(f"snippets/{f} is no page's folder" for f in sorted(folders - slugs))


ONE = "# --8<-- [start:one]\nx = 1\n# --8<-- [end:one]\n"
TWO = "\n\n# --8<-- [start:two]\ny = 2\n# --8<-- [end:two]\n"


def test_good():
    assert violations("x = 1\n") == []
    assert violations(ONE + TWO) == []
    assert unshown("f.py", ONE + TWO, [("f.py", "one"), ("f.py", "two")]) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (ONE + "hidden = 1\n" + TWO, "line 4: outside every section"),
        ("import torch\n" + ONE, "line 1: outside every section"),
        (ONE + ONE, "line 4: section 'one' twice"),
        ("# --8<-- [start:one]\nx = 1\n" + TWO, "line 5: section opens inside 'one'"),
        ("# --8<-- [start:one]\nx = 1\n", "section 'one' is never closed"),
        ("x = 1\n# --8<-- [end:one]\n", "line 2: end of 'one'"),
        (ONE.replace("one", "1st"), "section name '1st'"),
        (ONE.replace("x = 1\n", ""), "section 'one' is empty"),
        (ONE.replace("# --8", "  # --8"), "line 1: marker not alone"),
    ],
)
def test_bad_markers(text, says):
    assert any(v.startswith(says) for v in violations(text))


@pytest.mark.parametrize(
    "shown", [["one"], ["two", "one"], ["one", "two", "two"], [None], ["one", "three"]]
)
def test_not_whole_or_not_in_order(shown):
    assert unshown("f.py", ONE + TWO, [("f.py", section) for section in shown])
