"""Every fence is one embed of a file that the tests run."""

import re
import textwrap
from pathlib import Path

import pytest

from scripts.site.reading import source
from tests.browser.page_length import is_topical

SKIP = re.compile(r"<!-- *skip\b.*")
REASON = re.compile(r"<!-- skip: \S.* -->")
ANNOTATION = re.compile(r"# \((\d+)\)!$", re.MULTILINE)
KIND = {".py": "python", ".out": "text"}
FOLDERS = {  # of pages that show another page's files, as the halves of a split one do
    "triton-rms-norm-backward": ["triton-rms-norm"],
    "triton-rms-norm-launch": ["triton-rms-norm"],
    "triton-rms-norm-operator": ["triton-rms-norm"],
    "qk-clip": ["qk-norm"],
    "qk-norm": ["qk-norm", "coding"],
}
MOST_CODE = 25  # lines of a block in sight, blank ones aside; the rest folds


def violations(text: str, slug: str, snippets: Path) -> list[str]:
    """What is wrong with the fences of one page, 'line: what' each."""
    found, shown, last = [], set(), None
    lines = ["", *text.splitlines(), ""]
    try:
        fences = source.fences(text)
    except source.SourceError as error:
        return [f"1: {error}"]
    for fence in fences:
        problems = [*form(fence, slug), *repeated(fence, shown)]
        if not problems:
            problems += resolution(fence, snippets, last)
            problems += notes(fence, lines, snippets)
        last = fence.embed
        found += [f"{fence.line}: {problem}" for problem in problems]
    return found + outputs_left_out(shown, snippets) + skips(lines, text)


def form(fence: source.Fence, slug: str):
    if fence.mark != "```":
        yield f"fence of {fence.mark!r}, not three backticks"
    if fence.info not in KIND.values():
        yield f"info string {fence.info!r}, not 'python' or 'text'"
    if fence.embed is None:
        yield "holds something else than one embed"
        return
    file = Path(fence.embed[0])
    if KIND.get(file.suffix) != fence.info:
        yield f"{file.suffix} in a {fence.info} fence"
    folders = [name.replace("-", "_") for name in FOLDERS.get(slug, [slug])]
    if file.parent.as_posix() not in folders:
        yield f"{file} is not in the page's folder {' or '.join(folders)}"


def repeated(fence: source.Fence, shown: set):
    if fence.embed and fence.embed in shown:
        yield f"{fence.embed[0]} is embedded twice"
    shown.add(fence.embed)


def resolution(fence, snippets: Path, last: tuple[str, str | None] | None):
    file, section = fence.embed
    try:
        source.embedded(file, section, snippets)
        if file.endswith(".py"):
            if section is None and names(file, snippets):
                yield f"{file} has sections: embed each by its name"
            return
        program = Path(file).with_suffix(".py").as_posix()
        if last != (program, [None, *names(program, snippets)][-1]):
            yield f"{file} is not under the last block of {program}"
    except source.SourceError as error:
        yield str(error)


def names(file: str, snippets: Path) -> list[str]:
    path = snippets / file
    if not path.is_file():
        raise source.SourceError(f"no snippet {file}")
    return list(source.sections(path.read_text(encoding="utf-8")))


def notes(fence: source.Fence, lines: list[str], snippets: Path):
    """Marks ``# (1)!`` count up; a list of as many items follows the block."""
    try:
        marks = ANNOTATION.findall(source.embedded(*fence.embed, snippets))
    except source.SourceError:
        return
    items = 0
    for line in lines[fence.end + 1 :] if marks else ():
        items += bool(item := re.match(r" *\d+\. ", line))
        if line.strip() and not item and not (items and line.startswith(" ")):
            break
    if sorted(marks, key=int) != [str(n + 1) for n in range(items)]:
        yield f"{len(marks)} marked lines, a list of {items} under the block"


def outputs_left_out(shown: set, snippets: Path) -> list[str]:
    programs = {file for file, _ in filter(None, shown) if file.endswith(".py")}
    outputs = {Path(file).with_suffix(".out").as_posix() for file in programs}
    left_out = outputs - {file for file, _ in filter(None, shown)}
    missing = sorted(file for file in left_out if (snippets / file).is_file())
    return [f"1: {file} is not shown" for file in missing]


def skips(lines: list[str], text: str) -> list[str]:
    opening = {fence.line for fence in source.fences(text) if fence.info == "python"}
    return [
        f"{number}: a skip is <!-- skip: reason --> right above a Python fence"
        for number, line in enumerate(lines)
        if SKIP.match(line.strip())
        and not (REASON.fullmatch(line.strip()) and number + 1 in opening)
    ]


def too_long(text: str, snippets: Path) -> list[str]:
    """Blocks of code in sight of a reader who opens nothing that should fold."""
    found, lines = [], text.splitlines()
    for fence in source.fences(text):
        if fence.info == "python" and fence.embed and not folded(fence, lines):
            code = source.embedded(*fence.embed, snippets).splitlines()
            count = sum(bool(line.strip()) for line in code)
            if count > MOST_CODE:
                found.append(
                    f"{fence.line}: {count} lines in sight, at most {MOST_CODE}"
                )
    return found


