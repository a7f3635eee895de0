"""A block is copied with what it needs, and no more."""

import subprocess
import sys

import pytest

from scripts.site.notebooks import self_contained
from tests.site.notebooks.test_notebooks import book, code_cells


def programs(uri: str) -> list[str]:
    sources = [cell["source"] for cell in code_cells(book(uri, "en"))]
    return [
        self_contained.program(sources, copy) for copy in self_contained.copies(sources)
    ]


def test_interpreter_is_chosen_before_triton_is_imported(tmp_path, monkeypatch):
    """Pasted on a machine without a GPU, where nobody has set the variable."""
    monkeypatch.delenv("TRITON_INTERPRET")
    name, triton = 'os.environ["TRITON_INTERPRET"]', "import triton\n"
    texts = [t for t in programs("kernels/memory-bound.md") if name in t]
    assert all(t.index(name) < t.index(triton) for t in texts if triton in t)
    text = min((text for text in texts if "[grid](" in text), key=len)
    path = tmp_path / "pasted.py"
    path.write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def cells(parts: self_contained.Parts) -> list[int]:
    return [part for part in parts if isinstance(part, int)]


def test_a_block_brings_what_it_needs_and_no_more():
    sources = [
        "import torch\nfrom torch import Tensor, nn\n\nd = 4  # (1)!",
        "unused = torch.ones(d)",
        "def twice(x: Tensor) -> Tensor:\n    return double * x\n\n\ndouble = 2",
        "torch.manual_seed(0)\nx = torch.randn(d)",
        "x = twice(x)\nprint([y for y in x], sum(x))",
        "import math\nprint(math.pi)",
    ]
    copies = self_contained.copies(sources)
    assert [cells(parts) for parts in copies] == [
        [0],
        [0, 1],
        [2],
        [0, 3],
        [0, 2, 3, 4],
        [0, 3, 5],
    ]
    assert self_contained.program(sources, copies[2]) == (
        "from torch import Tensor\n\n\n"
        "def twice(x: Tensor) -> Tensor:\n    return double * x\n\n\ndouble = 2\n"
    )
    assert self_contained.program(sources, copies[0]) == "d = 4\n"
    assert "import torch\nimport math" in copies[5]


@pytest.mark.parametrize(
    ("source", "asked"),
    [
        ("x = x + 1", {"x"}),
        ("x += 1", {"x"}),
        ("x = 1\nx += y", {"y"}),
        ("def f(a, *b, c=d, **e):\n    g = a\n    return g, h", {"d", "h"}),
        ("f = lambda a: a + b", {"b"}),
        (
            "class A(B):\n    c = D\n\n    def e(self):\n        return later()",
            set("BD"),
        ),
        ("for i in range(n):\n    print(i)", {"n"}),
        ("with open(path) as file:\n    file.read()", {"path"}),
        ("y = [i for i in row if i]", {"row"}),
        ("for i in n:\n    x = x + i", {"n", "x"}),
        ("for i in n:\n    print(x)\n    x = i", {"n", "x"}),
        ("while x:\n    x = 0", {"x"}),
        ("if b:\n    x = 1\nprint(x)", {"b", "x"}),
        ("if b:\n    x = 1\nelse:\n    print(x)", {"b", "x"}),
        ("try:\n    x = b\nexcept OSError:\n    print(x)", {"b", "x"}),
        ("x.append(1)\nx = []", {"x"}),
    ],
)
def test_names_that_a_block_takes_from_elsewhere(source, asked):
    setting = "row = n = path = y = x = h = d = b = B = D = later = i = a = 1"
    names = asked | ({"later"} if "later" in source else set())
    found = self_contained.copies([f"{name} = 1" for name in sorted(names)] + [source])[
        -1
    ]
    assert cells(found) == list(range(len(names) + 1))
    assert cells(self_contained.copies([setting, source])[-1])[-1] == 1


@pytest.mark.parametrize(
    "source",
    [
        "for x in [1]:\n    print(x)",
        "for i in [1]:\n    x = i\n    print(x)\nprint(x)",
        "for y in [1]:\n    for x in [y]:\n        print(x)",
        "with open('f') as x:\n    print(x.read())",
        "if print():\n    x = 1\nelse:\n    x = 2\nprint(x)",
        "x = []\nx.append(1)\nx[0] = 2",
        "def f(x):\n    y = x\n    return y",
    ],
)
def test_a_name_that_a_block_binds_first_brings_nothing(source):
    earlier = ["x = 1\nprint(x)", "y = 1\nprint(y)"]
    assert cells(self_contained.copies([*earlier, source])[-1]) == [2]


def test_a_reused_name_does_not_act_on_its_earlier_object():
    sources = ["x = [1]", "total = sum(x)", "x = []\nx.append(2)", "print(total)"]
    assert cells(self_contained.copies(sources)[-1]) == [0, 1, 3]
    sources[2] = "x.append(2)"
    assert cells(self_contained.copies(sources)[-1]) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("source", "seeded"),
    [
        ("def f():\n    return torch.rand(1)", False),
        ("class A:\n    def f(self):\n        return torch.rand(1)", False),
        ("f = lambda: torch.rand(1)", False),
        ("WIDTH = 4 * 2", False),
        ("def f(x=torch.rand(1)):\n    return x", True),
        ("class A:\n    x = torch.rand(1)", True),
        ("x = torch.rand(1)", True),
    ],
)
def test_a_seed_comes_along_where_something_is_called(source, seeded):
    first = "import torch\n\ntorch.manual_seed(0)\nprint(torch.rand(1))"
    found = self_contained.copies([first, source, "x = f()"])
    assert cells(found[1]) == [0, 1][not seeded :]
    assert cells(found[2])[0] == 0


def test_a_page_is_one_program():
    sources = ["import torch\n\nx = torch.ones(1)", "import os\nos.environ['A'] = '1'"]
    sources += ["print(x)"]
    assert self_contained.whole(sources) == ["import os", 1, "import torch", 0, 2]
