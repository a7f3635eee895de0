"""The interview section's pages: questions, quiz and printable sheet as Markdown.

The data and its form are in interview.py. Facts and citations are filled in here,
since macros do not look into what a macro returns.
"""

import hashlib
from functools import cache
from itertools import zip_longest
from pathlib import Path
from textwrap import indent

from scripts.site.data import citations, claims, reference_lists
from scripts.site.data.facts import recorded
from scripts.site.data.filter_bar import filter_bar
from scripts.site.questions import interview
from scripts.site.questions.interview import GROUPS, LEVELS
from scripts.site.questions.texts import markdown
from scripts.site.reading import source
from scripts.site.reading.source import ROOT, SourceError

QUIZ_PAGES = {  # a page of all items would be too heavy
    "quiz-methods": GROUPS[:4],
    "quiz-systems": GROUPS[4:8],
    "quiz-practice": GROUPS[8:],
}
SHEET = 40
TONIGHT = (  # said aloud in the last ninety minutes, in this order
    "why-norms-help",
    "why-not-batchnorm-in-language-models",
    "why-rmsnorm-replaced-layernorm",
    "pre-or-post-which-do-you-prefer",
    "post-norm-and-warm-up",
    "curse-of-depth-in-short",
    "qk-norm-in-one-minute",
    "float16-norm-without-upcast",
)
LETTERS = "ABCDE"
WORDS = {
    "en": {
        "screening": "screening",
        "engineer": "engineer",
        "researcher": "researcher",
        "filter": "Filter by level",
        "opener": "In one line",
        "opens": "**{}**. {}",
        "short": "Short answer",
        "full": "In full",
        "weak": "A weak answer",
        "follow_up": "The follow-up",
        "quoted": '"{}"',
        "space": " ",
        "evidence": "Evidence",
        "asked": "Found at",
        "answer": "Answer",
        "key": "Answer and why",
        "right": "{letter} is right.",
        "claim": "Claim: ",
        "record": "Record: ",
        "check": "The check",
        "why": "Evidence and check",
        "items": "{count} items",
        "all_of": "{count} questions",
        "of_them": "{count} questions, {public} asked in public lists",
        "only": "In the lists below only what was asked in public lists ({count})",
        "total": "Together",
        "of_level": " ({level})",
        "settled": "Interview questions that this page answers",
        "comma": ", ",
        "colon": ": ",
    },
    "zh": {
        "screening": "初筛",
        "engineer": "工程师",
        "researcher": "研究员",
        "filter": "按级别筛选",
        "opener": "一句话",
        "opens": "**{}**。{}",
        "short": "简短回答",
        "full": "完整回答",
        "weak": "较差的回答",
        "follow_up": "追问",
        "quoted": "“{}”",
        "space": "",
        "evidence": "依据",
        "asked": "出自",
        "answer": "答案",
        "key": "答案与解释",
        "right": "正确的是 {letter}。",
        "claim": "说法：",
        "record": "数据记录：",
        "check": "核对代码",
        "why": "依据与核对代码",
        "items": "{count} 题",
        "all_of": "{count} 题",
        "of_them": "{count} 题，{public} 题在公开题单里问过",
        "only": "下面只列公开题单里问过的（{count} 题）",
        "total": "合计",
        "of_level": "（{level}）",
        "settled": "本页能回答的面试题",
        "comma": "、",
        "colon": "：",
    },
}


def subject(group: str, language: str) -> str:
    """What a group is about: its page's title without 'Interview:'."""
    path = f"interview/{group}.md"
    titles = reference_lists.pages(language)
    if path not in titles:
        raise SourceError(f"no page {path} for the questions of {group}")
    return reference_lists.subject(titles[path])


def questions(group: str, language: str) -> str:
    """All questions of a group, each in a box that a script can hide."""
    rows = interview.questions(group)
    asked = [_question(row, language) for row in rows]
    return "\n\n".join([_filter_bar(rows, language, answers=True), *asked])


