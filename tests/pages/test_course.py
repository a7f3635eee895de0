"""A chapter of the course: a picture, a guess, short code, a sentence, the next one."""

import re

import pytest

from scripts.site.reading import source
from tests.pages.page_prose import EN, ZH, Page, nav, paragraphs

INDEX = "learn/index.md"
CHAPTERS = [path for path in nav("en") if path.startswith("learn/") and path != INDEX]
IN_ORDER = ("guess", "code", "sentence", "next")  # others may stand between
PICTURE = re.compile(r"^\[\[ (?:diagrams|explore|figures)\.\w+ \]\]$", re.MULTILINE)
FOLD = re.compile(r"^\?\?\? success ", re.MULTILINE)
MOST_CODE = 15  # lines that are not blank
SENTENCE = {"zh": 80, "en": 40}  # characters; words


def violations(text: str, path: str, lang: str, chapters: list[str]) -> list[str]:
    """What a chapter lacks, or has too much of."""
    found, slug = [], path.removeprefix("learn/").removesuffix(".md")
    parts = sections(text)
    ids = list(parts)
    if [name for name in ids if name in IN_ORDER] != list(IN_ORDER):
        return [f"sections {ids} without {IN_ORDER} in order"]
    if ids[0] != slug or ids[-1] != "next":
        found.append(f"begins at #{ids[0]} and ends at #{ids[-1]}")
    if (count := len(PICTURE.findall(text))) != 1:
        found.append(f"{count} pictures, not one")
    if len(FOLD.findall(parts["guess"])) != 1 or parts["guess"].startswith("???"):
        found.append("#guess is not a question and one folded answer")
    code = [f for f in source.fences(text) if f.info == "python"]
    if len(code) != 1:
        found.append(f"{len(code)} blocks of code, not one")
    for fence in code:
        shown = source.embedded(*fence.embed) if fence.embed else fence.body
        if (lines := sum(bool(s.strip()) for s in shown.splitlines())) > MOST_CODE:
            found.append(f"{lines} lines of code, at most {MOST_CODE}")
    found += sentence(parts["sentence"], lang)
    at = chapters.index(path) + 1
    follows = chapters[at] if at < len(chapters) else INDEX
    last = parts["next"].strip().splitlines()[-1]
    if f"]({follows.removeprefix('learn/')})" not in last:
        found.append(f"the last line does not lead to {follows}")
    for mark in (
        f'<course-progress data-of="{len(chapters)}" data-chapter="{slug}">',
        f'<course-done data-chapter="{slug}"></course-done>',
    ):
        if text.count(mark) != 1:
            found.append(f"no {mark}")
    if source.front_matter(text).get("script") != "course.js":
        found.append("no script: course.js")
    return found


def sections(text: str) -> dict[str, str]:
    """The text under each heading, by its id."""
    lines, heads = text.splitlines(), source.headings(text)
    ends = [head.line - 1 for head in heads[1:]] + [len(lines)]
    return {
        head.id: "\n".join(lines[head.line : end]).strip()
        for head, end in zip(heads, ends, strict=True)
    }


def sentence(part: str, lang: str) -> list[str]:
    """A quotation of one sentence that can be kept in mind."""
    if not part.startswith("> ") or "\n" in part:
        return ["#sentence is not one quoted line"]
    (said,) = paragraphs(part)
    length = len(said.text if lang == "zh" else said.text.split())
    if length > SENTENCE[lang]:
        return [f"#sentence of {length}, at most {SENTENCE[lang]}"]
    stops = re.findall(r"[。！？]|[.!?](?:\s|$)", said.text)
    return [] if len(stops) == 1 else ["#sentence is not one sentence"]


@pytest.mark.parametrize("path", CHAPTERS)
@pytest.mark.parametrize("pages", [ZH, EN], ids=["zh", "en"])
def test_chapters(path, pages, no_violations):
    page: Page = pages[path]
    no_violations(
        f"{page.where}: {v}" for v in violations(page.text, path, page.lang, CHAPTERS)
    )


def test_the_course_comes_first_and_is_whole():
    assert nav("en")[:2] == ["index.md", INDEX]
    for pages in (ZH, EN):
        listed = re.findall(r"^\d\. \[.*?\]\(([\w-]+\.md)\)", pages[INDEX].text, re.M)
        assert [f"learn/{file}" for file in listed] == CHAPTERS
        assert f'data-of="{len(CHAPTERS)}"' in pages[INDEX].text
        assert "](learn/index.md)" in pages["index.md"].text


GOOD = """---
title: One
script: course.js
---

# One { #one }

<course-progress data-of="2" data-chapter="one">[All](index.md)</course-progress>

[[ diagrams.a ]]

## Guess { #guess }

How many?

??? success "Answer"
    Two.

## Code { #code }

```python
x = 1
```

## Take along { #sentence }

> Two of them.

## Next { #next }

<course-done data-chapter="one"></course-done>

Next: [Two](two.md).
"""


def test_good():
    assert (
        violations(GOOD, "learn/one.md", "en", ["learn/one.md", "learn/two.md"]) == []
    )


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("[[ diagrams.a ]]", "", "0 pictures"),
        ("[[ diagrams.a ]]", "[[ diagrams.a ]]\n\n[[ explore.b ]]", "2 pictures"),
        ('??? success "Answer"\n    Two.', "Two.", "#guess is not"),
        ("How many?\n\n", "", "#guess is not"),
        ("{ #guess }", "{ #riddle }", "sections "),
        ("```python\nx = 1\n```", "", "0 blocks"),
        ("x = 1", "x = 1\n" * 16, "16 lines of code"),
        ("> Two of them.", "Two of them.", "#sentence is not one quoted"),
        ("> Two of them.", "> Two. Of them.", "#sentence is not one sentence"),
        ("> Two of them.", "> " + "word " * 50 + ".", "#sentence of "),
        ("](two.md)", "](three.md)", "the last line"),
        ('data-of="2"', 'data-of="3"', "no <course-progress"),
        ('done data-chapter="one"', "done", "no <course-done"),
        ("script: course.js", "description: x", "no script"),
        ("## Next", "## More { #more }\n\n## Next", ""),
        ("Next: [Two](two.md).", "## End { #end }\n\n[Two](two.md)", "begins at"),
    ],
)
def test_bad(old, new, says):
    assert old in GOOD
    chapters = ["learn/one.md", "learn/two.md"]
    found = violations(GOOD.replace(old, new, 1), "learn/one.md", "en", chapters)
    assert any(v.startswith(says) for v in found) if says else not found
