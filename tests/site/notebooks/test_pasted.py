"""What is copied runs where it is pasted, and prints what the page shows."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

import pytest
import yaml

from scripts.site.notebooks import copied_programs, lab_source, page_notebooks
from scripts.site.notebooks.self_contained import program
from scripts.site.pages.page_parts import has_code
from scripts.site.reading.source import LANGUAGES, ROOT
from tests.lanes import quick_among
from tests.site.notebooks import pasting

URL = "https://example.org/{}/"
QUICK = "rmsnorm/rms-norm.md"
NEEDS_REPOSITORY = {  # what its text and its copies say
    "practice/examine-your-model.md": 5,
    "claims/deep-recipes.md": 1,
    "claims/placement-and-depth.md": 1,
    "claims/precision-and-speed.md": 2,
    "interview/quiz-practice.md": 5,
}


class Copied(NamedTuple):
    where: str
    text: str
    expected: str  # how what it prints ends
    of_repository: bool


def words(language: str) -> dict:
    text = (ROOT / "docs" / language / "mkdocs.yml").read_text(encoding="utf-8")
    return yaml.safe_load(text)["extra"]["words"]


def uris(language: str) -> list[str]:
    folder = ROOT / "docs" / language / "pages"
    pages = [path.relative_to(folder).as_posix() for path in folder.rglob("*.md")]
    return sorted(pages) + [lab_source.uri(s) for s in lab_source.sources()]


@cache
def copied(uri: str, language: str) -> list[Copied]:
    """What copying a page's blocks, and the page, hands over."""
    said = words(language)
    made = copied_programs.of(uri, language, URL.format(language), said)
    if not made:
        return []
    cells, blocks, page = made
    # A lab prints what is left of rounding, which depends on the number of threads.
    compared = page and not uri.endswith(".ipynb")
    expected = outputs(uri, language) if compared else [""] * len(blocks)
    found = [*zip(range(len(blocks)), blocks, expected, strict=True)]
    found += [("page", page, "")] if page else []
    return [
        Copied(
            f"{uri}: {name}",
            program(cells, parts),
            printed,
            parts[0] == f"# {said['repository']}",
        )
        for name, parts, printed in found
    ]


def outputs(uri: str, language: str) -> list[str]:
    """What a page shows below each of its own blocks."""
    book = copied_programs.book_of(uri, language, URL.format(language), words(language))
    note = page_notebooks.note(words(language), "")
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    own = [cell for cell in code if not cell["source"].startswith(note)]
    streams = [[o for o in cell["outputs"] if "text" in o] for cell in own]
    return ["".join("".join(o["text"]) for o in each).rstrip() for each in streams]


CHECKS = re.compile(r"\[\[ (?:claims\.\w+|interview\.quiz_\w+) \]\]")


def may_have_code(uri: str) -> bool:
    """Told from its source alone: each worker of the tests asks this of every page."""
    if uri.endswith(".ipynb"):
        return True
    text = (ROOT / "docs/en/pages" / uri).read_text(encoding="utf-8")
    return has_code(text) or bool(CHECKS.search(text))


PAGES = [uri for uri in uris("en") if may_have_code(uri)]


def problems(found: Iterable[Copied], folder) -> list[str]:
    """The programs that stop, or print something else than their page shows."""
    found = [each for each in found if not each.of_repository]
    if not found:
        return []
    said = pasting.run([each.text for each in found], folder)
    return [
        f"{each.where}: {code}\n{printed[-800:]}"
        for each, (code, printed) in zip(found, said, strict=True)
        if code or not printed.rstrip().endswith(each.expected)
    ]


@pytest.mark.parametrize("uri", quick_among(PAGES, [QUICK]))
def test_runs_where_it_is_pasted(uri, tmp_path):
    assert problems(copied(uri, "en"), tmp_path) == []


