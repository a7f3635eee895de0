"""The question bank and the quiz are whole: form, evidence, both languages, prose."""

import re

import pytest

from scripts.measure import records
from scripts.site.data import citations, claims
from scripts.site.pages import macros
from scripts.site.questions import interview
from scripts.site.reading import files
from scripts.site.reading.source import LANGUAGES, SNIPPETS, SourceError, headings
from tests.pages import test_terms
from tests.pages.page_prose import EN, ZH

PAGES = {"zh": ZH, "en": EN}
BANK = [row for _, row in interview.bank()]
ITEMS = [row for _, row in interview.items()]
ROWS = BANK + ITEMS
CLAIMS = {f"{topic}#{row['id']}" for topic, row in claims.everything()}
UNSPOKEN = re.compile(r"\[\[.*?\]\]|\\(?:mathrm|operatorname|t?frac)|[`*{}$\\]")
ENGLISH = re.compile(r"\w+(?:[.,]\d+)?|[=+/^<>]")  # a word, a number, a sign
HAN = re.compile(r"[\u4e00-\u9fff]")
A_MINUTE = {"en": 140, "zh": 225}  # words and characters, as one explains
HALF_A_MINUTE = (22, 36)  # seconds
ONE_LINE = {"en": re.compile(r"[^\W_][\w'’-]*"), "zh": HAN}
LONGEST_LINE = {"en": 20, "zh": 40}  # words, Chinese characters
OF_THE_SITE = re.compile(
    r"本站|我们|(?i:\b(?:this site|we|our|ours)\b)|\bus\b"
    r"|这里(?:没有?|未|只)?测(?:过|量)|在这里训练|\b(?:measured|trained|run) here\b"
)
SPOKEN = ("opener", "short", "follow_up.answer")  # of them none quotes a record


def texts(row) -> list[tuple[str, dict]]:
    """(field, its text in both languages) of a question or an item."""
    if "options" not in row:
        return list(interview.texts(row).items())
    found = [("question", row["question"])]
    for name, option in row["options"].items():
        found += [(f"{name}.{field}", option[field]) for field in ("text", "why")]
    return found


def seconds(text: str, language: str) -> float:
    """How long a text takes aloud; in Chinese a foreign word is as long as two."""
    plain = UNSPOKEN.sub(" ", text)
    said = len(ENGLISH.findall(HAN.sub(" ", plain)))
    if language == "zh":
        said = len(HAN.findall(plain)) + 2 * said
    return 60 * said / A_MINUTE[language]


def missing(evidence: str) -> list[str]:
    """Why a piece of evidence leads nowhere; empty if it leads somewhere."""
    kind, _, name = evidence.partition(":")
    if kind == "claim":
        return [] if name in CLAIMS else [f"no claim {name}"]
    if kind == "cite":
        return [] if name in citations.references() else [f"no citation {name}"]
    if kind == "record":
        return [] if name in records.experiments() else [f"no experiment {name}"]
    path, _, anchor = evidence.partition("#")
    found = []
    for lang in LANGUAGES:
        if path not in PAGES[lang]:
            found.append(f"no page {path} in {lang}")
        elif anchor not in {h.id for h in headings(PAGES[lang][path].text)} | {""}:
            found.append(f"{path} has no #{anchor} in {lang}")
    return found


def test_enough_of_every_kind():
    assert len(BANK) >= 200
    assert {group for group, _ in interview.bank()} == set(interview.GROUPS)
    for group in interview.GROUPS:
        levels = {row["level"] for row in interview.questions(group)}
        assert levels == set(interview.LEVELS), group
    assert len(ITEMS) >= 130
    assert sum(bool(row.get("check")) for row in ITEMS) >= 40
    tasks = list((SNIPPETS / "coding").glob("*_stub.py"))
    assert len(tasks) + len(list((SNIPPETS / "spot_the_bug").glob("*.py"))) >= 20


