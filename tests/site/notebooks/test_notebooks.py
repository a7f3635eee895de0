"""Every page's notebook runs on its own and prints what the page shows."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import types
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import yaml

from scripts.site.data import reference_lists
from scripts.site.notebooks import judge, page_notebooks
from scripts.site.pages import page_parts
from scripts.site.reading.source import embedded
from tests.isolate_program import alone, forget_main, runs_alone
from tests.lanes import quick_among

ROOT = Path(__file__).resolve().parents[3]
URL = "https://example.org/zh/"
LOCAL = "http://localhost:8000/zh/"


def with_code() -> list[str]:
    pages = ROOT / "docs" / "en" / "pages"
    return [
        path.relative_to(pages).as_posix()
        for path in sorted(pages.rglob("*.md"))
        if page_parts.has_code(path.read_text(encoding="utf-8"))
    ]


def book(uri: str, language: str, site_url: str = URL, make=None) -> dict:
    text = (ROOT / "docs" / language / "mkdocs.yml").read_text(encoding="utf-8")
    words = yaml.safe_load(text)["extra"]["words"]
    path = ROOT / "docs" / language / "pages" / uri
    return (make or page_notebooks.notebook)(path, language, site_url, words)


@cache
def shown(uri: str, language: str, site_url: str = URL) -> dict:
    """What readers download: pages of tasks for practice, here without the judge."""
    if not judge.on_page(uri):
        return book(uri, language, site_url)
    found = book(uri, language, site_url, page_notebooks.practice)
    return found | {"cells": [c for c in found["cells"] if c["id"] != "judge"]}


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


QUICK = "rmsnorm/rms-norm.md"  # the notebook that `make test` runs as well


@pytest.mark.parametrize("uri", quick_among(with_code(), [QUICK]))
def test_runs_alone(uri, monkeypatch):
    if runs_alone(uri):
        said = alone(f"tests/site/notebooks/test_notebooks.py::test_runs_alone[{uri}]")
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
    en, zh = (shown(uri, language) for language in ("en", "zh"))
    strip = "\n".join
    sources = [
        [strip(c["source"].splitlines()[1:]) for c in code_cells(b)] for b in (en, zh)
    ]
    assert sources[0] == sources[1]


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("uri", with_code())
def test_is_valid_and_has_nothing_left_to_resolve(uri, language):
    notebook = shown(uri, language)
    nbformat.validate(nbformat.from_dict(notebook))
    text = "\n".join(c["source"] for c in notebook["cells"] if "outputs" not in c)
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for left in ("--8<--", "[[", "]]", "!!!", "???", "{ #"):
        assert left not in text, text[max(0, text.find(left) - 80) :][:160]
    assert not re.findall(r"\]\((?!https?:|#)[^)]*\)", text), "relative links"


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("uri", with_code())
def test_says_what_it_needs(uri, language):
    cells = shown(uri, language)["cells"]
    code = "\n".join(c["source"] for c in cells if c["cell_type"] == "code")
    first = cells[0]["source"]
    assert "torch" in first
    assert ("Triton" in first) == ("import triton" in code)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("uri", with_code())
def test_pages_are_named_where_the_site_is_not_published(uri, language):
    """A notebook lasts longer than the server that it was loaded from."""
    found, given = (shown(uri, language, at)["cells"] for at in (LOCAL, URL))
    assert LOCAL not in str(found)
    assert f"<{URL}{uri.removesuffix('.md')}/>" in given[0]["source"]
    assert reference_lists.pages(language)[uri] in found[0]["source"]
    links = re.compile(rf"\[((?:[^\[\]]|`[^`]*`)*)\]\({re.escape(URL)}[^)]*\)")
    for here, there in zip(found[1:], given[1:], strict=True):
        assert here["source"] == links.sub(r"\1", there["source"])


PRACTICE = ["interview/coding.md", "interview/spot-the-bug.md"]
RUN_ALL = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.io import capture_output

sys.path.insert(0, "")
shell, said = InteractiveShell.instance(), []
for source in json.load(sys.stdin):
    with capture_output() as output:
        shell.run_cell(source).raise_error()
    said.append(output.stdout)
sys.stdout.write(json.dumps(said))
"""
FIXES = {
    "TokenNorm": ("dims = tuple(range(1, x.ndim))", "dims = (-1,)"),
    "accuracy": ("right = total = 0", "model.eval()\n    right = total = 0"),
    "ParallelLayer": ("h = self.norm(x)\n", "x = h = self.norm(x)\n"),
    "rms_norm": (
        "raise NotImplementedError",
        "return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * gain",
    ),
    "soft_cap": (
        "raise NotImplementedError",
        """ratio = z.to(torch.promote_types(z.dtype, torch.float32)) / cap
    slope = torch.cosh(ratio).pow(-2)
    return (cap * ratio.tanh()).to(z.dtype), slope.to(z.dtype)""",
    ),
}