def folded(fence: source.Fence, lines: list[str]) -> bool:
    """Whether a fence stands within ``???``, at any depth."""
    indent = fence.indent
    for line in reversed(lines[: fence.line - 1]):
        margin = len(line) - len(line.lstrip())
        if line.strip() and margin < indent:
            indent = margin
            if line.lstrip().startswith("??? "):
                return True
    return False


def teaches(path: str) -> bool:
    """Whether a page as practice/norm-probe.md has to fold its long code."""
    return path.startswith("practice/") or is_topical(f"en/{path}")


def test_code_in_sight_is_short(page, no_violations):
    if teaches(page.path):
        found = too_long(page.text, source.SNIPPETS)
        no_violations(f"{page.where}:{v}" for v in found)


def test_pages(page, no_violations):
    found = violations(page.text, Path(page.path).stem, source.SNIPPETS)
    no_violations(f"{page.where}:{v}" for v in found)


@pytest.fixture
def snippets(tmp_path) -> Path:
    files = {
        "a_b/parts.py": (
            "# --8<-- [start:one]\none = 1  # (1)!\n# --8<-- [end:one]\n"
            "# --8<-- [start:two]\nprint(one)\n# --8<-- [end:two]\n"
        ),
        "a_b/parts.out": "1\n",
        "a_b/whole.py": "x = 1\n",
        "other/far.py": "x = 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def fence(embed: str, info: str = "python", mark: str = "```") -> str:
    return f'{mark}{info}\n--8<-- "{embed}"\n{mark}\n\n'


ONE = fence("a_b/parts.py:one") + "1. Why one.\n\n"
GOOD = ONE + fence("a_b/parts.py:two") + fence("a_b/parts.out", "text")


def test_good(snippets):
    assert violations(GOOD + fence("a_b/whole.py"), "a-b", snippets) == []
    folded = '??? note "More"\n    ```python\n    --8<-- "a_b/whole.py"\n    ```\n'
    assert violations(folded, "a-b", snippets) == []
    skip = "<!-- skip: needs a GPU -->\n" + fence("a_b/whole.py")
    assert violations(skip, "a-b", snippets) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (fence("a_b/whole.py", "py"), "1: info string 'py'"),
        (fence("a_b/whole.py", " python"), "1: info string ' python'"),
        (fence("a_b/whole.py", 'python title="x"'), "1: info string"),
        (fence("a_b/whole.py", "bash"), "1: info string 'bash'"),
        (fence("a_b/whole.py", mark="~~~"), "1: fence of '~~~'"),
        (fence("a_b/whole.py", mark="````"), "1: fence of '````'"),
        ("```python\nx = 1\n```\n", "1: holds something else"),
        ("```python\nx = 1\n", "1: line 1: fence is never closed"),
        (fence("a_b/whole.py:1:2"), "1: holds something else"),
        (fence("a_b/whole.py", "text"), "1: .py in a text fence"),
        (fence("other/far.py"), "1: other/far.py is not in the page's folder a_b"),
        (fence("a_b/whole.py") * 2, "5: a_b/whole.py is embedded twice"),
        (fence("a_b/none.py"), "1: no snippet a_b/none.py"),
        (fence("a_b/whole.py:none"), "1: no section 'none'"),
        (fence("a_b/parts.py"), "1: a_b/parts.py has sections"),
        (ONE + fence("a_b/parts.out", "text"), "7: a_b/parts.out is not under"),
        (ONE + fence("a_b/parts.py:two"), "1: a_b/parts.out is not shown"),
        (fence("a_b/parts.py:one"), "1: 1 marked lines, a list of 0"),
        (ONE + "2. Too much.\n", "1: 1 marked lines, a list of 2"),
        ("<!-- skip -->\n" + fence("a_b/whole.py"), "1: a skip is"),
        ("<!-- skip: why -->\n\n" + fence("a_b/whole.py"), "1: a skip is"),
    ],
)
def test_bad(snippets, text, says):
    assert any(v.startswith(says) for v in violations(text, "a-b", snippets))


def test_a_planted_long_block_fails_unless_it_folds(snippets):
    long = "\n\n".join(["x = 1"] * MOST_CODE) + "\n"
    (snippets / "a_b/long.py").write_text(long)
    block = fence("a_b/long.py")
    assert too_long(block, snippets) == []
    (snippets / "a_b/long.py").write_text(long + "x = 1\n")
    says = f"lines in sight, at most {MOST_CODE}"
    assert too_long(block, snippets) == [f"1: {MOST_CODE + 1} {says}"]
    inside = indented(block)
    assert too_long(f'??? note "More"\n{inside}', snippets) == []
    assert too_long(f'??? note "A"\n    !!! tip\n{indented(inside)}', snippets) == []
    for opening in ('???+ note "More"', '!!! note "More"', "1. An item"):
        assert len(too_long(f"{opening}\n{inside}", snippets)) == 1


def test_practice_and_topics_fold_and_interviews_show():
    assert teaches("practice/norm-probe.md") and teaches("rmsnorm/rms-norm.md")
    assert not teaches("index.md") and not teaches("interview/coding.md")


def indented(text: str) -> str:
    return textwrap.indent(text, "    ")
