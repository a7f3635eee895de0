"""The runner of page blocks (conftest.py at the root), on small made-up pages."""

from pathlib import Path

import pytest
import torch  # here, or each run in this process would import it anew

pytest_plugins = ["pytester"]
ROOT = Path(__file__).resolve().parents[1]

FILES = {
    "demo/parts.py": (
        "# --8<-- [start:one]\none = 1\n# --8<-- [end:one]\n\n"
        "# --8<-- [start:two]\ntwo = one + 1\nprint(two)\n# --8<-- [end:two]\n"
    ),
    "demo/parts.out": "2\n",
    "demo/wrong.py": "print('digit', 7)\n",
    "demo/wrong.out": "digit 8\n",
    "demo/counts.py": "with open('runs', 'a') as file:\n    _ = file.write('x')\n",
    "demo/loud.py": "print('unclaimed')\n",
    "demo/quiet.py": "quiet = True\n",
    "demo/quiet.out": "words\n",
    "demo/raises.py": "\n\ndef broken():\n    raise KeyError('lost')\n\n\nbroken()\n",
    "demo/uses_one.py": "print(one)\n",
    "demo/uses_one.out": "1\n",
    "demo/own_source.py": (
        "import inspect\n\n\ndef f():\n    return 'own'\n\n\n"
        "print(inspect.getsource(f).strip(), __name__, f.__module__)\n"
    ),
    "demo/own_source.out": "def f():\n    return 'own' __main__ __main__\n",
}


def page(*embeds: str) -> str:
    kinds = ("text" if name.endswith(".out") else "python" for name in embeds)
    return "\n\n".join(
        f'```{kind}\n--8<-- "demo/{name}"\n```'
        for kind, name in zip(kinds, embeds, strict=True)
    )


GOOD = page("parts.py:one", "parts.py:two", "parts.out")


@pytest.fixture
def run(pytester, monkeypatch):
    """Run made-up pages, {path: text}, in a copy of the project's set-up."""
    monkeypatch.syspath_prepend(ROOT)
    pytester.makeconftest((ROOT / "conftest.py").read_text(encoding="utf-8"))
    pytester.makeini("[pytest]\naddopts = --codeblocks -p no:cacheprovider\n")
    for name, text in FILES.items():
        path = pytester.path / "snippets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(pages: dict[str, str], *arguments: str):
        for name, text in pages.items():
            path = pytester.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return pytester.runpytest_inprocess(*arguments)

    return run


def test_runs_both_languages_and_counts(run):
    result = run({"docs/zh/pages/a/x.md": GOOD, "docs/en/pages/a/x.md": GOOD}, "-v")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(
        [
            "docs/en/pages/a/x.md::line 1 PASSED*",
            "docs/en/pages/a/x.md::line 5 PASSED*",
            "pages: 2 (zh 1, en 1) · blocks run: zh 2, en 2 · *",
        ]
    )


COUNTS = page("counts.py", "parts.py:one")


@pytest.mark.parametrize("workers", [[], ["-n2", "--dist", "loadfile"]])
def test_twins_of_the_same_blocks_run_once(run, pytester, workers):
    """On one worker: each of the other pages is a file of its own."""
    others = {f"docs/en/pages/{name}.md": GOOD for name in "bcd"}
    twins = {f"docs/{lang}/pages/a/x.md": COUNTS for lang in ("zh", "en")}
    run(others | twins, *workers).assert_outcomes(passed=10)
    assert (pytester.path / "runs").read_text() == "x"


def test_twins_of_other_blocks_each_run(run, pytester):
    pages = {
        "docs/zh/pages/x.md": "标题\n\n" + COUNTS,
        "docs/en/pages/x.md": page("counts.py", "parts.out", "parts.py:one"),
        "docs/en/pages/y.md": COUNTS,
    }
    result = run(pages, "-v")
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines(["docs/en/pages/x.md::line 1 FAILED*", "-2"])
    assert (pytester.path / "runs").read_text() == "xxx"


def test_a_failure_is_both_twins_at_their_own_lines(run):
    text = page("raises.py", "parts.py:one")
    pages = {"docs/zh/pages/x.md": text, "docs/en/pages/x.md": "One.\n\n" + text}
    result = run(pages)
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines_random(
        [
            "*docs/zh/pages/x.md:1 (demo/raises.py)",
            "line 1 failed before it",
            "*docs/en/pages/x.md:3 (demo/raises.py)",
            "line 3 failed before it",
        ]
    )