def test_a_program_that_stops_is_noticed(tmp_path):
    wrong = {
        "snippets": "from snippets.rms_norm.reference import rms_norm",
        "tests": "import tests",
        "name": "print(scale)",
        "output": "print(2)",
        "exit": "raise SystemExit(3)",
    }
    found = [Copied(name, text, "1", False) for name, text in wrong.items()]
    found.append(Copied("right", "print(1)", "1", False))
    said = [line.partition(":")[0] for line in problems(found, tmp_path)]
    assert said == [*wrong]


def test_what_needs_the_repository_says_so():
    for uri in PAGES:
        told = [each for each in copied(uri, "en") if each.of_repository]
        assert len(told) == NEEDS_REPOSITORY.get(uri, 0), uri


def comments_out(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line[:1] != "#")


def test_both_languages_hand_over_the_same():
    assert uris("zh") == uris("en")
    for uri in uris("en"):
        en, zh = (
            [comments_out(e.text) for e in copied(uri, language)]
            for language in LANGUAGES
        )
        assert en == zh, uri
        assert not en or uri in PAGES


def imports_of_ours(text: str) -> list[str]:
    nodes = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    modules = [getattr(n, "module", None) or n.names[0].name for n in nodes]
    return [m for m in modules if m.split(".")[0] in ("snippets", "scripts", "tests")]


FUNCTIONS = ast.FunctionDef, ast.ClassDef
COMPREHENSIONS = ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp


def bound(node) -> set[str]:
    """Names that a statement gives to its module."""
    if isinstance(node, (*FUNCTIONS, *COMPREHENSIONS)):
        return set()
    own = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    inner = [bound(child) for child in ast.iter_child_nodes(node)]
    return set().union({node.id} if own else set(), *inner)


def covered(text: str) -> set[str]:
    """Functions that a later line hides from another function which calls them."""
    made, found = set(), set()
    body = ast.parse(text).body
    functions = [node for node in body if isinstance(node, FUNCTIONS)]
    called = {
        name.id
        for node in functions
        for name in ast.walk(node)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load)
    }
    for node in body:
        found |= bound(node) & made & called
        made |= {node.name} if isinstance(node, FUNCTIONS) else set()
    return found


def unknown_names(texts: dict[str, str], folder) -> str:
    """What ruff says of programs, which stand in a file each."""
    for number, (where, text) in enumerate(texts.items()):
        path = folder / f"{number}.py"
        path.write_text(f"# {where}\n{text}", encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache"]
    done = subprocess.run(
        [*ruff, "--select", "F821,F401", "--output-format", "concise", str(folder)],
        capture_output=True,
        text=True,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_no_name_is_missing_and_nothing_of_ours_is_imported(tmp_path):
    found = [each for uri in PAGES for each in copied(uri, "en")]
    alone = [each for each in found if not each.of_repository]
    assert len(alone) > 900
    assert [each.where for each in alone if imports_of_ours(each.text)] == []
    assert [(e.where, names) for e in found if (names := covered(e.text))] == []
    said = unknown_names({each.where: each.text for each in found}, tmp_path)
    assert not said, said


def test_a_missing_name_is_noticed(tmp_path):
    assert "F821" in unknown_names({"a": "print(scale)\n"}, tmp_path)
    assert imports_of_ours("def f():\n    from snippets.a import b") == ["snippets.a"]
    hidden = "def a(): ...\ndef b(): a()\nfor a in (): ..."
    assert covered(hidden) == {"a"}
    assert covered("def a(): ...\ndef b(): a()\nc = [a for a in ()]") == set()


def test_a_stub_comes_with_what_it_is_given():
    texts = [each.text for each in copied("interview/coding.md", "en")]
    given = [text for text in texts if "Given: rotate(x)" in text]
    assert given and all("\ndef rotate(" in text for text in given)


def test_a_block_that_runs_alone_needs_no_programs():
    assert copied_programs.of("learn/sixteen-bits.md", "en", "/", words("en")) is None
    assert copied_programs.of("reference/glossary.md", "en", "/", words("en")) is None


def test_another_name_is_kept():
    sources = ["from snippets.rms_norm.reference import rms_norm as rms\nprint(rms)"]
    _, cell = page_notebooks.with_snippets(sources, words("en"))
    assert cell["source"] == "rms = rms_norm\nprint(rms)"