def _filter_bar(rows: list[dict], language: str, *, answers: bool = False) -> str:
    words = WORDS[language]
    return filter_bar(
        (row["level"] for row in rows),
        words,
        words["filter"],
        language,
        public=sum(map(LISTED_IN["public"], rows)),
        answers=answers,
    )


def _question(row: dict, language: str) -> str:
    words = WORDS[language]
    next_question, next_answer = pair(row, "follow_up", language)
    answer = [
        *_opener(row, language),
        f"**{words['short']}**",
        markdown(row["short"][language]),
        f"**{words['full']}**",
        markdown(row["answer"][language]),
        f"**{words['weak']}**",
        weak(row, language),
        _folded(
            "question",
            words["follow_up"] + words["colon"] + next_question,
            next_answer,
        ),
        f"**{words['evidence']}**",
        evidence(row, language),
    ]
    if asked := row.get("asked"):
        places = words["comma"].join(map(claims.place_link, asked))
        answer += [f"**{words['asked']}**", places]
    head = markdown(row["question"][language])
    return "\n\n".join(
        [
            f'<div class="asked" data-level="{row["level"]}"{within(row)} markdown>',
            f"## {head} {{ #{row['id']} }}",
            f'<span class="level">{words[row["level"]]}</span>',
            _folded("success", words["answer"], "\n\n".join(answer)),
            "</div>",
        ]
    )


def within(row: dict) -> str:
    """The attribute that says which smaller lists a question or quiz item is in."""
    names = [name for name, is_in in LISTED_IN.items() if is_in(row)]
    return f' data-in="{" ".join(names)}"' if names else ""


def _opener(row: dict, language: str) -> list[str]:
    if "opener" not in row:
        return []
    return [f"**{WORDS[language]['opener']}**", markdown(row["opener"][language])]


def pair(row: dict, name: str, language: str) -> list[str]:
    """What is said and what is wrong with it; or the follow-up and its answer."""
    return [markdown(row[name][of][language]) for of in interview.PAIRS[name]]


def weak(row: dict, language: str) -> str:
    """The weak answer, quoted, and what is wrong with it."""
    words, (said, wrong) = WORDS[language], pair(row, "weak", language)
    return words["quoted"].format(said) + words["space"] + wrong


def _folded(kind: str, title: str, body: str) -> str:
    return f'??? {kind} "{title}"\n\n{indent(body, "    ")}'


def evidence(row: dict, language: str) -> str:
    """Where a question's answer is proven, as a list of links."""
    found = [link for entry in row["evidence"] for link in _links(entry, row, language)]
    return "\n".join(f"- {link}" for link in found)


def _links(entry: str, row: dict, language: str) -> list[str]:
    """A piece of evidence as links. SourceError, one line, if it leads nowhere."""
    words = WORDS[language]
    kind, colon, name = entry.partition(":")
    if colon and kind == "claim":
        topic, _, of = name.partition("#")
        ledger = claims.rows(topic) if topic in claims.topics() else []
        found = next((r for r in ledger if r["id"] == of), None)
        if found is None:
            raise SourceError(f"{row['id']}: no claim {name}")
        text = found["claim"][language].rstrip("。.")
        return [f"{words['claim']}[{text}](../claims/{topic}.md#{found['id']})"]
    if colon and kind == "cite":
        known = citations.references()
        if name not in known:
            raise SourceError(f"{row['id']}: no citation {name}")
        return [_reference(known[name])]
    if colon and kind == "record":
        found = dict(recorded()).get(name)
        if not found:
            raise SourceError(f"{row['id']}: no record of {name!r}")
        return [
            f"{words['record']}[{name}, {r.machine}]"
            f"(../records/{r.machine}/{name}.json)"
            for r in found
        ]
    path, _, anchor = entry.partition("#")
    titles = reference_lists.pages(language)
    if path not in titles:
        raise SourceError(f"{row['id']}: no page {path}")
    if not anchor:
        return [f"[{titles[path]}](../{path})"]
    heads = _headings(ROOT / "docs" / language / "pages" / path)
    if anchor not in heads:
        raise SourceError(f"{row['id']}: {path} has no #{anchor}")
    return [f"[{titles[path]}{words['colon']}{heads[anchor]}](../{entry})"]


