"""The ledger is whole: rows in form, checks that exist, pages that exist."""

import ast
import builtins
import contextlib
import math
import re
from urllib.parse import parse_qs, urlsplit

import pytest

from scripts.site.data import citations, claims, reference_lists
from scripts.site.reading import files, source
from scripts.site.reading.source import LANGUAGES, SourceError, headings
from tests.pages import test_parity
from tests.pages.page_prose import EN, ZH

PAGES = {"zh": ZH, "en": EN}
TOPICS = claims.topics()
ROWS = claims.everything()
NAMES = [row["id"] for _, row in ROWS]


@pytest.mark.parametrize("topic", TOPICS)
def test_rows_are_in_form(topic):
    assert claims.rows(topic)


def test_each_id_is_unique(no_violations):
    no_violations(
        f"{name} stands twice" for name in set(NAMES) if NAMES.count(name) > 1
    )


@pytest.mark.parametrize("topic", TOPICS)
def test_every_function_decides_a_row_or_helps_one(topic, no_violations):
    path = claims.check_file(topic)
    body = ast.parse(path.read_text(encoding="utf-8")).body
    defined = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    rows = [row for row in claims.rows(topic) if row.get("check")]
    decides = {claims.check_name(row) for row in rows}
    sources = [claims.check_source(topic, row) for row in rows]
    helps = {name for text in sources for name in source.global_names(text)}
    unused = sorted(defined - decides - helps)
    no_violations(f"{path.name}: {name} decides no row" for name in unused)


def numbers_of(code: str) -> set[float]:
    """Numbers that a check names: literals, arithmetic on them, in its comments."""
    found = {float(number) for number in test_parity.numbers(code)}
    for node in ast.walk(ast.parse(code)):
        text = ast.unparse(node) if isinstance(node, ast.expr) else ""
        if re.fullmatch(r"(?:math\.sqrt|[\d_.e+*/() -])+", text):
            with contextlib.suppress(ArithmeticError, NameError, TypeError):
                found.add(float(eval(text, {"math": math})))
    return found


def unsaid(text: str, code: str) -> list[str]:
    """Numbers of a text that a check does not name.

    A number may be rounded, a share of one or of a hundred, or the rest to one.
    """
    known = numbers_of(code)
    known |= {abs(1 - v) for v in known} | {1 / v for v in known if v}
    known |= {100 * v for v in known}
    missing = []
    for number in test_parity.numbers(re.sub(r"\$[^$]+\$", "", text)):
        digits = len(re.sub(r"e.*|^0\.0*|[.]", "", number).rstrip("0")) or 1
        if f"{float(number):.{digits}g}" not in {f"{v:.{digits}g}" for v in known}:
            missing.append(number)
    return missing


CHECKED = [(topic, row) for topic, row in ROWS if row.get("check")]


@pytest.mark.parametrize(
    ("topic", "row"), CHECKED, ids=[row["id"] for _, row in CHECKED]
)
def test_what_a_reader_copies_is_complete(topic, row):
    """The check on the page stands with its imports and helpers, and names no other."""
    text = claims.check_source(topic, row)
    given = {name for node in ast.parse(text).body for name in source.bound(node)}
    assert source.global_names(text) <= given | set(dir(builtins))


@pytest.mark.parametrize(("topic", "row"), ROWS, ids=NAMES)
def test_numbers_of_a_verdict_are_checked_or_cited(topic, row, no_violations):
    code = claims.check_source(topic, row) if row.get("check") else ""
    if not row.get("cite"):
        for lang in LANGUAGES:
            missing = unsaid(row["correct"][lang], code)
            no_violations(
                f"{row['id']}: {lang}: {n} is not in its check" for n in missing
            )


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("It is 7.8x faster.", ["7.8"]),
        ("It is 22.6 long, less than 0.1 % of 1.25 亿; of 3.", []),
        ("It is 22.7 long, 0.6 % of 125M.", ["22.7", "0.6"]),
        ("A share of 0.71, the other 29 %, 6.7 billion.", []),
        ("1e-4 of it, and 1e-5.", ["1e-05"]),
    ],
)
def test_a_number_that_no_check_names_is_found(text, missing):
    code = (
        "assert x == 512**0.5 < 1.001  # 125M\nassert y == 0.71 < 6_738_415_616 / 1e4"
    )
    assert unsaid(text, code) == missing


def test_a_copied_check_runs():
    """One that needs imports of all kinds, helpers and constants of its file."""
    row = next(r for _, r in CHECKED if r["id"] == "pre-norm-variance-grows-linearly")
    copied = {"__name__": "copied"}
    exec(claims.check_source("placement-and-depth", row), copied)
    assert copied["pre_norm_variance_grows_linearly"]()