def run_all(sources: list[str], folder) -> list[str]:
    """What each cell prints in IPython, in a folder where nothing of ours is found."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", RUN_ALL],
        input=json.dumps(["import torch", *sources]),
        cwd=folder,
        env=os.environ | {"IPYTHONDIR": str(folder / "ipython")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)[1:]


@pytest.mark.slow
@pytest.mark.parametrize("uri", PRACTICE)
def test_running_all_leaves_a_reader_with_their_own_code(uri, tmp_path):
    """Twice: nothing below a task gives its name another meaning."""
    sources = [
        c["source"] for c in code_cells(book(uri, "en", URL, page_notebooks.practice))
    ]
    checks = [s for s in sources if s.startswith("check(")]
    assert len(checks) == len(judge.on_page(uri))
    said = run_all([*sources, *checks], tmp_path)
    listing = " is as it came. Change the line that is wrong; or say that\n"
    for source, text in zip([*sources, *checks], said, strict=True):
        if source.startswith("check("):
            assert text.endswith(" is not written yet\n") or listing in text, text


@pytest.mark.parametrize("uri", PRACTICE)
def test_a_check_judges_what_stands_above_it(uri, tmp_path):
    sources = [
        c["source"] for c in code_cells(book(uri, "en", URL, page_notebooks.practice))
    ]
    for name, (old, new) in FIXES.items():
        here = [
            i for i, s in enumerate(sources) if re.search(rf"^\w+ {name}\(", s, re.M)
        ]
        for i in here:
            assert sources[i].count(old) == 1
            sources[i] = sources[i].replace(old, new)
    sources.append('check("offset_norm", True)' if "spot" in uri else "")
    sources.append('check("half_norm", sound=True)' if "spot" in uri else "")
    said = dict(zip(sources, run_all(sources, tmp_path), strict=True))
    if "spot" in uri:
        assert said['check("token_norm")'].startswith(
            "token_norm is right: it passes 3"
        )
        assert said['check("evaluation")'].startswith("evaluation is right: ")
        assert said['check("parallel_layer")'].startswith("ParallelLayer: ")
        assert said['check("offset_norm", True)'].startswith("offset_norm is right: ")
        assert "float16 rows of size 1000" in said['check("half_norm", sound=True)']
    else:
        assert "rms_norm: x of size 300 in torch.float16" in said['check("rms_norm")']
        assert said['check("soft_cap")'].startswith("soft_cap is right: ")
        assert said['check("layer_norm")'] == "layer_norm is not written yet\n"


@pytest.mark.parametrize("language", ["zh", "en"])
def test_solutions_are_folded_text(language):
    cells = shown("interview/coding.md", language)["cells"]
    texts = [c["source"] for c in cells if c["cell_type"] == "markdown"]
    code = "\n".join(c["source"] for c in code_cells({"cells": cells}))
    for name in judge.tasks():
        solution = embedded(f"coding/{name}.py")
        (folded,) = [text for text in texts if solution in text]
        assert folded.startswith("<details><summary>") and folded.endswith("</details>")
        assert solution.splitlines()[-1] not in code.splitlines(), name


def test_the_judge_is_folded_and_whole():
    cells = book("interview/coding.md", "zh", URL, page_notebooks.practice)["cells"]
    (cell,) = [c for c in cells if c["id"] == "judge"]
    assert cell["metadata"]["jupyter"] == {"source_hidden": True}
    text = judge.text("zh", URL, judge.tasks())
    assert text in cell["source"] and "'''" not in text


def test_an_address_for_others():
    assert page_parts.published(URL) and page_parts.published(
        "https://a.github.io/norms/en/"
    )
    assert not any(map(page_parts.published, ("/", LOCAL, "http://[::1]/")))
    assert not page_parts.published("http://127.0.0.1:8731/en/")


def test_links_without_an_address_are_names():
    text = f"$[0, 1]$ and [the `x[0]` of [a]]({LOCAL}a/#b), [c](https://d.org/e)"
    named = "$[0, 1]$ and the `x[0]` of [a], [c](https://d.org/e)"
    assert page_parts.lasting(text, LOCAL) == named
    assert page_parts.lasting(text, URL) == text
    assert page_parts.lasting("[a](/b/)", "/") == "a"


def test_boxes_are_flattened_and_fences_inside_found():
    page = '!!! note "Title"\n    text\n\n    ```python\n    x\n    ```\n\nafter\n'
    assert page_parts._flatten_boxes(page) == (
        "**Title**\n\ntext\n\n```python\nx\n```\n\nafter"
    )


def test_nested_boxes():
    page = '??? note "A"\n    a\n\n    !!! tip "B"\n        b\n\n    a again\n\nend'
    assert page_parts._flatten_boxes(page) == (
        "**A**\n\na\n\n**B**\n\nb\n\na again\n\nend"
    )


def test_folded_boxes_are_kept_for_practice():
    page = '??? note "A"\n    a\n\n    !!! tip "B"\n        b\n\n'
    page += '    ??? tip "C"\n        c'
    assert page_parts._flatten_boxes(f"{page}\n\nend", folded=True) == (
        "<details><summary>A</summary>\n\na\n\n**B**\n\nb\n\n"
        "<details><summary>C</summary>\n\nc\n\n</details>\n\n</details>\n\nend"
    )


def test_a_folded_box_holds_its_code():
    text, code = partial(page_parts.Part, "text"), partial(page_parts.Part, "code")
    page = [text("a\n<details>\nb"), code("x"), text("</details>\nc"), code("y")]
    assert page_parts._joined(page) == [
        text("a"),
        text("<details>\nb\n\n```python\nx\n```\n\n</details>"),
        text("c"),
        code("y"),
    ]


def test_links_become_absolute():
    text = "[a](low-precision.md#x) [b](../index.md) [c](../labs/deep-stack.ipynb)"
    text += " [d](../records/amd-epyc/norm_speed_cpu.json)"
    assert page_parts.absolute_links(text, "rmsnorm/rms-norm.md", URL) == (
        f"[a]({URL}rmsnorm/low-precision/#x) [b]({URL}) [c]({URL}labs/deep-stack/)"
        f" [d]({URL}records/amd-epyc/norm_speed_cpu.json)"
    )


def test_a_reload_makes_again_what_has_changed(monkeypatch):
    """Once for the same text and sources; anew when a source's stamp is another."""
    uri = with_code()[0]
    made = []
    monkeypatch.setattr(page_notebooks, "dumps", lambda book: made.append(book) or "")
    path = ROOT / "docs" / "en" / "pages" / uri
    text = (ROOT / "docs" / "en" / "mkdocs.yml").read_text(encoding="utf-8")
    words = json.dumps(yaml.safe_load(text)["extra"]["words"])
    for stamps in ((1, "a"), (1, "a"), (2, "a"), (2, "b")):
        page_notebooks._made(path, uri, "en", URL, words, stamps)
    assert len(made) == 3
    stamped = {file for file, _ in page_notebooks._sources()}
    assert {
        *(ROOT / "snippets").rglob("*.py"),
        *(ROOT / "snippets").rglob("*.out"),
    } <= (stamped)
    page_notebooks.read_again()
    page_notebooks._made.cache_clear()


def test_where_a_notebook_runs_is_linked_once_it_lies_on_github():
    file = SimpleNamespace(src_uri="rmsnorm/rms-norm.md")
    built = SimpleNamespace(url="x", dest_uri="rmsnorm/rms-norm.ipynb")
    files = SimpleNamespace(get_file_from_path=lambda _: built)
    for folder, hosts in (
        (None, []),
        ("us/norms/blob/site/en", ["colab", "modelscope"]),
    ):
        page = SimpleNamespace(file=file, meta={})
        page_notebooks.link(page, files, folder)
        found = [address for _, address in page.meta.get("open_in", [])]
        assert len(found) == len(hosts)
        for host, address in zip(hosts, found, strict=True):
            assert host in address
            assert address.endswith(
                "/github/us/norms/blob/site/en/rmsnorm/rms-norm.ipynb"
            )