def _reference(reference) -> str:
    title = citations.link(reference.title, reference.url)
    return f"{reference.authors}, {reference.year}: {title}"


def _headings(path: Path) -> dict[str, str]:
    return _read_headings(path, path.stat().st_mtime_ns)


@cache
def _read_headings(path: Path, stamp: int) -> dict[str, str]:
    found = source.headings(path.read_text(encoding="utf-8"))
    return {heading.id: heading.title for heading in found}


def _link(group: str, row: dict, language: str, base: str = "") -> str:
    text = markdown(row["question"][language])
    return f"[{text}]({base}{group}.md#{row['id']})"


def _marked(group: str, row: dict, language: str) -> str:
    """A link that the index can keep where only public questions are wanted."""
    return _link(group, row, language) + ("{ .public }" if "asked" in row else "")


def overview(language: str) -> str:
    """A line a group: how many questions of each level."""
    words, lines = WORDS[language], []
    for group in GROUPS:
        levels = [row["level"] for row in interview.questions(group)]
        counts = [f"{words[v]} {levels.count(v)}" for v in LEVELS if v in levels]
        if counts:
            tail = words["comma"].join(counts)
            name = subject(group, language)
            lines.append(f"- [{name}]({group}.md){words['colon']}{tail}")
    return "\n".join(lines)


def of_level(level: str, language: str) -> str:
    """All questions of a level as links, group by group, folded."""
    return _listed(language, lambda row: row["level"] == level, _marked)


def asked(language: str) -> str:
    """The questions that were found in public lists, each with where, folded.

    Under it a box to tick: the lists of the levels then show these alone.
    """

    def with_places(group: str, row: dict, language: str) -> str:
        places = WORDS[language]["comma"].join(map(claims.place_link, row["asked"]))
        return f"{_link(group, row, language)}{WORDS[language]['colon']}{places}"

    listed = _listed(language, lambda row: "asked" in row, with_places)
    count = sum("asked" in row for _, row in interview.bank())
    only = WORDS[language]["only"].format(count=count)
    box = f'<label><input type="checkbox" name="public"> {only}</label>'
    return f'{listed}\n\n<p class="only">{box}</p>'


def _listed(language: str, wanted, line) -> str:
    parts, shown = [], []
    for group in GROUPS:
        if rows := [row for row in interview.questions(group) if wanted(row)]:
            parts.append(f"**{subject(group, language)}**")
            parts.append("\n".join(f"- {line(group, r, language)}" for r in rows))
            shown += rows
    public = sum("asked" in row for row in shown)
    form = "of_them" if 0 < public < len(shown) else "all_of"
    title = WORDS[language][form].format(count=len(shown), public=public)
    return _folded("note", title, "\n\n".join(parts)) if parts else ""


def chosen() -> list[tuple[str, dict]]:
    """The questions of the sheet: in turn one of each group, then in the site's order.

    A question marked ``top`` may stay out where its group has many.
    """
    tops = [
        [(group, row) for row in interview.questions(group) if row.get("top")]
        for group in GROUPS
    ]
    in_turn = [pair for turn in zip_longest(*tops) for pair in turn if pair]
    kept = in_turn[:SHEET]
    return [pair for group in tops for pair in group if pair in kept]


def _on_the_sheet(row: dict) -> bool:
    """Is a question one of the forty; does a quiz item rest on what they rest on?"""
    forty = [of for _, of in chosen()]
    if "options" not in row:
        return row in forty
    return any(set(row["evidence"]) & set(of["evidence"]) for of in forty)