@pytest.mark.parametrize(("topic", "row"), ROWS, ids=NAMES)
def test_row_leads_somewhere(topic, row, no_violations):
    path, _, anchor = row["page"].partition("#")
    found = []
    for lang in LANGUAGES:
        if path not in PAGES[lang]:
            found.append(f"{row['id']}: no page {path}")
        elif anchor not in {h.id for h in headings(PAGES[lang][path].text)} | {""}:
            found.append(f"{row['id']}: {path} has no #{anchor}")
    known = citations.references()
    found += [
        f"{row['id']}: no citation {k}" for k in row.get("cite", ()) if k not in known
    ]
    no_violations(found)


@pytest.mark.parametrize(("topic", "row"), ROWS, ids=NAMES)
def test_row_names_no_fact(topic, row):
    """Pages would read it as one."""
    assert "[[" not in "".join(
        row[f][lang] for f in ("claim", "correct") for lang in LANGUAGES
    )


GOOD = {
    "id": "a-claim",
    "claim": {"en": "A.", "zh": "甲。"},
    "met": ["https://example.org/a"],
    "verdict": "wrong",
    "correct": {"en": "B.", "zh": "乙。"},
    "page": "index.md",
    "check": "code",
}


def test_good():
    assert claims.problem_of(GOOD) is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"id": "A claim"}, "id is not"),
        ({"verdict": "false"}, "verdict is none of"),
        ({"met": ["tutorials"]}, "met: tutorials is no address"),
        ({"met": []}, "met is not a list"),
        ({"met": ["https://github.com/me/x/blob/main/a.md"]}, "met: https"),
        ({"met": ["https://example.org/"] * 2}, "met is not a list"),
        ({"check": True}, "check is none of"),
        ({"check": "example"}, "an example decides nothing"),
        ({"claim": {"en": "A."}}, "claim is not one text"),
        ({"correct": "B."}, "correct is not one text"),
        ({"source": "me"}, "unknown field source"),
        ({"was": "no-topic"}, "was: no topic no-topic"),
    ],
)
def test_bad(change, says):
    assert claims.problem_of(GOOD | change).startswith(says)
    bare = {name: value for name, value in GOOD.items() if name != "check"}
    assert "neither a check nor a citation" in claims.problem_of(bare)
    assert claims.problem_of("a string") == "is no mapping"
    assert claims.problem_of({"id": "a"}).startswith("no claim")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({}, "Decided by code"),
        ({"check": "arithmetic"}, "Decided by arithmetic on named numbers"),
        ({"check": "record"}, "Decided by a stored record"),
        ({"check": "example"}, "Decided by its sources, with an example in code"),
        ({"verdict": "open"}, "Not decided; what there is"),
    ],
)
def test_a_row_says_what_decides_it(change, says, monkeypatch):
    """The fold's title says how; in it stand the places, the sources and the code."""
    monkeypatch.setattr(claims, "check_source", lambda topic, row: "assert True")
    row = GOOD | {"cite": ["ba2016layer"]} | change
    shown, folded = claims.entry("basics", row, "en").split("\n\n??? note ")
    assert "✗ wrong" in shown or "○ open" in shown
    assert "B. More: [" in shown and "Ba et al." not in shown
    assert folded.startswith(f'"{says}"\n')
    assert "    Met at [example.org](" in folded and "    assert True" in folded
    assert "    Sources: [Ba et al., 2016](https" in folded


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_tally_counts_every_row(topic, language):
    """The bar grows by the counts that the words beside it say."""
    shown = claims.topic_list(topic, language).splitlines()[0]
    grown = re.findall(r'data-verdict="([\w-]+)" .*?grow: (\d+)"></span>', shown)
    assert sum(int(count) for _, count in grown) == len(claims.rows(topic))
    for verdict, count in grown:
        name = claims.WORDS[language][verdict]
        assert f"{claims.MARKS[verdict]} {name} {count}" in shown


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_overview_follows_the_navigation(language):
    order = [path for path, _ in reference_lists.in_reading_order(language)]
    listed = re.findall(r"^\| \[.*?\]\((.*?)\)", claims.overview(language), re.M)
    assert len(listed) == len(TOPICS)
    assert [p for p in order if p.removeprefix("claims/") in listed] == [
        f"claims/{path}" for path in listed
    ]


def _line(text: str, part: str) -> str:
    return next(line for line in text.splitlines() if part in line)


