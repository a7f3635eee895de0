"""The ledger: docs/data/claims/<topic>.yml in, a page a topic out.

A row is one claim, its verdict, the corrected statement, where the claim was met, and
what decides it, folded under its kind. A check (the function <id> of
tests/claims/<topic>.py, shown on the page) returns whether the claim holds, case by
case: by running code, by arithmetic on numbers that it names, or by a record; or it is
an example, and the citations decide. A row that left its page names it as `was`: the
old anchor stays there, and leads to where the row is.
"""

import os
import re
from pathlib import Path
from urllib.parse import urlencode

from scripts.site.data import bilingual as data_rows
from scripts.site.data import citations, reference_lists
from scripts.site.data.filter_bar import filter_bar
from scripts.site.reading import source
from scripts.site.reading.source import ROOT, SourceError

FOLDER = ROOT / "docs" / "data" / "claims"
CHECKS = ROOT / "tests" / "claims"
VERDICTS = ("holds", "holds-when", "wrong", "open")
KINDS = ("code", "arithmetic", "record", "example")  # of checks
FIELDS = {"id", "claim", "verdict", "correct", "page"}
TEXTS = ("claim", "correct", "instead")  # in both languages
OPTIONAL = {"met", "check", "cite", "top", "instead", "dare", "was"}
UNPINNED = re.compile(r"^https://github\.com/.*/blob/(?![0-9a-f]{40}/)")
MARKS = {"holds": "✓", "holds-when": "△", "wrong": "✗", "open": "○"}
WORDS = {
    "en": {
        "holds": "holds",
        "holds-when": "holds when",
        "wrong": "wrong",
        "open": "open",
        "filter": "Filter by verdict",
        "met": "Met at ",
        "heard": "We have no source to show for this sentence.",
        "report": "Report a mistake in this row",
        "mistake": "What is wrong, and what shows it:",
        "comma": ", ",
        "stop": ". ",
        "colon": ": ",
        "code": "Decided by code",
        "arithmetic": "Decided by arithmetic on named numbers",
        "record": "Decided by a stored record",
        "example": "Decided by its sources, with an example in code",
        "source": "Decided by its sources",
        "undecided": "Not decided; what there is",
        "sources": "Sources: ",
        "more": "More: ",
        "topic": "Subject",
        "all": "all",
        "moved": "Claims that moved to a page of their own",
        "settled": "Claims that this page takes up",
        "verdict": "The verdict",
        "space": " ",
    },
    "zh": {
        "holds": "成立",
        "holds-when": "有条件成立",
        "wrong": "错误",
        "open": "未定",
        "filter": "按结论筛选",
        "met": "见于 ",
        "heard": "这句话我们没有找到出处。",
        "report": "报告这一条的错误",
        "mistake": "哪里错了，依据是什么：",
        "comma": "、",
        "stop": "。",
        "colon": "：",
        "code": "依据：代码",
        "arithmetic": "依据：用写明的数字计算",
        "record": "依据：一份测量记录",
        "example": "依据：来源，另附代码例子",
        "source": "依据：来源",
        "undecided": "尚无定论，只列出现有材料",
        "sources": "来源：",
        "more": "详见 ",
        "topic": "主题",
        "all": "合计",
        "moved": "移到另一页的说法",
        "settled": "本页谈到的说法",
        "verdict": "看结论",
        "space": "",
    },
}


def topics() -> list[str]:
    """The topics of the ledger, in the order of their files' names."""
    return sorted(path.stem for path in FOLDER.glob("*.yml"))


def rows(topic: str) -> list[dict]:
    """The rows of one topic. SourceError, one line, for a row that is out of form."""
    return data_rows.read(FOLDER / f"{topic}.yml", problem_of)


def problem_of(row) -> str | None:
    """What is out of form in a row, None if nothing is."""
    if problem := data_rows.problem_of_fields(row, FIELDS, OPTIONAL):
        return problem
    if row["verdict"] not in VERDICTS:
        return f"verdict is none of {', '.join(VERDICTS)}"
    met, known = row.get("met"), citations.references()
    if not all(isinstance(place, str) for place in met or ()):
        return "met is not a list of different addresses"
    plain = [known[x].url if x in known else x for x in met] if met else met
    if problem := data_rows.problem_of_addresses("met", plain):
        return problem
    if loose := [place for place in plain or () if UNPINNED.search(place)]:
        return f"met: {loose[0]} names no commit"
    if not isinstance(row["page"], str) or ".md" not in row["page"]:
        return f"page {row['page']!r} is no page"
    for field in ("top", "dare"):
        if field in row and not isinstance(row[field], int):
            return f"{field} {row[field]!r} is no number"
    cited = row.get("cite", [])
    if not isinstance(cited, list) or not all(isinstance(key, str) for key in cited):
        return "cite is not a list of citations"
    if row.get("was") not in (None, *topics()):
        return f"was: no topic {row['was']}"
    if row.get("check", "code") not in KINDS:
        return f"check is none of {', '.join(KINDS)}"
    for field in (each for each in TEXTS if each in row):
        if problem := data_rows.problem_of_text(field, row[field]):
            return problem
    if ("top" in row) != ("instead" in row):
        return "a row has top and instead, or neither"
    if not row.get("check") and not row.get("cite"):
        return "neither a check nor a citation decides it"
    if row.get("check") == "example" and not row.get("cite"):
        return "an example decides nothing: a citation has to"
    return None


