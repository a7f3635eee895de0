"""One file that judges a reader's code with the coding tasks' own checks.

It needs torch and nothing else: no copy of the repository, no test runner. What it
holds is taken from the suites of the tasks and of the listings with a bug to spot, so
it is as strict as they are.
"""

import ast
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from textwrap import indent

from mkdocs.structure.files import File

from scripts.site.data import reference_lists
from scripts.site.pages import page_parts
from scripts.site.reading.files import read_yaml
from scripts.site.reading.source import (
    ROOT,
    SNIPPETS,
    SourceError,
    complete,
    embedded,
    imports,
    without,
)

PAGE, LISTINGS = "interview/coding.md", "interview/spot-the-bug.md"
URI = "interview/judge.py"
SUITES = ROOT / "tests" / "snippets"
CASES, JUDGING = SUITES / "coding" / "cases.py", SUITES / "judging.py"
SAME = ROOT / "tests" / "same_results.py"
HEAD = {
    "en": '''\
"""Judges norms that you wrote yourself. Needs Python 3.10 and torch; where a task says
so, NumPy or Triton.

    python judge.py layer_norm my_file.py   writes the task's stub into a new file,
                                            and judges the file once it is there
    python judge.py my_file.py              judges all that the file defines
    python judge.py                         lists the tasks

A listing of the page {spot} is a task too: python judge.py token_norm my_fix.py

Instead of the function a file may hold a module with weight (and bias):
LayerNorm(d, eps), RMSNorm(d, eps), GroupNorm(groups, channels, eps),
BatchNorm(d, eps, momentum) with running_mean and running_var,
MaskedBatchNorm(d, eps), called with x and mask,
AddRMSNorm(d, eps), called with x and residual, and
QKNormAttention(width) with q_norm and k_norm, called with q, k and v.

Made from the tests of the page {page}
"""\
''',
    "zh": '''\
"""评判你自己写的归一化。只需要 Python 3.10 和 torch；标明的题目另需 NumPy 或 Triton。

    python judge.py layer_norm my_file.py   把题面代码写入新文件；
                                            文件已经有了，就评判它
    python judge.py my_file.py              评判文件里定义了的所有题
    python judge.py                         列出所有题目

页面{spot}里的代码也是题目：python judge.py token_norm my_fix.py

可以写函数，也可以写带 weight（和 bias）的模块：
LayerNorm(d, eps)、RMSNorm(d, eps)、GroupNorm(groups, channels, eps)；
BatchNorm(d, eps, momentum)，带 running_mean 和 running_var；
MaskedBatchNorm(d, eps)，调用时传 x 和 mask；
AddRMSNorm(d, eps)，调用时传 x 和 residual；
QKNormAttention(width)，带 q_norm 和 k_norm，调用时传 q、k、v。

由页面{page}的测试生成。
"""\
''',
}
TAIL = '''

os.environ.setdefault("TRITON_INTERPRET", "1")  # kernels run on the CPU


def check(name, sound=False):
    """In a notebook: judges what its cells define. sound: a listing has no fault."""
    judge_cells(name, TASKS, sound)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], TASKS))
'''
LINK, MARKS = re.compile(r"\[([^\]]*)\]\([^)]*\)"), re.compile(r"\*\*|\$")
LETTERS = {"alpha": "α", "beta": "β", "gamma": "γ", "varepsilon": "ε", "sqrt": "√"}
SUITE = re.compile(r"tests\.snippets\.coding\.test_(\w+)")
POINT = re.compile(r"^- (.*)", re.MULTILINE)


def add(files, config) -> None:
    """Publish the judge beside the page of its tasks, where the site has it."""
    if files.get_file_from_path(PAGE) is None:
        return
    language, site_url = config.theme["language"], config.site_url or "/"
    content = text(language, site_url)
    files.append(File.generated(config, URI, content=content))


def tasks() -> list[str]:
    """The names of the coding tasks."""
    stubs = (SNIPPETS / "coding").glob("*_stub.py")
    return sorted(path.stem.removesuffix("_stub") for path in stubs)


def listings() -> list[str]:
    """The names of the listings in which one looks for a bug."""
    return sorted(path.stem for path in (SNIPPETS / "spot_the_bug").glob("*.py"))


def on_page(uri: str) -> list[str]:
    """The tasks of a page, none for most."""
    return {PAGE: tasks, LISTINGS: listings}.get(uri, list)()


def name_of(file: str | None) -> str | None:
    """The task that a snippet sets, for readers to go on from."""
    room, _, name = (file or "").removesuffix(".py").partition("/")
    if room == "coding" and name.endswith("_stub"):
        return name.removesuffix("_stub")
    return name if room == "spot_the_bug" else None