def test_a_row_that_moved_keeps_its_anchor():
    """On its old page, behind a fold, with the claim as a link to where it is."""
    rows = [(topic, row) for topic, row in ROWS if row.get("was")]
    assert rows
    for topic, row in rows:
        assert row["was"] != topic
        for language in LANGUAGES:
            old = claims.topic_list(row["was"], language)
            line = f"]({topic}.md#{row['id']}){{ #{row['id']} }}"
            said = claims.WORDS[language][row["verdict"]]
            assert f"{claims.MARKS[row['verdict']]} {said}" in _line(old, line)
            assert old.count(line) == 1 == old.count(f"{{ #{row['id']} }}")
    assert claims.moved("basics", "en") == []


def test_a_place_is_named_after_its_host_or_repository():
    assert claims.place_link("https://www.example.org/a/b") == (
        "[example.org](https://www.example.org/a/b)"
    )
    blob = "https://github.com/me/notes/blob/0ab/a/teaching.md"
    assert claims.place_link(blob) == f"[me/notes: teaching.md]({blob})"
    blob = "https://github.com/me/notes/blob/0ab/%E5%BD%92%E4%B8%80%20%28BN%29.md"
    assert claims.place_link(blob) == f"[me/notes: 归一 (BN).md]({blob})"
    assert claims.place_link("ba2016layer").startswith("[Ba et al., 2016](https://")


def test_damaged_file_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "ROOT", tmp_path)
    monkeypatch.setattr(claims, "FOLDER", tmp_path)
    (tmp_path / "basics.yml").write_text("- id: [", encoding="utf-8")
    with pytest.raises(SourceError, match=r"^basics\.yml: ") as caught:
        claims.rows("basics")
    assert "\n" not in str(caught.value)


def test_enough_claims_and_checks():
    assert len(ROWS) >= 170
    assert sum(bool(row.get("check")) for _, row in ROWS) >= 110
    assert 2 * sum(bool(row.get("met")) for _, row in ROWS) >= len(ROWS)


KINDS_OF_DECISION = (
    "by_code",
    "by_arithmetic",
    "by_record",
    "by_source",
    "undecided",
)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_counts_on_the_index_are_the_rows(language, monkeypatch):
    """Each kind of decision once, and together they are all rows."""
    text = PAGES[language]["claims/index.md"].text
    for name in ("count", "with_place", *KINDS_OF_DECISION):
        assert text.count(f"[[ claims.{name} ]]") == 1
    counts = {name: int(claims.make(name, language)) for name in claims.COUNTS}
    assert sum(counts[name] for name in KINDS_OF_DECISION) == len(ROWS)
    assert counts["count"] == len(ROWS)
    kinds = [{"check": kind} for kind in claims.KINDS] + [{}, {"verdict": "open"}]
    rows = [("basics", {"verdict": "wrong"} | kind) for kind in kinds]
    rows[0][1]["met"] = ["https://example.org/"]
    monkeypatch.setattr(claims, "everything", lambda: rows)
    found = {name: claims.make(name, language) for name in claims.COUNTS}
    ones = dict.fromkeys((*KINDS_OF_DECISION, "with_place"), "1")
    assert found == {"count": "6", "wrong": "5"} | ones | {"by_source": "2"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_row_without_a_place_says_so(language, monkeypatch):
    monkeypatch.setattr(claims, "check_source", lambda topic, row: "assert True")
    heard, bare = claims.WORDS[language]["heard"], dict(GOOD)
    assert heard not in claims.entry("basics", bare, language)
    del bare["met"]
    assert heard in claims.entry("basics", bare, language)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_row_can_be_answered_where_a_repository_is_set(language, monkeypatch):
    topic, row = ROWS[0]
    monkeypatch.delenv("REPO_URL", raising=False)
    assert claims.report(topic, row, language) is None
    assert "issues/new" not in claims.entry(topic, row, language)
    monkeypatch.setenv("REPO_URL", "https://example.org/norms/")
    address = claims.report(topic, row, language)
    assert f"]({address})" in claims.entry(topic, row, language)
    assert address.startswith("https://example.org/norms/issues/new?")
    filled = parse_qs(urlsplit(address).query)
    assert filled["title"] == [f"claims: {topic}#{row['id']}"]
    assert row["claim"][language] in filled["body"][0]


def test_ten_lead():
    assert sorted(row["top"] for _, row in ROWS if row.get("top")) == [*range(1, 11)]


def test_pages_link_back():
    path = ROWS[0][1]["page"].partition("#")[0]
    for lang in LANGUAGES:
        text = claims.append_links("text\n", path, lang)
        assert f"#{ROWS[0][1]['id']})" in text and text.startswith("text\n")
        assert claims.append_links("text\n", "no/page.md", lang) == "text\n"
