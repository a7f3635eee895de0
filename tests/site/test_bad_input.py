"""Bad input: one clear line, a failing exit, no traceback.

Most mistakes stand in Chinese, which is built first: the build ends there.
"""

import json
import socket
import subprocess
import sys

import pytest

from scripts import build
from scripts.site import render
from tests.lanes import first_quick
from tests.site.conftest import WarmProject


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    project = WarmProject(tmp_path_factory.mktemp("broken"))
    project.keep_only("rmsnorm")
    with project:
        yield project


@pytest.fixture
def broken(warm):
    """One project and one warm process for all mistakes, each taken back."""
    with warm.restored():
        yield warm


def broken_embed(project):
    project.append(project.page(), '\n```python\n--8<-- "speed/no_such.py"\n```\n')
    return "speed.md: line", "no snippet speed/no_such.py"


def unknown_section(project):
    page = project.page("rmsnorm/rms-norm.md")
    project.append(page, '\n```python\n--8<-- "rms_norm/reference.py:nope"\n```\n')
    return "rms-norm.md: line", "no section 'nope' in rms_norm/reference.py"


def unknown_fact(project):
    project.append(project.page(), "\n[[ facts.norm_speed_cpu.no_such_fact ]]\n")
    return "speed.md", "unknown fact of norm_speed_cpu 'no_such_fact'"


def unknown_figure(project):
    project.append(project.page(), "\n[[ figures.no_such_figure ]]\n")
    return "speed.md", "unknown figure 'no_such_figure'"


def unknown_design(project):
    project.append(project.page(), "\n[[ designs.no_such_experiment ]]\n")
    return "speed.md", "unknown design 'no_such_experiment'; known: "


def unknown_citation(project):
    project.append(project.page("index.md"), "\n[[ cite.nobody1999nothing ]]\n")
    return "index.md", "unknown citation 'nobody1999nothing'"


def damaged_bibliography(project):
    path = project.root / "docs/data/references.bib"
    project.append(path, "\n@misc{open2026entry,\n  title = {never closed\n")
    return "references.bib", "premature end of file"


def unknown_diagram(project):
    project.append(project.page(), "\n[[ diagrams.no_such_drawing ]]\n")
    return "speed.md", "unknown diagram 'no_such_drawing'"