def text(language: str, site_url: str, names: list[str] | None = None) -> str:
    """The judge's source; what a success says is the page's own, in its language."""
    names = names or [*tasks(), *listings()]
    learned = _learned(language, site_url)
    sources = [path.read_text("utf-8") for path in (CASES, JUDGING, SAME)]
    sources += [_checks(name) for name in names]
    own = ["tests", "snippets"]
    lines = {"import os": None}
    lines |= {line: None for source in sources for line in _imports(source, own)}
    data = "".join(_task(name, learned[name], language) for name in names)
    page, spot = (
        page_parts.whereabouts(p, language, site_url) for p in (PAGE, LISTINGS)
    )
    return (
        "\n\n\n".join(
            [
                HEAD[language].format(page=page, spot=spot),
                "\n".join(sorted(lines, key=lambda line: (line[:4] == "from", line))),
                _code(sources[1]),
                *_said(language),
                _code(sources[0]),
                _code(complete(SAME, "on_views")),
                *(_function(name) for name in names),
                f"TASKS = {{\n{data}}}",
            ]
        )
        + TAIL
    )


def _said(language: str) -> list[str]:
    """What the judge says, where that is not English."""
    if language == "en":
        return []
    lines = "".join(
        f"    {english!r}: {other!r},\n"
        for english, other in read_yaml(ROOT / "docs" / "data" / "judge.yml").items()
    )
    return [f"SAID.update({{\n{lines}}})"]


def _is_listing(name: str) -> bool:
    return (SNIPPETS / "spot_the_bug" / f"{name}.py").is_file()


def _suite(name: str) -> Path:
    room = "spot_the_bug" if _is_listing(name) else "coding"
    return SUITES / room / f"test_{name}.py"


def _checks(name: str) -> str:
    """A task's checks with all that they need of their suite."""
    return complete(_suite(name), *_given(name))


def _given(name: str) -> list[str]:
    """The checks, and for a listing with a bug the usual test, which its fix passes."""
    usual = "\ndef usual(" in _suite(name).read_text("utf-8")
    return ["CHECKS", "usual"] if usual else ["CHECKS"]


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
    given = "[*CHECKS, usual]" if "usual" in _given(name) else "CHECKS"
    checks = _checks(name)
    others = [
        f"{alias.asname} = {suite[1]}_task()\n"
        for node in imports(checks)
        if (suite := SUITE.match(getattr(node, "module", "")))
        for alias in node.names
    ]
    body = indent(f"{''.join(others)}{_code(checks)}\n\nreturn {given}", "    ")
    return f"def {name}_task():\n{body}"


def _task(name: str, learned: str, language: str) -> str:
    suite = _parsed(_suite(name).read_text("utf-8"))
    named = {
        node.targets[0].id: node.value
        for node in suite.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    listing = _is_listing(name)
    file = f"spot_the_bug/{name}.py" if listing else f"coding/{name}_stub.py"
    judged = named["LISTING" if listing else "JUDGED"].id
    rejected = () if listing else _rejected(f"{name}.{judged}", language)
    fields = {
        "judged": repr(judged),
        "checks": f"{name}_task",
        "rejected": repr(rejected),
        "learned": repr(learned),
        "stub": repr(_stub(file)),
        "listing": repr(listing),
    }
    arguments = "".join(f"        {key}={a},\n" for key, a in fields.items())
    return f"    {name!r}: Task(\n{arguments}    ),\n"


def _rejected(suite: str, language: str) -> tuple[str, ...]:
    """What each wrong version of a task gets wrong; in English its name says it."""
    described = reference_lists.rejected_data()["coding"][suite]
    if language == "en":
        return tuple(map(_words, described))
    return tuple(text[language] for text in described.values())


def _stub(file: str) -> str:
    """A stub or listing, with the snippets that it imports in place of the imports."""
    text = embedded(file)
    own = SNIPPETS.name
    given = [n for n in imports(text) if getattr(n, "module", "").split(".")[0] == own]
    parts = [
        complete(ROOT.joinpath(*node.module.split(".")).with_suffix(".py"), alias.name)
        for node in given
        for alias in node.names
    ]
    held = {ast.unparse(node) for part in parts for node in imports(part)}
    again = [node for node in imports(text) if ast.unparse(node) in held]
    return "\n\n\n".join([*parts, without(text, [*given, *again])]) + "\n"


def _words(name: str) -> str:
    """unbiased_variance and AlphaOnTheBranch as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name).lower()


def plain(text: str) -> str:
    """A line of a page as a terminal shows it: no marks, formulas as one types them."""
    text = re.sub(r"\^\{([^}]*)\}", r"^(\1)", MARKS.sub("", text))
    for name, letter in LETTERS.items():
        text = text.replace(f"\\{name}", letter)
    return re.sub(r"\\([a-z]+)", r"\1", re.sub(r"√\{(\w+)\}", r"√\1", text))


@cache
def _learned(language: str, site_url: str) -> dict[str, str]:
    """The point of each task: the first line below its solution on the page, and the
    second of the answer below a listing, which says why.
    """
    found = {}
    for page, names in ((PAGE, tasks()), (LISTINGS, listings())):
        path = ROOT / "docs" / language / "pages" / page
        for part, following in pairwise(page_parts.parts(path, language, site_url)):
            name = Path(part.file or "").stem
            if part.kind == "code" and name in names:
                points = POINT.findall(following.text)
                point = points[1 if page == LISTINGS else 0]
                found[name] = plain(LINK.sub(r"\1", point))
        if missing := set(names) - set(found):
            raise SourceError(f"{page} has no solution of {', '.join(sorted(missing))}")
    return found
