"""The arrows of the design: who may import whom.

docs --embed--> snippets <--import-- scripts/experiments --write--> docs/records
Tests see everything; nothing sees tests.
"""

import ast
import graphlib
import sys
from functools import cache
from pathlib import Path

import pytest

from scripts.site.reading import source
from tests.pages.page_prose import EN, nav

ROOT = source.ROOT
ONLY = {  # by folder: all that its files may import besides the standard library
    "snippets/": {"torch", "triton", "snippets"},
    "snippets/coding/": {"torch", "triton", "numpy", "snippets"},
    "docs/labs/": {"torch", "matplotlib", "snippets"},
    "scripts/experiments/": {"torch", "matplotlib", "snippets", "scripts.measure"},
}
ATLAS = {"transformers", "scripts.experiments.atlas"}  # what it measures; its parts
ONLY |= {  # of folders that hold each other the longest counts
    path: ONLY["scripts/experiments/"] | ATLAS
    for path in ("scripts/experiments/model_atlas.py", "scripts/experiments/atlas/")
}
# Of the standard library: readers run snippets and labs as notebooks.
PLAIN = {
    *("collections", "copy", "dataclasses", "functools", "itertools", "math"),
    *("textwrap", "typing", "warnings"),
}
MORE = {  # with its reason
    "snippets/memory_bound/interpreter.py": {"os"},  # a variable that Triton reads
    # Compiles its C++ and calls it.
    "snippets/memory_bound/cpu_norms.py": {
        *("ctypes", "os", "pathlib", "shutil", "subprocess", "tempfile"),
    },
    # Calls the project's own command as a reader does.
    "snippets/examine_your_model/terminal.py": {"subprocess", "sys"},
}
SMALLER = {  # an experiment one size up: the module whose models it trains again
    "attention_control": "qk_norm_stability",
    "layer_worth": "residual_growth",
    "qk_update_loss": "qk_norm_stability",
    "shared_shift_loss": "centring_ablation",
    "norm_free_control": "norm_free",
}
ONLY |= {
    f"scripts/experiments/{name}.py": ONLY["scripts/experiments/"]
    | {f"scripts.experiments.{smaller}"}
    for name, smaller in SMALLER.items()
}
NEVER = {
    "scripts/": {"tests"},
    "scripts/site/": {"scripts.experiments"},
    "scripts/measure/": {"scripts.experiments", "scripts.site"},
}
# Rooms of scripts/site: each may use those before it.
ROOMS = (
    ("reading",),
    ("data",),
    ("atlas", "questions"),
    ("pictures",),
    ("pages",),
    ("notebooks",),
    ("laws",),
    ("publish",),
)
EXPERIMENT = "scripts/experiments/a_b.py"
HEAVY = {
    "torch",
    "triton",
    "matplotlib",
    "transformers",
}  # the site builds without them


@cache
def imports(text: str) -> list[tuple[int, str, bool]]:
    """(line, dotted name, whether importing the file runs it) of each import."""
    tree = ast.parse(text)
    later = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        for inner in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            names = [f"{base}.{alias.name}" for alias in node.names]
        found += [(node.lineno, name, id(node) not in later) for name in names]
    return sorted(found)


def violations(path: str, text: str) -> list[str]:
    """'line: what' for each import of a file that turns an arrow round."""
    found = []
    for line, name, at_once in imports(text):
        top = name.partition(".")[0]
        own = top in sys.stdlib_module_names
        shown = path.startswith(("snippets/", "docs/labs/"))
        nearest = max((f for f in ONLY if path.startswith(f)), key=len, default=None)
        turned = [f for f in NEVER if path.startswith(f) and in_(name, NEVER[f])]
        if nearest and not own and not in_(name, ONLY[nearest]):
            turned.append(nearest)
        if shown and own and top not in PLAIN | MORE.get(path, set()):
            turned.append(path)
        found += [f"{line}: {f} imports {name}" for f in turned]
        if path.startswith("scripts/") and at_once and top in HEAVY:
            found.append(f"{line}: {top} at the top; the site builds without it")
    return found