def damaged_record(project):
    path = next(project.root.glob("docs/records/*/norm_speed_cpu.json"))
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[: len(lines) // 2]), encoding="utf-8")
    return "norm_speed_cpu.json", "line"


def record_with_a_short_row(project):
    path = next(project.root.glob("docs/records/*/norm_speed_cpu.json"))
    record = json.loads(path.read_text(encoding="utf-8"))
    record["rows"][2] = record["rows"][2][:-1]
    path.write_text(json.dumps(record), encoding="utf-8")
    return "norm_speed_cpu.json", "row 3"


def edited_figure(project):
    path = project.root / "docs/figures/amd-epyc/norm_speed_cpu.en.svg"
    project.edit(path, "</svg>", "<script>alert(1)</script></svg>")
    return "norm_speed_cpu.en.svg", "make render writes it anew"


def damaged_list_of_digests(project):
    path = project.root / "docs/generated.json"
    path.write_text(path.read_text(encoding="utf-8")[:1000], encoding="utf-8")
    return "docs/generated.json", "damaged: "


def missing_figure(project):
    (project.root / "docs/figures/amd-epyc/norm_speed_cpu.zh.svg").unlink()
    return "norm_speed_cpu.zh.svg", "run: make render"


def missing_twin(project):
    project.page().unlink()
    return "docs/en/pages/rmsnorm/speed.md", "docs/zh/pages/rmsnorm/speed.md is missing"


def skipped_fence(project):
    project.append(project.page(), "\n```py\nprint(1)\n```\n")
    return "speed.md", "would be skipped"


def tilde_fence(project):
    project.append(project.page(), "\n~~~python\nprint(1)\n~~~\n")
    return "speed.md", "would be skipped"


def typed_code(project):
    project.append(project.page(), "\n```python\nprint(1)\n```\n")
    return "speed.md", "exactly one embed"


def unbalanced_section(project):
    path = project.root / "snippets/rms_norm/unbalanced.py"
    path.write_text("# --8<-- [start:open]\nx = 1\n", encoding="utf-8")
    page = project.page("rmsnorm/rms-norm.md")
    project.append(page, '\n```python\n--8<-- "rms_norm/unbalanced.py:open"\n```\n')
    return "rms-norm.md", "section 'open' is never closed"


def bad_formula(project):
    project.append(project.page(), "\n$$\n\\fracc{1}{2}\n$$\n")
    return "speed.md", r"Undefined control sequence: \fracc"


def broken_link(project):
    project.append(project.page(), "\n[gone](no-such-page.md)\n")
    return "speed.md", "no-such-page.md"


def broken_link_in_english(project):
    project.append(project.page(language="en"), "\n[gone](no-such-page.md)\n")
    return "speed.md", "no-such-page.md"


# The first of each row stands for its kind in `make test`.
CASES = [
    (broken_embed, unknown_section, unbalanced_section),
    (unknown_fact, unknown_figure, unknown_design, unknown_citation, unknown_diagram),
    (damaged_record, record_with_a_short_row),
    (edited_figure, missing_figure, damaged_list_of_digests, damaged_bibliography),
    (typed_code, skipped_fence, tilde_fence),
    (broken_link_in_english, broken_link, missing_twin),
    (bad_formula,),
]


@pytest.mark.parametrize(
    "case",
    [case for kind in CASES for case in first_quick(*kind)],
    ids=lambda case: case.__name__,
)
def test_build_fails_with_one_line(case, broken):
    where, what = case(broken)
    done = broken.build()
    said = [
        line
        for line in done.stderr.splitlines()
        if line.startswith(("ERROR", "WARNING"))
        and "Error reading page" not in line  # MkDocs' own, before the reason
    ]
    assert done.returncode != 0
    assert len(said) == 1, done.stderr[-3000:]
    assert where in said[0] and what in said[0]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["measure", "no_such_experiment"], "no_such_experiment"),
        (["measure", "norm_speed_cpu", "--size", "huge"], "unknown size 'huge'"),
        (["measure", "norm_speed_cpu", "--size", "medium"], "has no size 'medium'"),
        (["accept", "no_such_file.zip"], "no_such_file.zip"),
        (["measure", "norm_speed_cpu", "--journal", "mkdocs.yml"], "mkdocs.yml: File "),
        (["measure", "norm_speed_cpu", "--journal", "mkdocs.yml/x"], "Not a directory"),
        (["serve", "--address", "127.0.0.1:80000"], "is no address like"),
        (["serve", "--address", "8000"], "is no address like"),
        (["bake"], "bake"),
    ],
)
def test_entry_point_names_what_is_wrong(arguments, what, warm):
    done = warm.run("scripts/build.py", *arguments)
    assert done.returncode != 0
    assert what in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def said(*arguments, cwd=build.ROOT) -> list[str]:
    """What a command of the project itself, that ends at once, says on its way out."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == ""
    return done.stderr.splitlines()


def test_a_taken_port_is_said_before_anything_is_built():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        (line,) = said("scripts/build.py", "serve", "--address", address)
    assert line.startswith(f"build.py: {address}: Address already in use; ")
    assert line.endswith("make serve PORT=8001")


def test_accept_looks_where_it_was_called(tmp_path):
    (tmp_path / "bundle.json").write_text("{}", encoding="utf-8")
    script = build.ROOT / "scripts/build.py"
    (line,) = said(script, "accept", "bundle.json", cwd=tmp_path)
    assert line == "build.py: bundle.json: damaged record: no 'experiment'"


def test_without_the_packages_it_names_make():
    (line,) = said(
        "-c",
        "import sys, runpy; sys.modules['yaml'] = None; sys.argv = ['b', 'site'];"
        "runpy.run_path('scripts/build.py', run_name='__main__')",
    )
    assert line.startswith("build.py: this Python lacks yaml; make")


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(28, "No space left on device", "docs/x.svg"), "docs/x.svg: No space"),
        (OSError(30, "Read-only file system"), "build.py: Read-only file system"),
    ],
)
def test_a_full_or_read_only_disk_is_one_line(error, says, monkeypatch, capsys):
    def fails(**_):
        raise error

    monkeypatch.setattr(render, "stale_only", fails)
    assert build.main(["render"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


def test_check_sees_tests_that_stopped(tmp_path):
    """A program that ends its process ends pytest with 0, unless in a worker."""
    ends = "import os\n\ndef test_ends():\n    os._exit(0)\n"
    (tmp_path / "test_ends.py").write_text(ends)
    command = [sys.executable, "-m", *build.TESTS, "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0
    assert "crashed" in done.stdout


def test_unknown_experiment_names_the_known(warm):
    done = warm.run("scripts/build.py", "measure", "no_such_experiment")
    assert "norm_speed_cpu" in done.stderr and len(done.stderr.splitlines()) == 1


def test_stale_without_torch_says_what_to_do(project):
    """A fresh clone without torch still says in one line what is stale."""
    snippet = project.root / "snippets/rms_norm/worked_example.py"
    project.append(snippet, "\nSTALE = 1\n")
    (project.root / "torch.py").unlink(missing_ok=True)
    hide = (
        "import sys, runpy; sys.modules['torch'] = None; sys.argv = ['b', 'site'];"
        "import importlib.util as u; real = u.find_spec;"
        "u.find_spec = lambda n, *a: None if n == 'torch' else real(n, *a);"
        "runpy.run_path('scripts/build.py', run_name='__main__')"
    )
    done = project.run("-c", hide)
    assert done.returncode == 1
    assert done.stderr.strip().startswith("build.py: 1 stale")
    assert "worked_example.out" in done.stderr and "make render" in done.stderr