def test_files_of_minutes_come_before_those_of_seconds(run, pytester):
    """Of one worker's files only the first two are fixed before."""
    pages = {f"docs/en/pages/{name}.md": GOOD for name in "abcd"}
    for name in ("tests/site/test_e.py", "tests/test_f.py"):
        path = pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("def test_it():\n    pass\n", encoding="utf-8")
    result = run(pages, "-n1", "--dist", "loadfile", "-v", "--import-mode=importlib")
    result.assert_outcomes(passed=10)
    began = [line for line in result.outlines if line.startswith(("docs", "tests"))]
    files = list(dict.fromkeys(line.partition("::")[0] for line in began))
    assert files.index("tests/site/test_e.py") == 2 and len(files) == 6


def test_nothing_outside_the_pages_runs(run):
    other = {"README.md": "```python\n1 / 0\n```", "docs/zh/x.md": page("raises.py")}
    run(other).assert_outcomes()


@pytest.mark.parametrize("alone", ["docs/en/pages/x.md::line 5", "-kline and 5"])
def test_one_block_alone_runs_those_before_it(run, alone):
    result = run({"docs/en/pages/x.md": GOOD}, alone)
    result.assert_outcomes(passed=1, deselected="-k" in alone)


def test_any_order(run, pytester):
    conftest = pytester.path / "conftest.py"
    backwards = "\ndef pytest_collection_modifyitems(items):\n    items.reverse()\n"
    conftest.write_text(conftest.read_text(encoding="utf-8") + backwards)
    run({"docs/en/pages/x.md": GOOD}).assert_outcomes(passed=2)


def test_the_namespace_ends_with_the_page(run):
    pages = {
        "docs/en/pages/a.md": GOOD,
        "docs/en/pages/b.md": page("uses_one.py", "uses_one.out"),
    }
    result = run(pages)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*NameError: name 'one' is not defined*"])


def test_source_and_name_are_those_of_a_program(run):
    own = page("own_source.py", "own_source.out")
    run({"docs/en/pages/x.md": own}).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (page("wrong.py", "wrong.out"), ["-digit 8", "+digit 7"]),
        (page("loud.py"), ["+unclaimed"]),
        (page("quiet.py", "quiet.out"), ["-words"]),
        (page("parts.py:two", "parts.out"), ["*parts.py*line 6*", "NameError*"]),
        (page("raises.py"), ["*raises.py*line 4, in broken", "KeyError: 'lost'"]),
    ],
)
def test_a_failing_block_says_why(run, text, says):
    result = run({"docs/en/pages/x.md": text})
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*docs/en/pages/x.md:1 (demo/*", *says])


def test_blocks_after_a_failure_name_it(run):
    result = run({"docs/en/pages/x.md": page("raises.py", "parts.py:one")})
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*x.md:5 (demo/*", "line 1 failed before it"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("```py\nx\n```", "line 1: fence is not one embed"),
        ("~~~\nx\n~~~", "line 1: fence is not one embed"),
        ("```python\nx = 1\n```", "line 1: fence is not one embed"),
        (page("nowhere.py", "nowhere.out"), "no snippet demo/nowhere.out"),
        (page("parts.out"), "line 1: output of no block"),
        ("<!-- skip: no GPU -->\n" + page("loud.py"), "nothing of it runs"),
    ],
)
def test_a_page_that_cannot_run_is_an_error(run, text, says):
    result = run({"docs/en/pages/x.md": text})
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*{says}*"])


def test_a_skip_needs_its_reason_and_shows_it(run):
    skipped = GOOD + "\n\n<!-- skip: needs a GPU -->\n" + page("raises.py")
    result = run({"docs/en/pages/x.md": skipped}, "-rs")
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*needs a GPU"])
    silent = GOOD + "\n\n<!-- skip -->\n" + page("raises.py")
    run({"docs/en/pages/x.md": silent}).assert_outcomes(passed=2, failed=1)


def test_a_changed_default_dtype_is_a_failure(run, pytester):
    changes = "import torch\n\ntorch.set_default_dtype(torch.float64)\n"
    (pytester.path / "snippets/demo/changes.py").write_text(changes)
    try:
        result = run({"docs/en/pages/x.md": page("changes.py")})
    finally:
        torch.set_default_dtype(torch.float32)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["leaves torch's default dtype changed"])
