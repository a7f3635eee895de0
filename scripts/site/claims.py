"""The ledger: docs/data/claims/<topic>.yml in, a page a topic out.

A row is one popular claim, its verdict, the corrected statement, and what decides
it: a check that runs (tests/claims/test_<topic>.py::test_<id>, shown on the page),
a citation, or both.
"""

from scripts.site import citations, lists, source
from scripts.site import rows as data_rows
from scripts.site.source import ROOT, SourceError

FOLDER = ROOT / "docs" / "data" / "claims"
CHECKS = ROOT / "tests" / "claims"
VERDICTS = ("holds", "holds-when", "wrong", "open")
MET = ("tutorials", "interviews", "papers", "code", "threads")
FIELDS = {"id", "claim", "met", "verdict", "correct", "page"}
OPTIONAL = {"check", "cite", "top", "dare"}
MARKS = {"holds": "✓", "holds-when": "△", "wrong": "✗", "open": "○"}
WORDS = {
    "en": {
        "holds": "holds",
        "holds-when": "holds when",
        "wrong": "wrong",
        "open": "open",
        "tutorials": "tutorials",
        "interviews": "interview answers",
        "papers": "papers and their summaries",
        "code": "code",
        "threads": "discussions",
        "met": "Met in ",
        "comma": ", ",
        "stop": ". ",
        "colon": ": ",
        "source": "Decided by ",
        "more": "More: ",
        "check": "The check",
        "settled": "Popular claims that this page settles",
        "verdict": "The verdict",
        "space": " ",
    },
    "zh": {
        "holds": "成立",
        "holds-when": "有条件成立",
        "wrong": "错误",
        "open": "未定",
        "tutorials": "教程",
        "interviews": "面试答案",
        "papers": "论文及其转述",
        "code": "代码",
        "threads": "讨论区",
        "met": "常见于",
        "comma": "、",
        "stop": "。",
        "colon": "：",
        "source": "依据：",
        "more": "详见 ",
        "check": "核对代码",
        "settled": "本页解答的流行说法",
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
    if not row["met"] or set(row["met"]) - set(MET):
        return f"met is not some of {', '.join(MET)}"
    for field in ("claim", "correct"):
        if problem := data_rows.problem_of_text(field, row[field]):
            return problem
    if not row.get("check") and not row.get("cite"):
        return "neither a check nor a citation decides it"
    return None


def check_source(topic: str, row: dict) -> str:
    """The test function that decides a row, with all of its file that it needs."""
    path = CHECKS / f"test_{topic.replace('-', '_')}.py"
    return source.complete(path, f"test_{row['id'].replace('-', '_')}")


def topic_list(topic: str, language: str) -> str:
    """All rows of a topic as Markdown, each in a box that a script can hide."""
    return "\n\n".join(entry(topic, row, language) for row in rows(topic))


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
    met = words["comma"].join(words[place] for place in row["met"])
    lines = [
        f'<div class="claim" data-verdict="{row["verdict"]}" markdown>',
        "",
        f"## {judged(row, language)} {{ #{row['id']} }}",
        "",
        f'<span class="met">{words["met"]}{met}</span>',
        "",
        row["correct"][language],
        "",
        _sources(row, words),
        "",
    ]
    if row.get("check"):
        code = check_source(topic, row)
        lines += [f'??? note "{words["check"]}"', "", "    ```python"]
        lines += [f"    {line}".rstrip() for line in code.splitlines()]
        lines += ["    ```", ""]
    return "\n".join([*lines, "</div>"])


def _sources(row: dict, words: dict) -> str:
    parts = []
    if keys := row.get("cite"):
        known = citations.references()
        for key in keys:
            if key not in known:
                raise SourceError(f"claims: {row['id']}: unknown citation {key!r}")
        chosen = [known[key] for key in keys]
        cited = [f"[{r.authors}, {r.year}]({r.url})" for r in chosen]
        parts.append(words["source"] + words["comma"].join(cited) + words["stop"])
    title = _title(row["page"], words)
    parts.append(f"{words['more']}[{title}](../{row['page']}){words['stop']}")
    return "".join(parts).strip()


def _title(page: str, words: dict) -> str:
    language = "zh" if words is WORDS["zh"] else "en"
    path = page.partition("#")[0]
    titles = lists.pages(language)
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
        f"1. [{row['claim'][language].rstrip('。.')}]({base}{topic}.md#{row['id']}): "
        f"**{words[row['verdict']]}**"
        for _, topic, row in chosen
    )


def overview(language: str) -> str:
    """A line a topic: how many claims, and how many of each verdict."""
    words, titles = WORDS[language], lists.pages(language)
    lines = []
    for topic in topics():
        found = [row["verdict"] for row in rows(topic)]
        counts = [f"{words[v]} {found.count(v)}" for v in VERDICTS if v in found]
        name = lists.subject(titles[f"claims/{topic}.md"])
        tail = words["comma"].join(counts)
        lines.append(f"- [{name}]({topic}.md){words['colon']}{tail}")
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
        f"({to_root}claims/{topic}.md#{row['id']}): {words[row['verdict']]}"
        for topic, row in settled
    ]
    return lists.append_folded(markdown, words["settled"], links)


def make(name: str, language: str) -> str:
    """``claims.<topic>``, ``claims.overview``, ``claims.top``, the dare, counts."""
    if name == "overview":
        return overview(language)
    if name == "top":
        return top_list(language)
    if name == "top_at_home":
        return top_list(language, "claims/")
    if name == "count":
        return str(len(everything()))
    if name == "wrong":
        return str(sum(row["verdict"] == "wrong" for _, row in everything()))
    if name == "dare":
        return dare(language)
    if name == "checked":
        return str(sum(bool(row.get("check")) for _, row in everything()))
    topic = name.replace("_", "-")
    if topic not in topics():
        known = ", ".join(topics()) or "none"
        raise SourceError(f"unknown topic of claims {topic!r}; known: {known}")
    return topic_list(topic, language)


def names() -> list[str]:
    own = ["overview", "top", "top_at_home", "count", "wrong", "dare", "checked"]
    return own + [topic.replace("-", "_") for topic in topics()]