LISTED_IN = {"forty": _on_the_sheet, "public": lambda row: "asked" in row}


def sheet(language: str) -> str:
    """The chosen questions with their short answers, made for paper."""
    body = _said_aloud(chosen(), language)
    return f'<div class="sheet" markdown data-search-exclude>\n\n{body}\n\n</div>'


def tonight(language: str) -> str:
    """The few questions to say aloud, with what to open and go on with."""
    known = {row["id"]: (group, row) for group, row in chosen()}
    pairs = [known[name] for name in TONIGHT if name in known]
    body = _said_aloud(pairs, language)
    return f"<div markdown data-search-exclude>\n\n{body}\n\n</div>"


def _said_aloud(pairs: list[tuple[str, dict]], language: str) -> str:
    """A numbered list: the question, the line to open with, the short answer."""
    return "\n\n".join(
        f"1. **{_link(group, row, language)}**\n\n"
        + indent(
            WORDS[language]["opens"].format(
                markdown(row["opener"][language]).rstrip("。."),
                markdown(row["short"][language]),
            ),
            "    ",
        )
        for group, row in pairs
    )


def quiz_overview(language: str) -> str:
    """A line a group: its items, and a place for the reader's score."""
    words, lines = WORDS[language], []
    for page, groups in QUIZ_PAGES.items():
        for group in groups:
            if rows := interview.quiz(group):
                link = f"[{subject(group, language)}]({page}.md#{group})"
                lines.append(f"- {link}{words['colon']}{_score(rows, language)}")
    everything = [row for _, row in interview.items()]
    total = f"**{words['total']}**{words['colon']}"
    return "\n".join([*lines, "", total + _score(everything, language, " reset")])


def _score(rows: list[dict], language: str, attributes: str = "") -> str:
    """The reader's score in these items; without scripts, how many there are."""
    count = WORDS[language]["items"].format(count=len(rows))
    items = " ".join(f"{row['id']}:{row['answer']}" for row in rows)
    return f'<quiz-score data-items="{items}"{attributes}>{count}</quiz-score>'


def quiz_page(page: str, language: str) -> str:
    """The items of a quiz page under a heading a group."""
    rows = [row for group in QUIZ_PAGES[page] for row in interview.quiz(group)]
    bar = _filter_bar(rows, language)
    parts = [f"<div>{bar}<quiz-paper></quiz-paper></div>"]
    for group in QUIZ_PAGES[page]:
        if rows := interview.quiz(group):
            parts.append(f"## {subject(group, language)} {{ #{group} }}")
            parts += [item(group, row, language) for row in rows]
            parts.append(_score(rows, language, " reset"))
    return "\n\n".join(parts)


def item(group: str, row: dict, language: str, linked: bool = False) -> str:
    """A quiz item as a form; what the key says is folded under it.

    ``linked`` leaves evidence and check to the item's own page.
    """
    words, asked, why = WORDS[language], [], []
    where = words[row["level"]]
    for letter, name in shuffled(row).items():
        option = {k: markdown(v[language]) for k, v in row["options"][name].items()}
        asked.append(
            f'- <label><input type="radio" name="choice" value="{name}"> '
            f"{letter}. {option['text']}</label>"
        )
        why.append(f"- **{letter}**{words['colon']}{option['why']}")
        if name == row["answer"]:
            right = letter
    key = [words["right"].format(letter=right), "\n".join(why)]
    if linked:
        where += f" · {subject(group, language)}"
        key.append(f"[{words['why']}]({page_of(group)}.md#{row['id']})")
    else:
        key += [f"**{words['evidence']}**", evidence(row, language)]
        if row.get("check"):
            code = f"```python\n{check_source(group, row)}\n```"
            key.append(_folded("note", words["check"], code))
    return "\n\n".join(
        [
            f'<div class="quiz" id="{row["id"]}" data-level="{row["level"]}" '
            f'data-answer="{row["answer"]}" data-letter="{right}"'
            f"{within(row)} markdown>",
            f'<span class="level">{where}</span>',
            "<form markdown>\n<fieldset markdown>",
            f"<legend markdown>{markdown(row['question'][language])}</legend>",
            "\n".join(asked),
            "</fieldset>\n</form>",
            _folded("success", words["key"], "\n\n".join(key)),
            "</div>",
        ]
    )


