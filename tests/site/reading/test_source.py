"""What every reader of a page's source sees: fences, sections, headings, names."""

import ast
import os

import pytest

from scripts.site.reading import source
from scripts.site.reading.source import Fence, Heading, SourceError

PAGE = """---
title: A title
---
# One { #one }

```python
--8<-- "a/b.py:part"
```

- item

    ~~~~text
    # no heading
    ```
      deep
    ~~~~

## Two  words { #two }
### Three
####### seven
"""


def test_fences_are_found_whatever_they_are():
    first, second = source.fences(PAGE)
    assert first == Fence("python", '--8<-- "a/b.py:part"', 6, 8, 0, "```")
    assert first.embed == ("a/b.py", "part")
    assert second == Fence("text", "# no heading\n```\n  deep", 12, 16, 4, "~~~~")
    assert second.embed is None


@pytest.mark.parametrize(
    ("body", "embed"),
    [
        ('--8<-- "a.py"', ("a.py", None)),
        ('\n  --8<-- "a.py:b"  \n', ("a.py", "b")),
        ('--8<-- "a.py"\n--8<-- "b.py"', None),
        ("x = 1", None),
    ],
)
def test_an_embed_is_alone_in_its_fence(body, embed):
    assert Fence("python", body, 1, 3, 0, "```").embed == embed


def test_a_closing_fence_is_as_long_as_the_opening_one():
    (found,) = source.fences("````\n```\n`````")
    assert (found.body, found.end) == ("```", 3)
    with pytest.raises(SourceError, match="line 2: fence is never closed"):
        source.fences("a\n```\n``` python\n")


def test_front_matter_and_what_is_without_it():
    assert source.front_matter(PAGE) == {"title": "A title"}
    blank = source.without_front_matter(PAGE)
    assert blank.splitlines()[:4] == ["", "", "", "# One { #one }"]
    assert len(blank.splitlines()) == len(PAGE.splitlines())


def test_headings_outside_fences():
    assert source.headings(PAGE) == [
        Heading(1, "One", "one", 4),
        Heading(2, "Two  words", "two", 18),
        Heading(3, "Three", None, 19),
    ]
    bare = source.without_fences(PAGE).splitlines()
    assert bare[5:8] == bare[11:16][:3] == ["", "", ""]
    assert bare[9] == "- item" and bare[15] == "" and len(bare) == 20


SNIPPET = """import a

# --8<-- [start:one]
    x = 1

    y = 2
# --8<-- [end:one]
z = 3
# --8<-- [start: two]

w = 4
# --8<-- [end: two]
"""


def test_sections_of_a_snippet(tmp_path):
    assert source.sections(SNIPPET) == {"one": "x = 1\n\ny = 2", "two": "w = 4"}
    (tmp_path / "b.py").write_text(SNIPPET, encoding="utf-8")
    assert source.embedded("b.py", "one", tmp_path) == "x = 1\n\ny = 2"
    whole = source.embedded("b.py", None, tmp_path)
    assert whole == "import a\n\n    x = 1\n\n    y = 2\nz = 3\n\nw = 4"
    for section, line in ((None, 1), ("one", 4), ("two", 11)):
        assert source.first_line("b.py", section, tmp_path) == line


@pytest.mark.parametrize(
    ("text", "section", "says"),
    [
        ("--8<-- [start:a]\n--8<-- [start:b]", "a", "b.py: line 2: section opens in"),
        ("--8<-- [start:a]\n--8<-- [end:b]", "a", "line 2: end of 'b', open is 'a'"),
        ("--8<-- [end:b]", "b", "b.py: line 1: end of 'b', open is None"),
        ("--8<-- [start:a]\nx", "a", "b.py: section 'a' is never closed"),
        ("--8<-- [start:a]\n--8<-- [end:a]\n" * 2, "a", "line 3: section 'a' twice"),
        ("x", "a", "no section 'a' in b.py"),
    ],
)
def test_bad_sections_are_one_line(text, section, says, tmp_path):
    (tmp_path / "b.py").write_text(text, encoding="utf-8")
    with pytest.raises(SourceError) as caught:
        source.embedded("b.py", section, tmp_path)
    assert says in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(SourceError, match=r"no snippet c\.py"):
        source.embedded("c.py", section, tmp_path)