def test_each_id_is_unique(no_violations):
    for rows in (BANK, ITEMS):
        names = [row["id"] for row in rows]
        no_violations(
            f"{name} stands twice" for name in set(names) if names.count(name) > 1
        )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_evidence_leads_somewhere(row, no_violations):
    no_violations(
        f"{row['id']}: {v}" for entry in row["evidence"] for v in missing(entry)
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_names_exist(row):
    for _, text in texts(row):
        for lang in LANGUAGES:
            macros.check_names(text[lang])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_code_is_in_snippets(row):
    assert not any("```" in text["zh"] + text["en"] for _, text in texts(row))


@pytest.mark.parametrize("row", BANK, ids=lambda row: row["id"])
def test_an_answer_speaks_the_names_of_the_field(row, no_violations):
    answer = "\n\n".join(
        text["zh"] for field, text in texts(row) if field != "question"
    )
    found = test_terms.unspoken(answer, test_terms.TERMS)
    no_violations(f"{row['id']}: {v.partition(': ')[2]}" for v in found)


@pytest.mark.parametrize("row", BANK, ids=lambda row: row["id"])
def test_the_short_answer_takes_about_half_a_minute(row, no_violations):
    shortest, longest = HALF_A_MINUTE
    took = {lang: seconds(row["short"][lang], lang) for lang in LANGUAGES}
    no_violations(
        f"{row['id']}: {lang}: {time:.0f} s"
        for lang, time in took.items()
        if not shortest <= time <= longest
    )


@pytest.mark.parametrize("row", BANK, ids=lambda row: row["id"])
def test_an_answer_is_opened_by_one_line_and_does_not_speak_of_the_site(
    row, no_violations
):
    found = [
        f"{field}: {said[0]}"
        for field, text in texts(row)
        for lang in LANGUAGES
        for said in OF_THE_SITE.finditer(text[lang])
        if field != "weak.said"
    ]
    found += [
        f"{field}: a fact of a record"
        for field, text in texts(row)
        for lang in LANGUAGES
        if field in SPOKEN and "[[ facts." in text[lang]
    ]
    for lang in LANGUAGES:
        opener = UNSPOKEN.sub(" ", row.get("opener", {lang: ""})[lang])
        if (length := len(ONE_LINE[lang].findall(opener))) > LONGEST_LINE[lang]:
            found.append(f"opener of {length} in {lang}")
    no_violations(f"{row['id']}: {v}" for v in found)


def test_one_line():
    assert len(ONE_LINE["en"].findall("RMSNorm drops the mean: less work.")) == 6
    assert len(ONE_LINE["zh"].findall("RMSNorm 去掉均值。")) == 4
    for said in (
        "On this site's CPU",
        "In our decoders it never got stuck.",
        "We know of no comparison.",
        "Its time is not measured here.",
        "本站没有",
        "我们的小模型没有卡住。",
        "费多少时间，这里没有测过。",
    ):
        assert OF_THE_SITE.search(said), said
    assert not OF_THE_SITE.search("on site; the site of a norm; on US servers")
    assert not OF_THE_SITE.search("键在这里看不出来；here the count is all tokens")


def test_seconds():
    assert seconds("word " * 70, "en") == 30 and seconds("字" * 225, "zh") == 60
    assert seconds(r"$x = \frac{1}{2}$ [[ cite.a2020b ]]", "en") == 60 * 4 / 140
    assert seconds("用 `LayerNorm` 吗？", "zh") == 60 * 4 / 225
    shortest, longest = HALF_A_MINUTE
    assert (
        seconds("No. " * 39, "en") < shortest and seconds("不。" * 70, "zh") < shortest
    )
    assert (
        seconds("No. " * 90, "en") > longest and seconds("不。" * 170, "zh") > longest
    )


GOOD = {
    "id": "a-question",
    "level": "screening",
    "evidence": ["index.md"],
    **{field: {"en": "A.", "zh": "甲。"} for field in interview.TEXTS},
    "weak": {"said": {"en": "B.", "zh": "乙。"}, "wrong": {"en": "C.", "zh": "丙。"}},
    "follow_up": {
        "question": {"en": "D?", "zh": "丁？"},
        "answer": {"en": "E.", "zh": "戊。"},
    },
}
OPTION = {"text": {"en": "A.", "zh": "甲。"}, "why": {"en": "B.", "zh": "乙。"}}
GOOD_ITEM = {
    "id": "an-item",
    "level": "engineer",
    "question": {"en": "A?", "zh": "甲？"},
    "options": {"one": OPTION, "two": OPTION, "three": OPTION},
    "answer": "two",
    "evidence": ["index.md"],
    "check": True,
}


def paired(name: str, **change) -> dict:
    """{name: the pair of GOOD with these (en, zh)}; None takes a field away."""
    texts = {
        of: t and dict(zip(("en", "zh"), t, strict=True)) for of, t in change.items()
    }
    return {name: {of: t for of, t in (GOOD[name] | texts).items() if t}}


def test_good():
    assert interview.problem_of_question(GOOD) is None
    assert interview.problem_of_item(GOOD_ITEM) is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"id": "A question"}, "id is not"),
        ({"level": "hard"}, "level is none of"),
        ({"short": {"en": "A."}}, "short is not one text"),
        ({"answer": {"en": "A.", "zh": ""}}, "answer is empty"),
        ({"weak": {"en": "A.", "zh": "甲。"}}, "weak is not said and wrong"),
        ({"follow_up": "D? E."}, "follow_up is not question and answer"),
        (paired("follow_up", answer=None), "follow_up is not question and answer"),
        (paired("follow_up", answer=("", "戊。")), "follow_up.answer is empty"),
        (paired("weak", wrong=("C.", " ")), "weak.wrong is empty"),
        (paired("weak", said=('"B."', "乙。")), "weak.said stands in quotation marks"),
        (
            paired("follow_up", question=("D?", "“丁？”")),
            "follow_up.question stands in quotation marks (zh)",
        ),
        (
            paired("follow_up", answer=("D? E.", "戊。")),
            "follow_up.answer begins with a question (en)",
        ),
        (
            paired("follow_up", answer=("E.", "为什么？戊。")),
            "follow_up.answer begins with a question (zh)",
        ),
        ({"evidence": []}, "evidence is not a list"),
        ({"evidence": ["hearsay"]}, "evidence 'hearsay' is no"),
        ({"source": "me"}, "unknown field source"),
        ({"asked": ["somebody"]}, "asked: somebody is no address"),
        ({"top": True}, "top and opener come together"),
        ({"opener": {"en": "A.", "zh": "甲。"}}, "top and opener come together"),
        ({"top": True, "opener": {"en": "A."}}, "opener is not one text"),
    ],
)
def test_bad_question(change, says):
    assert interview.problem_of_question(GOOD | change).startswith(says)
    assert interview.problem_of_question("a string") == "is no mapping"
    assert interview.problem_of_question({"id": "a"}).startswith("no answer")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"options": {"one": OPTION}}, "has not three"),
        ({"options": {"1": OPTION, "b": OPTION, "c": OPTION}}, "option 1 is not"),
        ({"options": GOOD_ITEM["options"] | {"two": {}}}, "option two has not"),
        ({"answer": "four"}, "answer is none"),
        ({"question": "A?"}, "question is not one text"),
    ],
)
def test_bad_item(change, says):
    assert interview.problem_of_item(GOOD_ITEM | change).startswith(says)


@pytest.mark.parametrize(
    ("evidence", "says"),
    [
        ("no/page.md", "no page no/page.md"),
        ("rmsnorm/rms-norm.md#nowhere", "rmsnorm/rms-norm.md has no #nowhere"),
        ("claim:basics#nobody-says-so", "no claim"),
        ("cite:nobody1999nothing", "no citation"),
        ("record:guesses", "no experiment"),
    ],
)
def test_evidence_that_leads_nowhere(evidence, says):
    assert missing(evidence)[0].startswith(says)
    assert missing("rmsnorm/rms-norm.md#backward") == []


def test_damaged_file_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "ROOT", tmp_path)
    monkeypatch.setattr(interview, "QUESTIONS", tmp_path)
    (tmp_path / "coding.yml").write_text("- id: [", encoding="utf-8")
    with pytest.raises(SourceError, match=r"^coding\.yml: ") as caught:
        interview.questions("coding")
    assert "\n" not in str(caught.value)