def page_of(group: str) -> str:
    """The quiz page that shows a group's items."""
    return next(page for page, groups in QUIZ_PAGES.items() if group in groups)


def shuffled(row: dict) -> dict[str, str]:
    """Letter -> option; each letter is right equally often, in no order."""
    names = sorted(row["options"], key=lambda name: _hash(f"{row['id']} {name}"))
    names.remove(row["answer"])
    names.insert(_place(row), row["answer"])
    return dict(zip(LETTERS, names, strict=False))


def _place(row: dict) -> int:
    """Where an item's right option is, from 0: in turn, in an order by hash."""
    size = len(row["options"])
    alike = [r["id"] for _, r in interview.items() if len(r["options"]) == size]
    return sorted(alike, key=_hash).index(row["id"]) % size


@cache
def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def check_source(group: str, row: dict) -> str:
    """The function that finds out which options of an item hold, as it stands."""
    return source.function(keys(group), row["id"].replace("-", "_"))


def keys(group: str) -> Path:
    """The file with the checks of a group's items."""
    return interview.KEYS / f"quiz_{group.replace('-', '_')}.py"


def append_links(text: str, path: str, language: str) -> str:
    """A page with the list of the questions that name it as evidence."""
    words = WORDS[language]
    links = [
        _link(group, row, language, "../" * path.count("/") + "interview/")
        + words["of_level"].format(level=words[row["level"]])
        for group, row in interview.bank()
        if path in {str(entry).partition("#")[0] for entry in row["evidence"]}
    ]
    return reference_lists.append_folded(text, words["settled"], links)


COUNTS = {
    "count": lambda: len(interview.bank()),
    "quiz_count": lambda: len(interview.items()),
}
LISTS = {
    "overview": overview,
    "sheet": sheet,
    "tonight": tonight,
    "asked": asked,
    "quiz": quiz_overview,
}


def make(name: str, language: str) -> str:
    """``interview.<group>``, ``.overview``, ``.<level>``, ``.sheet``, quiz, counts."""
    kebab = name.replace("_", "-")
    if name in COUNTS:
        return str(COUNTS[name]())
    if name in LISTS:
        return LISTS[name](language)
    if name in LEVELS:
        return of_level(name, language)
    if kebab in QUIZ_PAGES:
        return quiz_page(kebab, language)
    if kebab in GROUPS:
        return questions(kebab, language)
    known = ", ".join(names())
    raise SourceError(f"unknown list of questions {name!r}; known: {known}")


def names() -> list[str]:
    pages = [page.replace("-", "_") for page in (*QUIZ_PAGES, *GROUPS)]
    return [*COUNTS, *LISTS, *LEVELS, *pages]


def _said(row: dict, language: str) -> list[str]:
    """All texts of a question or a quiz item in one language."""
    texts = interview.texts(row).values() if "short" in row else [row["question"]]
    options = row.get("options", {}).values()
    texts = [*texts, *(option[of] for option in options for of in option)]
    return [text[language] for text in texts]


def check(language: str) -> None:
    """Write everything once, so that what is wrong is one line and no traceback."""
    for group, row in interview.bank() + interview.items():
        for text in _said(row, language):
            try:
                markdown(text)
            except SourceError as error:
                raise SourceError(f"{group}.yml: {row['id']}: {error}") from None
    for name in names():
        make(name, language)