@pytest.mark.parametrize(
    ("fence", "says"),
    [
        ('```python\n--8<-- "b.py"\n```', None),
        ('```text\n--8<-- "b.py:one"\n```', None),
        ('```py\n--8<-- "b.py"\n```', "line 2: fence '```py' would be skipped"),
        ('````python\n--8<-- "b.py"\n````', "line 2: fence '````python' would be"),
        ('~~~python\n--8<-- "b.py"\n~~~', "line 2: fence '~~~python' would be"),
        ("```python\nx = 1\n```", "line 2: a fence holds exactly one embed"),
        ('```python\n--8<-- "c.py"\n```', r"line 2: no snippet c\.py"),
        ('```python\n--8<-- "b.py:no"\n```', r"line 2: no section 'no' in b\.py"),
    ],
)
def test_a_fence_that_nobody_runs(fence, says, tmp_path):
    (tmp_path / "b.py").write_text(SNIPPET, encoding="utf-8")
    if says is None:
        source.check(f"a\n{fence}\n", tmp_path)
        return
    with pytest.raises(SourceError, match=says):
        source.check(f"a\n{fence}\n", tmp_path)


MODULE = '''"""Doc."""
import os, sys
from math import pi as PI, tau

from torch import nn

A, B = 1, tau
UNUSED = PI


def double(x):
    return 2 * x


@cached
def area(r):
    """Of a circle."""
    return double(PI) * r * r + A


class Net(nn.Module):
    def forward(self, x, os):
        return os
'''


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "m.py"
    path.write_text(MODULE, encoding="utf-8")
    return path


def test_a_function_as_it_stands(module, tmp_path):
    assert source.function(module, "double") == "def double(x):\n    return 2 * x"
    for path in (module, tmp_path / "none.py"):
        with pytest.raises(SourceError, match=rf"{path.name} has no none"):
            source.function(path, "none")
    module.write_text("def double(x):\n    return x + x", encoding="utf-8")
    assert source.function(module, "double").endswith("x + x")  # read again


def test_complete_is_all_that_a_name_needs(module):
    assert source.complete(module, "area") == (
        "from math import pi as PI, tau\n\n\n"
        "A, B = 1, tau\n\n\n"
        "def double(x):\n    return 2 * x\n\n\n"
        '@cached\ndef area(r):\n    """Of a circle."""\n'
        "    return double(PI) * r * r + A"
    )
    net = source.complete(module, "Net", "double")
    assert net.startswith("from torch import nn\n\n\ndef double(x):")
    assert net.endswith("    def forward(self, x, os):\n        return os")
    assert source.complete(module, "os") == "import os"
    both = source.complete(module, "tau", "nn")
    assert both == "from math import tau\n\nfrom torch import nn"  # a blank between
    with pytest.raises(SourceError, match=r"m\.py has no none"):
        source.complete(module, "area", "none")


def test_names_that_a_statement_gives_a_meaning():
    found = [source.bound(node) for node in ast.parse(MODULE).body]
    assert found == [
        [],
        ["os", "sys"],
        ["PI", "tau"],
        ["nn"],
        ["A", "B"],
        ["UNUSED"],
        ["double"],
        ["area"],
        ["Net"],
    ]


def test_imports_are_taken_out_and_written_again():
    nodes = source.imports(MODULE)
    assert [node.lineno for node in nodes] == [2, 3, 5]
    rest = source.without(MODULE, nodes)
    assert rest.startswith('"""Doc."""\n\n\nA, B') and "import" not in rest
    assert source.import_line(nodes[0], nodes[0].names[1:]) == "import sys"
    assert source.import_line(nodes[1], nodes[1].names) == (
        "from math import pi as PI, tau"
    )


@pytest.mark.parametrize(("length", "lines"), [(88, 1), (89, 4)])
def test_a_long_import_stands_on_several_lines(length, lines):
    name = "b" * (length - len("from a import c, "))
    (node,) = ast.parse(f"from a import c, {name}").body
    found = source.import_line(node, node.names)
    assert found.count("\n") + 1 == lines
    assert ast.dump(ast.parse(found)) == ast.dump(ast.parse(ast.unparse(node)))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x = a + 1", {"a"}),
        ("x = 1\ny = x", {"x"}),
        ("def f(a, b=c):\n    d = a\n    return d + e", {"c", "e"}),
        ("def top(a):\n    return a", set()),
        ("def f():\n    global g\n    g = 1\n    return g", {"g"}),
        ("[i for i in range(n)]", {"range", "n"}),
        ("class A(B):\n    c = d\n    def e(self):\n        return f", {"B", "d", "f"}),
    ],
)
def test_names_from_outside(text, names):
    assert source.global_names(text) == names


def test_stamps_are_sorted_and_change(tmp_path):
    paths = [tmp_path / name for name in ("b", "a")]
    for path in paths:
        path.write_text("")
    before = source.last_changed(paths)
    assert [path for path, _ in before] == sorted(paths)
    os.utime(paths[0], ns=(1, 1))
    assert source.last_changed(paths) != before
