"""The form that every page has: front matter, headings, names, a topic's parts."""

import re

import pytest
import yaml

from scripts.site.publish.search import other_names
from scripts.site.reading import source
from tests.pages.page_prose import FACT, FORMULA, plain

ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
DESCRIPTION = {"en": (40, 200), "zh": (20, 100)}  # characters
PROMISE = {"en": "After this page you can", "zh": "读完本页，你能"}
LISTED = re.compile(r"^\*(?:Also called|又名)", re.MULTILINE)
ANSWER = {"en": '!!! abstract "Short answer"', "zh": '!!! abstract "简短回答"'}
LONGEST = {"en": 75, "zh": 120}  # words, Chinese characters
SENTENCES = 3
WORD = {"en": re.compile(r"\S*\w\S*"), "zh": re.compile("[\u4e00-\u9fff]")}
ENDS = re.compile(r"[.?!](?=\s|$)|[。？！]")
OURS = re.compile(r"(?i)\b(?:our|ours|we|us)\b|我们|本页|本站")  # what only we saw
FORMULAS = 40
RESERVED = {"references"}  # the build's own heading


def violations(text: str, lang: str, topical: bool) -> list[str]:
    """'line: what' for each part that is missing or out of form."""
    found = front_matter(text, lang) + headings(text)
    if (count := plain(text).count(FORMULA)) > FORMULAS:
        found.append(f"1: {count} formulas, at most {FORMULAS}")
    return found + (topic(text, lang) if topical else [])


def front_matter(text: str, lang: str) -> list[str]:
    match = source.FRONT_MATTER.match(text)
    try:
        fields = yaml.safe_load(match[1]) if match else None
    except yaml.YAMLError as error:
        return [f"1: front matter: {str(error).splitlines()[0]}"]
    if not isinstance(fields, dict) or not fields.get("title"):
        return ["1: front matter without a title"]
    low, high = DESCRIPTION[lang]
    length = len(str(fields.get("description") or ""))
    if not low <= length <= high:
        return [f"1: description of {length} characters, not {low} to {high}"]
    return []


def headings(text: str) -> list[str]:
    found, level, seen = [], 0, set(RESERVED)
    all_headings = source.headings(text)
    if [h.level for h in all_headings].count(1) != 1:
        found.append("1: not exactly one heading of level 1")
    for heading in all_headings:
        if heading.id is None or not ID.fullmatch(heading.id):
            found.append(f"{heading.line}: heading without {{ #english-id }}")
        elif heading.id in seen:
            found.append(f"{heading.line}: id {heading.id!r} twice")
        if heading.level > level + 1:
            found.append(f"{heading.line}: level {heading.level} under {level}")
        level = heading.level
        seen.add(heading.id)
    return found


def names(text: str) -> list[str]:
    """The search finds a page by ``also``; no page begins with a list of names."""
    try:
        known = other_names(source.front_matter(text))
    except source.SourceError as error:
        return [f"1: {error}"]
    found = [] if known else ["1: no also: [names that people type for it]"]
    return found + (["1: a line of names on the page"] if LISTED.search(text) else [])


def topic(text: str, lang: str) -> list[str]:
    heads = source.headings(text)
    ids = [heading.id for heading in heads]
    found = [f"1: no section #{i}" for i in ("limits", "questions") if i not in ids]
    if "questions" in ids and [h.id for h in heads if h.level == 2][-1] != "questions":
        found.append("1: #questions is not the last section")
    lines = source.without_fences(text).splitlines()
    opening = lines[heads[0].line : heads[1].line - 1] if len(heads) > 1 else lines
    promise = [i for i, s in enumerate(opening) if s.startswith(PROMISE[lang])]
    answer = [i for i, s in enumerate(opening) if s.startswith("!!!")]
    if not promise:
        found.append(f"1: no line {PROMISE[lang]!r} under the title")
    if not answer or opening[answer[0]].rstrip() != ANSWER[lang]:
        found.append(f"1: no box {ANSWER[lang]} before the first section")
    elif promise and promise[0] > answer[0]:
        found.append("1: the short answer stands before what the page promises")
    if answer:
        found += [f"1: short answer {what}" for what in unspeakable(text, lang)]
    return found


def unspeakable(text: str, lang: str) -> list[str]:
    """What keeps a page's short answer from being said aloud, and ours out of it."""
    box = re.search(r"^!!! .*\n((?: {4}.*\n|\n)+)", text, re.MULTILINE)
    said = plain(box[1]) if box else ""
    words, sentences = len(WORD[lang].findall(said)), len(ENDS.findall(said.strip()))
    found = []
    if words > LONGEST[lang]:
        found.append(f"of {words}, at most {LONGEST[lang]}")
    if sentences > SENTENCES or "\n\n" in said.strip():
        found.append(f"of {sentences} sentences or several paragraphs")
    if FACT in said or OURS.search(said):
        found.append("with a result of our runs, or with us")
    return found


