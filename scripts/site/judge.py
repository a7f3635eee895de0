"""One file that judges a reader's code with the coding tasks' own checks.

It needs torch and nothing else: no copy of the repository, no test runner. What it
holds is taken from the suites in tests/snippets/coding, so it is as strict as they are.
"""

import ast
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from textwrap import indent

from mkdocs.structure.files import File

from scripts.site import plain
from scripts.site.source import (
    ROOT,
    SNIPPETS,
    SourceError,
    complete,
    embedded,
    imports,
    without,
)

PAGE = "interview/coding.md"
URI = "interview/judge.py"
SUITES = ROOT / "tests" / "snippets" / "coding"
CASES, JUDGING = SUITES / "cases.py", SUITES.parent / "judging.py"
HEAD = '''\
"""Judges norms that you wrote yourself. Needs Python 3.10 and torch, nothing else.

    python judge.py layer_norm my_file.py   writes the task's stub into a new file,
                                            and judges the file once it is there
    python judge.py my_file.py              judges all that the file defines
    python judge.py                         lists the tasks

Instead of the function a file may hold a module with weight (and bias):
LayerNorm(d, eps), RMSNorm(d, eps), GroupNorm(groups, channels, eps).

Made from the tests of the page {page}
"""\
'''
TAIL = '\n\nif __name__ == "__main__":\n    sys.exit(main(sys.argv[1:], TASKS))\n'
LINK, MARKS = re.compile(r"\[([^\]]*)\]\([^)]*\)"), re.compile(r"\*\*|\$")


def add(files, config) -> None:
    """Publish the judge beside the page of its tasks, where the site has it."""
    if files.get_file_from_path(PAGE) is None:
        return
    language, site_url = config.theme["language"], config.site_url or "/"
    content = text(language, site_url)
    files.append(File.generated(config, URI, content=content))


def tasks() -> list[str]:
    return sorted(path.stem.removesuffix("_stub") for path in _stubs())


def text(language: str, site_url: str) -> str:
    """The judge's source; what a success says is the page's own, in its language."""
    learned = _learned(language, site_url)
    sources = [CASES.read_text("utf-8"), JUDGING.read_text("utf-8")]
    sources += [_checks(name) for name in tasks()]
    own = ["tests", "snippets"]
    lines = {line: None for source in sources for line in _imports(source, own)}
    data = "".join(_task(name, learned[name]) for name in tasks())
    return (
        "\n\n\n".join(
            [
                HEAD.format(page=plain.whereabouts(PAGE, language, site_url)),
                "\n".join(sorted(lines, key=lambda line: (line[:4] == "from", line))),
                *(_code(source) for source in sources[:2]),
                *(_function(name) for name in tasks()),
                f"TASKS = {{\n{data}}}",
            ]
        )
        + TAIL
    )


def _stubs() -> list[Path]:
    return sorted((SNIPPETS / "coding").glob("*_stub.py"))


def _suite(name: str) -> Path:
    return SUITES / f"test_{name}.py"


def _checks(name: str) -> str:
    """A task's checks with all that they need of their suite."""
    return complete(_suite(name), "CHECKS")


def _imports(source: str, own: list[str]) -> list[str]:
    return [
        ast.unparse(node)
        for node in imports(source)
        if getattr(node, "module", "").split(".")[0] not in own
    ]


def _code(source: str) -> str:
    """A module's text without its docstring and imports."""
    module = _parsed(source)
    first = module.body[:1] if ast.get_docstring(module) else []
    return without(source, [*first, *imports(source)])


@cache  # a live reload asks again
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def _function(name: str) -> str:
    body = indent(f"{_code(_checks(name))}\n\nreturn CHECKS", "    ")
    return f"def {name}_task():\n{body}"


def _task(name: str, learned: str) -> str:
    suite = _parsed(_suite(name).read_text("utf-8"))
    named = {
        node.targets[0].id: node.value
        for node in suite.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    rejected = tuple(_words(node.id) for node in named["VARIANTS"].elts)
    given = [named["JUDGED"].id, rejected, learned, _stub(name)]
    judged, *others = map(repr, given)
    arguments = "".join(f"        {a},\n" for a in (judged, f"{name}_task", *others))
    return f"    {name!r}: Task(\n{arguments}    ),\n"


def _stub(name: str) -> str:
    """A task's stub, with the snippets that it imports in place of the imports."""
    text = embedded(f"coding/{name}_stub.py")
    own = SNIPPETS.name
    given = [node for node in imports(text) if node.module.split(".")[0] == own]
    parts = [
        complete(ROOT.joinpath(*node.module.split(".")).with_suffix(".py"), alias.name)
        for node in given
        for alias in node.names
    ]
    return "\n\n\n".join([*parts, without(text, given)]) + "\n"


def _words(name: str) -> str:
    """unbiased_variance and AlphaOnTheBranch as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name).lower()


@cache
def _learned(language: str, site_url: str) -> dict[str, str]:
    """The point of each task: the first line below its solution on the page."""
    path = ROOT / "docs" / language / "pages" / PAGE
    parts, found = plain.parts(path, language, site_url), {}
    for part, following in pairwise(parts):
        if part.kind == "code" and Path(part.file).stem in tasks():
            point = following.text.lstrip().splitlines()[0].removeprefix("- ")
            found[Path(part.file).stem] = MARKS.sub("", LINK.sub(r"\1", point))
    if missing := set(tasks()) - set(found):
        raise SourceError(f"{PAGE} has no solution of {', '.join(sorted(missing))}")
    return found
