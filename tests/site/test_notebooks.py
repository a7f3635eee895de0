"""Every page's notebook runs on its own and prints what the page shows."""

import contextlib
import io
import re
import sys
import types
from pathlib import Path

import nbformat
import pytest
import yaml

from scripts.site import lists, notebooks, plain
from tests.fresh_main import alone, forget_main, runs_alone

ROOT = Path(__file__).resolve().parents[2]
URL = "https://example.org/zh/"
LOCAL = "http://localhost:8000/zh/"


def with_code() -> list[str]:
    pages = ROOT / "docs" / "en" / "pages"
    return [
        path.relative_to(pages).as_posix()
        for path in sorted(pages.rglob("*.md"))
        if plain.has_code(path.read_text(encoding="utf-8"))
    ]


def book(uri: str, language: str, site_url: str = URL) -> dict:
    text = (ROOT / "docs" / language / "mkdocs.yml").read_text(encoding="utf-8")
    words = yaml.safe_load(text)["extra"]["words"]
    path = ROOT / "docs" / language / "pages" / uri
    return notebooks.notebook(path, language, site_url, words)


def code_cells(notebook: dict) -> list[dict]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


class NoSnippets:
    """The reader has this notebook and torch, and nothing of the repository."""

    def find_spec(self, name, *_):
        if name.split(".")[0] in ("snippets", "scripts", "tests"):
            raise ImportError(f"the notebook imports {name}")


def leave_alone(monkeypatch) -> None:
    for name in [n for n in sys.modules if n.split(".")[0] == "snippets"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [NoSnippets(), *sys.meta_path])


@pytest.mark.parametrize("uri", with_code())
def test_runs_alone(uri, monkeypatch):
    if runs_alone(uri):
        said = alone(f"tests/site/test_notebooks.py::test_runs_alone[{uri}]")
        assert not said, said
        return
    main, cells = types.ModuleType("__main__"), code_cells(book(uri, "en"))
    monkeypatch.setitem(sys.modules, "__main__", main)
    leave_alone(monkeypatch)
    forget_main()
    for cell in cells:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(cell["source"], cell["id"], "exec"), vars(main))
        expected = "".join(output["text"] for output in cell["outputs"])
        assert printed.getvalue().rstrip() == expected.rstrip(), cell["source"][:200]


@pytest.mark.parametrize("uri", with_code())
def test_both_languages_hold_the_same_code(uri):
    en, zh = (book(uri, language) for language in ("en", "zh"))
    strip = "\n".join
    sources = [
        [strip(c["source"].splitlines()[1:]) for c in code_cells(b)] for b in (en, zh)
    ]
    assert sources[0] == sources[1]


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("uri", with_code())
def test_is_valid_and_has_nothing_left_to_resolve(uri, language):
    notebook = book(uri, language)
    nbformat.validate(nbformat.from_dict(notebook))
    text = "\n".join(c["source"] for c in notebook["cells"] if "outputs" not in c)
    for left in ("--8<--", "[[", "]]", "!!!", "???", "{ #"):
        assert left not in text, text[max(0, text.find(left) - 80) :][:160]
    assert not re.findall(r"\]\((?!https?:|#)[^)]*\)", text), "relative links"


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("uri", with_code())
def test_says_what_it_needs(uri, language):
    cells = book(uri, language)["cells"]
    code = "\n".join(c["source"] for c in cells if c["cell_type"] == "code")
    first = cells[0]["source"]
    assert "torch" in first
    assert ("Triton" in first) == ("import triton" in code)


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("uri", with_code())
def test_pages_are_named_where_the_site_is_not_published(uri, language):
    """A notebook lasts longer than the server that it was loaded from."""
    found, given = (book(uri, language, at)["cells"] for at in (LOCAL, URL))
    assert LOCAL not in str(found)
    assert f"<{URL}{uri.removesuffix('.md')}/>" in given[0]["source"]
    assert lists.pages(language)[uri] in found[0]["source"]
    links = re.compile(rf"\[((?:[^\[\]]|`[^`]*`)*)\]\({re.escape(URL)}[^)]*\)")
    for here, there in zip(found[1:], given[1:], strict=True):
        assert here["source"] == links.sub(r"\1", there["source"])


def test_an_address_for_others():
    assert plain.published(URL) and plain.published("https://a.github.io/norms/en/")
    assert not any(map(plain.published, ("/", LOCAL, "http://[::1]/")))
    assert not plain.published("http://127.0.0.1:8731/en/")


def test_links_without_an_address_are_names():
    text = f"$[0, 1]$ and [the `x[0]` of [a]]({LOCAL}a/#b), [c](https://d.org/e)"
    named = "$[0, 1]$ and the `x[0]` of [a], [c](https://d.org/e)"
    assert plain.lasting(text, LOCAL) == named
    assert plain.lasting(text, URL) == text
    assert plain.lasting("[a](/b/)", "/") == "a"


def test_boxes_are_flattened_and_fences_inside_found():
    page = '!!! note "Title"\n    text\n\n    ```python\n    x\n    ```\n\nafter\n'
    assert plain._flatten_boxes(page) == (
        "**Title**\n\ntext\n\n```python\nx\n```\n\nafter"
    )


def test_nested_boxes():
    page = '??? note "A"\n    a\n\n    !!! tip "B"\n        b\n\n    a again\n\nend'
    assert plain._flatten_boxes(page) == ("**A**\n\na\n\n**B**\n\nb\n\na again\n\nend")


def test_links_become_absolute():
    text = "[a](low-precision.md#x) [b](../index.md) [c](../labs/deep-stack.ipynb)"
    text += " [d](../records/amd-epyc/norm_speed_cpu.json)"
    assert plain.absolute_links(text, "rmsnorm/rms-norm.md", URL) == (
        f"[a]({URL}rmsnorm/low-precision/#x) [b]({URL}) [c]({URL}labs/deep-stack/)"
        f" [d]({URL}records/amd-epyc/norm_speed_cpu.json)"
    )