def decided(row: dict) -> str:
    """What decides a row: a kind of check, its sources, or nothing yet."""
    return "undecided" if row["verdict"] == "open" else row.get("check") or "source"


def check_name(row: dict) -> str:
    """The name of the function that decides a row."""
    return row["id"].replace("-", "_")


def check_file(topic: str) -> Path:
    """The file of a topic's checks."""
    return CHECKS / f"{topic.replace('-', '_')}.py"


def check_source(topic: str, row: dict) -> str:
    """The function that decides a row, with all of its file that it needs."""
    return source.complete(check_file(topic), check_name(row))


def topic_list(topic: str, language: str) -> str:
    """All rows of a topic as Markdown, each in a box that a script can hide."""
    kept = [entry(topic, row, language) for row in rows(topic)]
    words = WORDS[language]
    names = {v: f"{MARKS[v]} {words[v]}" for v in VERDICTS}
    found = (row["verdict"] for row in rows(topic))
    bar = filter_bar(found, names, words["filter"], language)
    return "\n\n".join([tally(topic, language), bar, *kept, *moved(topic, language)])


def tally(topic: str, language: str) -> str:
    """How many claims of each verdict, as a bar and in words."""
    words, found = WORDS[language], [row["verdict"] for row in rows(topic)]
    counts = [(v, found.count(v)) for v in VERDICTS if v in found]
    bar = "".join(
        f'<span data-verdict="{v}" data-mark="{MARKS[v]}" style="flex-grow: {count}">'
        "</span>"
        for v, count in counts
    )
    said = " · ".join(f"{MARKS[v]} {words[v]} {count}" for v, count in counts)
    return (
        f'<div class="tally"><div aria-hidden="true">{bar}</div><div>{said}</div></div>'
    )


def moved(topic: str, language: str) -> list[str]:
    """The rows that left a topic, each behind its old anchor, folded; or nothing."""
    words = WORDS[language]
    links = [
        f"{MARKS[row['verdict']]} {words[row['verdict']]}{words['colon']}"
        f"[{row['claim'][language].rstrip('。.')}]({there}.md#{row['id']})"
        f"{{ #{row['id']} }}"
        for there, row in everything()
        if row.get("was") == topic
    ]
    folded = reference_lists.append_folded("", words["moved"], links)
    return [folded] if links else []


def judged(row: dict, language: str) -> str:
    """The claim behind its verdict, so that nobody skims it as a statement of ours."""
    words, verdict = WORDS[language], row["verdict"]
    name = f'<span class="verdict">{MARKS[verdict]} {words[verdict]}</span>'
    return f"{name}{words['colon']}{row['claim'][language].rstrip('。.')}"


def dare(language: str) -> str:
    """Short claims to try, true or false; without scripts the verdict is folded."""
    words, parts = WORDS[language], []
    chosen = [row for _, row in everything() if row.get("dare")]
    for row in sorted(chosen, key=lambda row: row["dare"]):
        if row["verdict"] not in ("holds", "wrong"):
            raise SourceError(f"claims: {row['id']}: a dare is true or false")
        name = f"{MARKS[row['verdict']]} {words[row['verdict']]}"
        link = f"[{_title(row['page'], words)}]({row['page']})"
        parts += [
            f'<div class="dare" data-verdict="{row["verdict"]}" markdown>',
            "",
            f"{row['claim'][language]}",
            "",
            f'??? question "{words["verdict"]}"',
            "",
            f"    **{name}**{words['colon']}{row['correct'][language]}{words['space']}"
            f"{words['more']}{link}{words['stop']}",
            "",
            "</div>",
            "",
        ]
    return "\n".join(parts)


def entry(topic: str, row: dict, language: str) -> str:
    words = WORDS[language]
    more = f"{words['more']}[{_title(row['page'], words)}](../{row['page']})"
    lines = [
        f'<div class="claim" data-verdict="{row["verdict"]}" markdown>',
        "",
        f"## {judged(row, language)} {{ #{row['id']} }}",
        "",
        f"{row['correct'][language]}{words['space']}{more}{words['stop']}".rstrip(),
        "",
        f'??? note "{words[decided(row)]}"',
        "",
        f"    {_met(row, words)}",
        "",
    ]
    if row.get("cite"):
        lines += [f"    {_sources(row, words)}", ""]
    if row.get("check"):
        code = check_source(topic, row)
        lines += ["    ```python"]
        lines += [f"    {line}".rstrip() for line in code.splitlines()]
        lines += ["    ```", ""]
    if link := report(topic, row, language):
        lines += [f"    [{words['report']}]({link})", ""]
    return "\n".join([*lines, "</div>"])