def test_pages(page, no_violations):
    found = violations(page.text, page.lang, page.topical)
    # Home is found by the site's name, a subject by its own page, not by a chapter.
    if page.path != "index.md" and not page.course:
        found += names(page.text)
    no_violations(f"{page.where}:{v}" for v in found)


GOOD = """---
title: A subject
description: What this page answers, in one sentence for search engines.
---

# A subject { #a-subject }

What is it?

After this page you can say what it is.

!!! abstract "Short answer"
    It is $x$, not `$y$`.

## Formula { #formula }

$$
x^2
$$

### Detail { #detail }

## What this does not show { #limits }

## Questions this page settles { #questions }
"""
GOOD_ZH = (
    GOOD.replace("After this page you can", "读完本页，你能")
    .replace("Short answer", "简短回答")
    .replace("What this page answers, in one", "这一页回答它是什么、为什么、怎么用。")
)


def test_good():
    assert violations(GOOD, "en", topical=True) == []
    assert violations(GOOD_ZH, "zh", topical=True) == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("title: A subject\n", "", "1: front matter without a title"),
        ("in one sentence for search engines.", "", "1: description of 23"),
        ("title: A", "title: [A", "1: front matter: "),
        ("# A subject { #a-subject }\n", "", "1: not exactly one heading"),
        ("## Formula { #formula }", "# Formula { #formula }", "1: not exactly one"),
        (" { #formula }", "", "15: heading without"),
        ("{ #formula }", "{#formula}", "15: heading without"),
        ("#formula", "#Formula", "15: heading without"),
        ("#formula", "#detail", "21: id 'detail' twice"),
        ("### Detail", "#### Detail", "21: level 4 under 2"),
        ("{ #limits }", "{ #limit }", "1: no section #limits"),
        ("{ #questions }", "{ #quiz }", "1: no section #questions"),
        ("#questions }\n", "#questions }\n\n## More { #more }\n", "1: #questions is"),
        ("After this page", "Then", "1: no line"),
        ("Short answer", "Answer", "1: no box"),
        ("What is it?", "$a$ " * 39, "1: 41 formulas, at most 40"),
    ],
)
def test_bad(old, new, says):
    assert old in GOOD
    found = violations(GOOD.replace(old, new, 1), "en", topical=True)
    assert any(v.startswith(says) for v in found), found


SPEAKABLE = "It is $x$, not `$y$`."


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("word " * 76 + ".", "short answer of 76, at most 75"),
        ("It is. It was. It will be. It is not.", "short answer of 4 sentences"),
        ("It is.\n\n    It was.", "short answer of 2 sentences or several"),
        ("It is [[ facts.a.b ]] times faster.", "short answer with a result"),
        ("In our small runs it is faster.", "short answer with a result"),
    ],
)
def test_a_short_answer_that_nobody_says_aloud_is_refused(answer, says):
    (found,) = violations(GOOD.replace(SPEAKABLE, answer), "en", topical=True)
    assert found.startswith(f"1: {says}")


@pytest.mark.parametrize(
    ("lang", "good", "answer", "wrong"),
    [
        ("en", GOOD, "word " * 74 + "[[ cite.key ]].", False),
        ("en", GOOD, "[link](a/long/address.md#with-an-anchor) " * 75, False),
        ("zh", GOOD_ZH, "字" * 120 + "（residual stream）。", False),
        ("zh", GOOD_ZH, "字" * 121 + "。", True),
        ("zh", GOOD_ZH, "在我们的小模型里更快。", True),
    ],
)
def test_length_of_a_short_answer(lang, good, answer, wrong):
    assert bool(violations(good.replace(SPEAKABLE, answer), lang, True)) == wrong


def test_a_page_has_other_names():
    assert names(NAMED.format("[BN, γ]")) == []


NAMED = "---\ntitle: A subject\nalso: {}\n---\n\n# A subject {{ #a-subject }}\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (NAMED.format("BN"), "also: is no list of names"),
        (NAMED.format("[BN, 1]"), "also: is no list of names"),
        (NAMED.format("[]"), "no also: "),
        (NAMED.replace("also: {}\n", "").format(), "no also: "),
        (NAMED.format("[BN]") + "\n*Also called: BN*\n", "a line of names on the page"),
        (NAMED.format("[BN]") + "\n*又名：批归一化*\n", "a line of names on the page"),
    ],
)
def test_a_page_without_other_names_is_refused(text, says):
    (found,) = names(text)
    assert found.startswith(f"1: {says}")


def test_the_promise_stands_before_the_answer():
    promise = "After this page you can say what it is.\n\n"
    later = GOOD.replace(promise, "").replace("## Formula", promise + "## Formula", 1)
    assert "1: the short answer stands before what the page promises" in violations(
        later, "en", topical=True
    )