def out_of_room(path: str, text: str) -> list[str]:
    """'line: what' for each import of a room of scripts/site from a later one."""
    floor = {room: at for at, rooms in enumerate(ROOMS) for room in rooms}
    own = path.removeprefix("scripts/site/").partition("/")[0]
    found = []
    for line, name, _ in imports(text):
        room = [*name.split("."), "", ""][2] if in_(name, {"scripts.site"}) else ""
        if own in floor and room != own and floor.get(room, -1) >= floor[own]:
            found.append(f"{line}: {own} imports {room}")
    return found


def circles(texts: dict[str, str]) -> list[str]:
    """Modules that import each other, also through others or inside functions."""
    names = {path.removesuffix(".py").replace("/", "."): path for path in texts}
    edges = {}
    for name, path in names.items():
        imported = {found for _, found, _ in imports(texts[path])}
        imported |= {found.rpartition(".")[0] for found in imported}
        edges[name] = sorted((imported & names.keys()) - {name})
    sorter = graphlib.TopologicalSorter(edges)
    try:
        sorter.prepare()
    except graphlib.CycleError as error:
        return [" -> ".join(reversed(error.args[1]))]
    return []


def in_(name: str, roots: set[str]) -> bool:
    return any(f"{name}.".startswith(f"{root}.") for root in roots)


def backwards(path: str, text: str, order: list[str], prints: set[str]) -> list[str]:
    """How a snippet's imports miss files that are shown before it and print nothing."""
    earlier = order[: order.index(path)] if path in order else order
    found = []
    for line, name, _ in imports(text):
        if name.startswith("snippets."):
            file = "/".join(name.split(".")[1:3]) + ".py"
            if file not in earlier:
                found.append(f"{line}: {file} is not shown before {path}")
            if file in prints:
                found.append(f"{line}: {file} prints when it is imported")
    return found


def reading_order() -> list[str]:
    """Snippet files in the order in which the site shows them."""
    pages = [EN[path] for path in nav("en") if path in EN]
    fences = [fence for page in pages for fence in source.fences(page.text)]
    files = [fence.embed[0] for fence in fences if fence.embed]
    return list(dict.fromkeys(file for file in files if file.endswith(".py")))


def sources(folder: str) -> dict[str, str]:
    paths = sorted((ROOT / folder).rglob("*.py"))
    names = [path.relative_to(ROOT).as_posix() for path in paths]
    texts = [path.read_text(encoding="utf-8") for path in paths]
    return dict(zip(names, texts, strict=True))


def test_arrows(no_violations):
    files = sources("snippets") | sources("scripts") | sources("docs/labs")
    no_violations(
        f"{path}:{v}" for path in files for v in violations(path, files[path])
    )


def test_rooms(no_violations):
    files = sources("scripts/site")
    no_violations(
        f"{path}:{v}" for path in files for v in out_of_room(path, files[path])
    )
    known = {room for rooms in ROOMS for room in rooms}
    folders = (ROOT / "scripts" / "site").glob("*/*.py")
    assert {path.parent.name for path in folders} == known


def test_no_circles():
    assert circles(sources("scripts") | sources("snippets")) == []


@pytest.mark.parametrize(
    ("path", "text", "says"),
    [
        ("data/a.py", "from scripts.site.reading.source import x", []),
        ("data/a.py", "from scripts.site.data import b", []),
        ("hooks.py", "from scripts.site.publish import search", []),
        (
            "data/a.py",
            "def f():\n    from scripts.site.pages import x",
            ["2: data imports pages"],
        ),
        (
            "data/a.py",
            "import scripts.site.pictures.diagram",
            ["1: data imports pictures"],
        ),
    ],
)
def test_out_of_room(path, text, says):
    assert out_of_room(f"scripts/site/{path}", text) == says


def test_a_circle_is_found():
    texts = {
        "scripts/a.py": "from scripts import b",
        "scripts/b.py": "def f():\n    from scripts.c import x",
        "scripts/c.py": "import scripts.a",
    }
    assert len(circles(texts)) == 1
    texts["scripts/c.py"] = "import scripts.d"
    assert circles(texts) == []