def report(topic: str, row: dict, language: str) -> str | None:
    """The address of a new issue about a row, filled in; None without REPO_URL."""
    repository = os.environ.get("REPO_URL", "").rstrip("/")
    if not repository:
        return None
    body = f"> {row['claim'][language].strip()}\n\n{WORDS[language]['mistake']}\n"
    filled = urlencode({"title": f"claims: {topic}#{row['id']}", "body": body})
    return f"{repository}/issues/new?{filled}"


def _met(row: dict, words: dict) -> str:
    if not row.get("met"):
        return words["heard"]
    places = words["comma"].join(place_link(place) for place in row["met"])
    return f"{words['met']}{places}{words['stop']}".rstrip()


def place_link(place: str) -> str:
    """Where a claim was met, as a link: a citation's key, or an address."""
    if found := citations.references().get(place):
        return citations.link(f"{found.authors}, {found.year}", found.url)
    return citations.link(data_rows.host(place), place)


def _sources(row: dict, words: dict) -> str:
    known, keys = citations.references(), row["cite"]
    if unknown := [key for key in keys if key not in known]:
        raise SourceError(f"claims: {row['id']}: unknown citation {unknown[0]!r}")
    names = [f"{known[key].authors}, {known[key].year}" for key in keys]
    cited = [
        citations.link(
            name if names.count(name) == 1 else known[key].title, known[key].url
        )
        for key, name in zip(keys, names, strict=True)
    ]
    return f"{words['sources']}{words['comma'].join(cited)}{words['stop']}".rstrip()


def _title(page: str, words: dict) -> str:
    language = "zh" if words is WORDS["zh"] else "en"
    path = page.partition("#")[0]
    titles = reference_lists.pages(language)
    if path not in titles:
        raise SourceError(f"claims: no page {path}")
    return titles[path]


def everything() -> list[tuple[str, dict]]:
    """(topic, row) of the whole ledger."""
    return [(topic, row) for topic in topics() for row in rows(topic)]


def top_list(language: str, base: str = "") -> str:
    """The most consequential claims, as a list of links with their verdicts."""
    words = WORDS[language]
    chosen = sorted(
        ((row["top"], topic, row) for topic, row in everything() if row.get("top")),
        key=lambda item: item[0],
    )
    return "\n".join(
        f"1. [{row['claim'][language].rstrip('。.')}]({base}{topic}.md#{row['id']})"
        f"{words['colon']}**{words[row['verdict']]}**{words['stop']}{row['instead'][language]}"
        for _, topic, row in chosen
    )


def overview(language: str) -> str:
    """A table: a line a topic as in the navigation, how many claims of each verdict."""
    words, titles = WORDS[language], reference_lists.pages(language)
    heads = [words["topic"], *(f"{MARKS[v]} {words[v]}" for v in VERDICTS)]
    lines = [f"| {' | '.join([*heads, words['all']])} |", "|---" + "|--:" * 5 + "|"]
    order = [path for path, _ in reference_lists.in_reading_order(language)]
    for topic in sorted(topics(), key=lambda name: order.index(f"claims/{name}.md")):
        found = [row["verdict"] for row in rows(topic)]
        counts = [str(n) for n in (*map(found.count, VERDICTS), len(found))]
        name = reference_lists.subject(titles[f"claims/{topic}.md"])
        lines.append(f"| [{name}]({topic}.md) | {' | '.join(counts)} |")
    return "\n".join(lines)


def append_links(markdown: str, path: str, language: str) -> str:
    """A page with the list of the claims that name it as what settles them."""
    words = WORDS[language]
    settled = [
        (topic, row)
        for topic, row in everything()
        if row["page"].partition("#")[0] == path
    ]
    to_root = "../" * path.count("/")
    links = [
        f"[{row['claim'][language].rstrip('。.')}]"
        f"({to_root}claims/{topic}.md#{row['id']}){words['colon']}{words[row['verdict']]}"
        for topic, row in settled
    ]
    return reference_lists.append_folded(markdown, words["settled"], links)


COUNTS = {
    "count": lambda row: True,
    "wrong": lambda row: row["verdict"] == "wrong",
    "with_place": lambda row: bool(row.get("met")),
    "by_code": lambda row: decided(row) == "code",
    "by_arithmetic": lambda row: decided(row) == "arithmetic",
    "by_record": lambda row: decided(row) == "record",
    "by_source": lambda row: decided(row) in ("source", "example"),
    "undecided": lambda row: decided(row) == "undecided",
}


def make(name: str, language: str) -> str:
    """``claims.<topic>``, ``claims.overview``, ``claims.top``, the dare, counts."""
    if name == "overview":
        return overview(language)
    if name == "top":
        return top_list(language)
    if name == "top_at_home":
        return top_list(language, "claims/")
    if name == "dare":
        return dare(language)
    if name in COUNTS:
        return str(sum(COUNTS[name](row) for _, row in everything()))
    topic = name.replace("_", "-")
    if topic not in topics():
        known = ", ".join(topics()) or "none"
        raise SourceError(f"unknown topic of claims {topic!r}; known: {known}")
    return topic_list(topic, language)


def names() -> list[str]:
    own = ["overview", "top", "top_at_home", "dare", *COUNTS]
    return own + [topic.replace("-", "_") for topic in topics()]
