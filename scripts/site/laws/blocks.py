"""Every block of code that readers see is an embed, an output, a change or a check.

Reads the built pages: whatever looks like a block there, by Markdown, by HTML or by
data, must be one that the tests run.
"""

import html
import json
import re
from functools import cache
from pathlib import Path

from scripts.site.data import claims, reference_lists
from scripts.site.questions import interview, interview_pages
from scripts.site.reading.source import LANGUAGES, ROOT, embedded, fences

PRE = re.compile(r"<pre\b[^>]*>(?P<text>.*?)</pre\s*>", re.DOTALL | re.IGNORECASE)
CODE = re.compile(r"<code\b[^>]*>(?P<text>.*?)</code\s*>", re.DOTALL | re.IGNORECASE)
TAG = re.compile(r"<[^>]*>")
LONGEST = 90  # characters of code within a sentence
# Of the atlas: names, equations and messages as its record has them, one a line.
RECORDED = re.compile(r"\w+/practice/(?:blocks-\w-\w|model-atlas)(?:/|\.html)")
CHANGES = "reference/rejected"  # shows the known-wrong variants that the tests compile
LISTED = re.compile(r"</code><br\s*/?><code")
COMMAND = "python scripts/build.py measure "
# What looks like a block and is none of the above.
LIKE = re.compile(
    r"<(?:xmp|listing|plaintext|textarea|samp|kbd)\b|white-space:|font-family:"
    r"|</code>\s*<br\b[^>]*>\s*<code\b|(?:`|&#96;){3}|(?:~|&#126;){3}",
    re.IGNORECASE,
)


def problems(site: Path) -> list[str]:
    """'page: what' for each block of a built site that no test runs."""
    found = []
    for language in LANGUAGES:
        for path in sorted((site / language).rglob("*.html")):
            name = path.relative_to(site / language).as_posix()
            shown = known(name, language) | checks()
            text = path.read_text(encoding="utf-8")
            where = f"{language}/{name}"
            recorded = bool(RECORDED.match(where))
            found += [f"{where}: {what}" for what in problems_of(text, shown, recorded)]
    for path in sorted(site.glob("*.html")):
        text = path.read_text(encoding="utf-8")
        found += [f"{path.name}: {what}" for what in problems_of(text, frozenset())]
    return found


def problems_of(page: str, shown: frozenset[str], recorded: bool = False) -> list[str]:
    """What looks like code in a page and is not among what may be shown there."""
    found = []
    for block in PRE.finditer(page):
        text = _plain(block["text"])
        if text not in shown:
            found.append(f"a block that nobody runs: {text[:60]!r}")
    rest = PRE.sub("", page)
    if recorded:
        rest = LISTED.sub("", rest)
    for code in CODE.finditer(rest):
        text = _plain(code["text"])
        long = len(text) > LONGEST and not (recorded or text.startswith(COMMAND))
        if "\n" in text or long:
            found.append(f"a block in a sentence: {text[:60]!r}")
    found += [f"looks like a block: {like[0]!r}" for like in LIKE.finditer(rest)]
    return found


def _plain(text: str) -> str:
    """The words of a block, as its source has them."""
    lines = html.unescape(TAG.sub("", text)).strip("\n").splitlines()
    return "\n".join(line.rstrip() for line in lines)


def known(name: str, language: str) -> frozenset[str]:
    """What a page's own source shows: embeds, or the cells of a lab and their outputs.

    name  the page's file below its language
    """
    stem = name.removesuffix(".html").removesuffix("/index")
    lab = ROOT / "docs" / "figures" / language / f"{stem}.ipynb"
    if lab.is_file():
        return _of_notebook(lab)
    if stem == CHANGES:
        return frozenset(map(_plain_of, reference_lists.differences()))
    pages = ROOT / "docs" / language / "pages"
    for page in (pages / f"{stem}.md", pages / stem / "index.md"):
        if page.is_file():
            of = fences(page.read_text(encoding="utf-8"))
            return frozenset(_plain_of(embedded(*f.embed)) for f in of if f.embed)
    return frozenset()


def _plain_of(code: str) -> str:
    return "\n".join(line.rstrip() for line in code.strip("\n").splitlines())


def _of_notebook(path: Path) -> frozenset[str]:
    found = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            found.append("".join(cell["source"]))
            for output in cell["outputs"]:
                said = output.get("text") or output.get("data", {}).get("text/plain")
                found.append("".join(said or ""))
    return frozenset(map(_plain_of, found))


@cache
def checks() -> frozenset[str]:
    """The tests that pages show beside what they decide."""
    of_claims = (
        claims.check_source(topic, row)
        for topic, row in claims.everything()
        if row.get("check")
    )
    of_items = (
        interview_pages.check_source(group, row)
        for group, row in interview.items()
        if row.get("check")
    )
    return frozenset(map(_plain_of, (*of_claims, *of_items)))