def test_snippets_import_what_was_shown_before(no_violations):
    order, root = reading_order(), source.SNIPPETS
    outputs = (path.relative_to(root) for path in root.rglob("*.out"))
    prints = {path.with_suffix(".py").as_posix() for path in outputs}
    for path, text in sources("snippets").items():
        file = Path(path).relative_to("snippets").as_posix()
        no_violations(f"{path}:{v}" for v in backwards(file, text, order, prints))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("snippets/a/b.py", "import math\nimport torch.nn\nfrom snippets.a.c import d"),
        (EXPERIMENT, "from scripts.measure.records import Step"),
        (EXPERIMENT, "def measure():\n    import torch"),
        (
            "scripts/experiments/atlas/tiny.py",
            "from scripts.experiments.atlas import a\n"
            "def f():\n    import transformers",
        ),
        (
            "scripts/measure/figures.py",
            "def draw():\n    from matplotlib import pyplot",
        ),
        (
            "scripts/site/data/facts.py",
            "import yaml\nfrom scripts.measure import records",
        ),
        ("scripts/site/a.py", "if TYPE_CHECKING:\n    import torch"),
        ("scripts/build.py", "import importlib\nfrom scripts.site.data import facts"),
        ("docs/labs/deep.py", "import matplotlib.pyplot\nfrom snippets.a.b import c"),
    ],
)
def test_good(path, text):
    assert violations(path, text) == []


@pytest.mark.parametrize(
    ("path", "text", "says"),
    [
        ("snippets/a/b.py", "x = 1\nfrom scripts import measure", "2: snippets/"),
        ("snippets/a/b.py", "import tests.summary_line", "1: snippets/ imports tests"),
        ("snippets/a/b.py", "import numpy", "1: snippets/ imports numpy"),
        ("snippets/a/b.py", "from .c import d", "1: snippets/ imports .c.d"),
        ("snippets/a/b.py", "import os\nos._exit(0)", "1: snippets/a/b.py imports os"),
        ("snippets/a/b.py", "import urllib.request", "1: snippets/a/b.py imports url"),
        ("snippets/a/b.py", "def f():\n    from subprocess import run", "2: snippets/"),
        ("docs/labs/deep.py", "import socket", "1: docs/labs/deep.py imports socket"),
        ("snippets/a/b.py", "def f():\n    import numpy", "2: snippets/"),
        (EXPERIMENT, "from scripts.site.data import facts", "1: scripts/exp"),
        (EXPERIMENT, "import scripts.experiments.c_d", "1: scripts/exp"),
        (EXPERIMENT, "def f():\n    import transformers", "2: scripts/exp"),
        (EXPERIMENT, "from scripts.experiments.atlas import a", "1: scripts/exp"),
        ("scripts/experiments/atlas/a.py", "import transformers", "1: transformers"),
        ("scripts/experiments/atlas/a.py", "import numpy", "1: scripts/exp"),
        (EXPERIMENT, "import torch", "1: torch at the top"),
        (EXPERIMENT, "try:\n    import torch\nfinally: 0", "2: torch"),
        (EXPERIMENT, "class A:\n    import torch", "2: torch"),
        (
            "scripts/measure/a.py",
            "from scripts.experiments import x",
            "1: scripts/meas",
        ),
        ("scripts/measure/a.py", "import matplotlib", "1: matplotlib at the top"),
        ("scripts/site/a.py", "import scripts.experiments.x", "1: scripts/site/"),
        ("scripts/site/a.py", "from tests import closing", "1: scripts/ imports tests"),
        ("scripts/build.py", "from tests import closing", "1: scripts/ imports tests"),
        ("docs/labs/deep.py", "from scripts.measure import figures", "1: docs/labs/"),
    ],
)
def test_bad(path, text, says):
    found = violations(path, text)
    assert any(v.startswith(says) for v in found), found


def test_backwards():
    order = ["a/one.py", "a/two.py", "b/three.py"]
    good = "from snippets.a.one import x\nimport snippets.a.two\nimport torch"
    assert backwards("b/three.py", good, order, set()) == []
    assert backwards("a/one.py", good, order, {"a/two.py"}) == [
        "1: a/one.py is not shown before a/one.py",
        "2: a/two.py is not shown before a/one.py",
        "2: a/two.py prints when it is imported",
    ]


def test_the_site_loads_no_experiment():
    """It reads docs/facts and docs/figures, which `render` writes."""
    who = {
        path.name
        for path in (ROOT / "scripts" / "site").rglob("*.py")
        if "load_experiment" in path.read_text(encoding="utf-8")
    }
    assert who == {"render.py"}
