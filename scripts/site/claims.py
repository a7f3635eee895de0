"""The ledger: docs/data/claims/<topic>.yml in, a page a topic out.

A row is one claim, its verdict, the corrected statement, where the claim was met, and
what decides it. A check (tests/claims/test_<topic>.py::test_<id>, shown on the page)
decides by running code, by arithmetic on numbers that it names, or by a record; or it
is an example, and the citations decide.
"""

from scripts.site import citations, lists, source
from scripts.site import rows as data_rows
from scripts.site.source import ROOT, SourceError

FOLDER = ROOT / "docs" / "data" / "claims"
CHECKS = ROOT / "tests" / "claims"
VERDICTS = ("holds", "holds-when", "wrong", "open")
KINDS = ("code", "arithmetic", "record", "example")  # of checks
FIELDS = {"id", "claim", "verdict", "correct", "page"}
OPTIONAL = {"met", "check", "cite", "top", "dare"}
MARKS = {"holds": "✓", "holds-when": "△", "wrong": "✗", "open": "○"}
WORDS = {
    "en": {
        "holds": "holds",
        "holds-when": "holds when",
        "wrong": "wrong",
        "open": "open",
        "met": "Met at ",
        "heard": "We have no source to show for this sentence.",
        "comma": ", ",
        "stop": ". ",
        "colon": ": ",
        "code": "Decided by the code below",
        "arithmetic": "Decided by arithmetic on the numbers named below",
        "record": "Decided by a stored record",
        "example": "Decided by its sources; the code below is an example",
        "source": "Decided by its sources",
        "undecided": "Not decided; what there is",
        "with": "the code below",
        "sources": ". Sources: ",
        "more": "More: ",
        "check": "The check",
        "example_code": "An example in code",
        "settled": "Claims that this page takes up",
        "verdict": "The verdict",
        "space": " ",
    },
    "zh": {
        "holds": "成立",
        "holds-when": "有条件成立",
        "wrong": "错误",
        "open": "未定",
        "met": "见于 ",
        "heard": "这句话我们没有出处可以给出。",
        "comma": "、",
        "stop": "。",
        "colon": "：",
        "code": "依据：下面的代码",
        "arithmetic": "依据：用下面写明的数字计算",
        "record": "依据：一份测量记录",
        "example": "依据是来源，下面的代码只是例子",
        "source": "依据是来源",
        "undecided": "尚无定论，现有材料",
        "with": "下面的代码",
        "sources": "。来源：",
        "more": "详见 ",
        "check": "核对代码",
        "example_code": "一个代码例子",
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
    plain = [known[x].url if x in known else x for x in met] if met else met
    if problem := data_rows.problem_of_addresses("met", plain):
        return problem
    if row.get("check", "code") not in KINDS:
        return f"check is none of {', '.join(KINDS)}"
    for field in ("claim", "correct"):
        if problem := data_rows.problem_of_text(field, row[field]):
            return problem
    if not row.get("check") and not row.get("cite"):
        return "neither a check nor a citation decides it"
    if row.get("check") == "example" and not row.get("cite"):
        return "an example decides nothing: a citation has to"
    return None


def decided(row: dict) -> str:
    """What decides a row: a kind of check, its sources, or nothing yet."""
    return "undecided" if row["verdict"] == "open" else row.get("check") or "source"


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
    places = [place_link(place) for place in row.get("met", ())]
    met = words["met"] + words["comma"].join(places) if places else words["heard"]
    lines = [
        f'<div class="claim" data-verdict="{row["verdict"]}" markdown>',
        "",
        f"## {judged(row, language)} {{ #{row['id']} }}",
        "",
        f'<span class="met">{met}</span>',
        "",
        row["correct"][language],
        "",
        _sources(row, words),
        "",
    ]
    if row.get("check"):
        code = check_source(topic, row)
        name = words["example_code" if row["check"] == "example" else "check"]
        lines += [f'??? note "{name}"', "", "    ```python"]
        lines += [f"    {line}".rstrip() for line in code.splitlines()]
        lines += ["    ```", ""]
    return "\n".join([*lines, "</div>"])


def place_link(place: str) -> str:
    """Where a claim was met, as a link: a citation's key, or an address."""
    if found := citations.references().get(place):
        return _link(f"{found.authors}, {found.year}", found.url)
    return _link(data_rows.host(place), place)


def _link(text: str, url: str) -> str:
    plain = text.replace("[", "\\[").replace("]", "\\]")
    return f"[{plain}]({url})"


def _sources(row: dict, words: dict) -> str:
    known, how = citations.references(), decided(row)
    keys = row.get("cite", ())
    if unknown := [key for key in keys if key not in known]:
        raise SourceError(f"claims: {row['id']}: unknown citation {unknown[0]!r}")
    names = [f"{known[key].authors}, {known[key].year}" for key in keys]
    cited = [
        _link(name if names.count(name) == 1 else known[key].title, known[key].url)
        for key, name in zip(keys, names, strict=True)
    ]
    if how == "undecided" and row.get("check"):
        cited.insert(0, words["with"])
    by_check = how in ("code", "arithmetic", "record")
    lead = words["sources" if by_check else "colon"]
    tail = lead + words["comma"].join(cited) if cited else ""
    title = _title(row["page"], words)
    more = f"{words['more']}[{title}](../{row['page']})"
    return f"{words[how]}{tail}{words['stop']}{more}{words['stop']}".strip()


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
