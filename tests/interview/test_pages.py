"""The interview's pages: every question and item once, evidence as links, one line for
what is wrong."""

import re
from collections import Counter
from itertools import pairwise

import pytest

from scripts.site.data import claims, reference_lists
from scripts.site.pages import page_parts
from scripts.site.questions import interview, interview_pages
from scripts.site.questions.interview import GROUPS
from scripts.site.reading.source import LANGUAGES, ROOT, SourceError, headings
from tests.interview.test_bank import GOOD, GOOD_ITEM
from tests.pages.page_prose import EN, ZH

PAGES = {"zh": ZH, "en": EN}
RMS_NORM = "rmsnorm/rms-norm.md"
TOPIC, CLAIM = claims.everything()[0]


def bank_of(monkeypatch, **groups) -> None:
    """The bank and the quiz hold these rows alone, {group: rows}."""
    rows = {name.replace("_", "-"): found for name, found in groups.items()}

    def of(group, items):
        return [row for row in rows.get(group, []) if ("options" in row) is items]

    monkeypatch.setattr(interview, "questions", lambda group: of(group, items=False))
    monkeypatch.setattr(interview, "quiz", lambda group: of(group, items=True))


def of_evidence(*evidence) -> dict:
    return GOOD | {"evidence": list(evidence)}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("group", interview.GROUPS)
def test_group_has_its_page(group, language):
    rows = interview.questions(group)
    if rows:
        page = PAGES[language][f"interview/{group}.md"]
        name = group.replace("-", "_")
        assert page.text.count(f"[[ interview.{name} ]]") == 1
        found = [h.id for h in headings(interview_pages.questions(group, language))]
        assert found == [row["id"] for row in rows]


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_item_stands_on_one_quiz_page(language):
    assert sum(interview_pages.QUIZ_PAGES.values(), ()) == interview.GROUPS
    shown = []
    for page in interview_pages.QUIZ_PAGES:
        name = page.replace("-", "_")
        assert f"[[ interview.{name} ]]" in PAGES[language][f"interview/{page}.md"].text
        text = interview_pages.quiz_page(page, language)
        shown += re.findall(r'<div class="quiz" id="([\w-]+)"', text)
    assert sorted(shown) == sorted(row["id"] for _, row in interview.items())


def test_every_name_is_on_a_page(no_violations):
    empty = {
        g.replace("-", "_") for g in interview.GROUPS if not interview.questions(g)
    }
    for language in LANGUAGES:
        text = "".join(page.text for page in PAGES[language].values())
        names = (name for name in interview_pages.names() if name not in empty)
        no_violations(n for n in names if f"[[ interview.{n} ]]" not in text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_is_left_to_resolve(language):
    for name in interview_pages.names():
        assert not re.search(
            r"\[\[ *(?:facts|cite)", interview_pages.make(name, language)
        )


def test_the_bank_fills_the_sheet():
    assert len(interview_pages.chosen()) == interview_pages.SHEET
    assert (
        sum(bool(row.get("top")) for _, row in interview.bank())
        == interview_pages.SHEET
    )


def test_the_sheet_takes_of_every_group(monkeypatch):
    top = GOOD | {"top": True, "opener": GOOD["short"]}
    many = [top | {"id": f"q-{i}"} for i in range(50)]
    one = [top | {"id": "only"}, GOOD | {"id": "not-asked"}]
    bank_of(monkeypatch, rms_norm=many, frontier=one)
    chosen = interview_pages.chosen()
    assert len(chosen) == interview_pages.SHEET
    assert chosen[-1] == ("frontier", one[0])
    assert [row["id"] for _, row in chosen[:-1]] == [f"q-{i}" for i in range(39)]
    assert interview_pages.sheet("en").count("1. **[") == interview_pages.SHEET


def test_what_is_said_tonight_is_on_the_sheet():
    chosen = {row["id"]: row for _, row in interview_pages.chosen()}
    for language in LANGUAGES:
        made = interview_pages.tonight(language)
        for name in interview_pages.TONIGHT:
            opener = chosen[name]["opener"][language].rstrip(".。")
            assert f"#{name})**" in made and f"    **{opener}**" in made


def test_most_of_the_sheet_was_asked_in_public():
    asked = [row["id"] for _, row in interview_pages.chosen() if "asked" in row]
    assert len(asked) >= 33
    listed = interview_pages.asked("en")
    assert listed.startswith('??? note "')
    assert all(f"#{name})" in listed for name in asked)


def test_what_is_in_a_smaller_list_says_so(monkeypatch):
    """A question of the forty, one asked in public, an item with their evidence."""
    rows = [
        GOOD | {"id": "a", "top": True, "opener": GOOD["short"]},
        GOOD | {"id": "b", "asked": ["https://example.org/"]},
        GOOD | {"id": "c"},
    ]
    bank_of(monkeypatch, rms_norm=rows)
    found = [interview_pages.within(row) for row in rows]
    assert found == [' data-in="forty"', ' data-in="public"', ""]
    item = {k: v for k, v in GOOD_ITEM.items() if k != "check"}
    same, other = GOOD["evidence"], ["cite:nobody1999nothing"]
    assert interview_pages.within(item | {"evidence": same}) == ' data-in="forty"'
    assert interview_pages.within(item | {"evidence": other}) == ""
    listed = interview_pages.of_level(GOOD["level"], "en")
    assert listed.count("{ .public }") == 1 and '"3 questions, 1 asked' in listed


@pytest.mark.parametrize(
    ("evidence", "link"),
    [
        (f"{RMS_NORM}#backward", f"](../{RMS_NORM}#backward)"),
        (RMS_NORM, f"[RMSNorm](../{RMS_NORM})"),
        ("cite:zhang2019rms", "https://arxiv.org/abs/1910.07467)"),
        (f"claim:{TOPIC}#{CLAIM['id']}", f"](../claims/{TOPIC}.md#{CLAIM['id']})"),
        ("record:norm_speed_cpu", "/norm_speed_cpu.json)"),
    ],
)
def test_evidence_is_a_link(evidence, link, monkeypatch):
    bank_of(monkeypatch, rms_norm=[of_evidence(evidence)])
    for language in LANGUAGES:
        assert link in interview_pages.questions("rms-norm", language)


def test_a_section_is_named_by_page_and_heading(monkeypatch):
    bank_of(monkeypatch, rms_norm=[of_evidence(f"{RMS_NORM}#backward")])
    title = next(h.title for h in headings(EN[RMS_NORM].text) if h.id == "backward")
    assert f"[RMSNorm: {title}](" in interview_pages.questions("rms-norm", "en")


@pytest.mark.parametrize(
    ("evidence", "says"),
    [
        ("no/page.md", "a-question: no page no/page.md"),
        (f"{RMS_NORM}#nowhere", f"a-question: {RMS_NORM} has no #nowhere"),
        ("claim:basics#nobody-says-so", "a-question: no claim basics#nobody-says-so"),
        ("cite:nobody1999nothing", "a-question: no citation nobody1999nothing"),
        ("record:guesses", "a-question: no record of 'guesses'"),
    ],
)
def test_unknown_evidence_is_one_line(evidence, says, monkeypatch):
    bank_of(monkeypatch, rms_norm=[of_evidence(evidence)])
    with pytest.raises(SourceError) as caught:
        interview_pages.check("en")
    assert str(caught.value) == says


def test_unknown_fact_is_one_line(monkeypatch):
    short = {"en": "[[ facts.guesses.all ]]", "zh": "[[ facts.guesses.all ]]"}
    bank_of(monkeypatch, rms_norm=[GOOD | {"short": short}])
    with pytest.raises(SourceError, match=r": unknown .* 'guesses'; known: "):
        interview_pages.check("en")


def test_item_without_its_check_is_one_line(monkeypatch):
    bank_of(monkeypatch, rms_norm=[GOOD_ITEM | {"id": "nobody-wrote-it"}])
    with pytest.raises(SourceError, match=r"quiz_rms_norm\.py has no nobody_wrote_it"):
        interview_pages.check("en")


def test_unknown_name_is_one_line():
    with pytest.raises(SourceError, match="known: count, quiz_count"):
        interview_pages.make("quiz_of_fish", "en")


def test_facts_and_citations_are_filled_in(monkeypatch):
    text = "[[ facts.norm_speed_cpu.noise ]] [[ cite.zhang2019rms ]]"
    bank_of(monkeypatch, rms_norm=[GOOD | {"answer": {"en": text, "zh": text}}])
    assert "(https://arxiv.org/abs/1910.07467)" in interview_pages.questions(
        "rms-norm", "en"
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_answer_of_a_follow_up_is_folded_behind_it(language, monkeypatch):
    hard = {"en": 'Is `"a"` $< b$?', "zh": '`"a"` $< b$ 吗？'}  # for a box's title
    follow_up = GOOD["follow_up"] | {"question": hard}
    bank_of(monkeypatch, rms_norm=[GOOD | {"follow_up": follow_up}])
    made = interview_pages.questions("rms-norm", language)
    label = {"en": "The follow-up: ", "zh": "追问："}[language]
    answer = follow_up["answer"][language]
    box = f'    ??? question "{label}{hard[language]}"\n\n        {answer}\n'
    assert box in made and made.count(answer) == 1
    quoted = {"en": '"B." C.', "zh": "“乙。”丙。"}[language]
    assert f"\n    {quoted}\n" in made
    page = ROOT / "docs" / language / "pages/interview/rms-norm.md"
    text = "\n".join(
        part.text for part in page_parts.parts(page, language, "https://a.org/")
    )
    assert text.split(f"**{label}{hard[language]}**")[1].split()[0] == answer


def test_an_item_is_the_same_in_both_languages(monkeypatch):
    item = {k: v for k, v in GOOD_ITEM.items() if k != "check"}
    bank_of(monkeypatch, rms_norm=[item])
    orders = {
        tuple(
            re.findall(
                r'name="choice" value="(\w+)"',
                interview_pages.quiz_page("quiz-methods", language),
            )
        )
        for language in LANGUAGES
    }
    assert len(orders) == 1 and sorted(*orders) == ["one", "three", "two"]
    letter = re.search(
        r'data-letter="(\w)"', interview_pages.quiz_page("quiz-methods", "en")
    )[1]
    assert f"{letter} is right." in interview_pages.quiz_page("quiz-methods", "en")


def test_each_letter_is_right_equally_often():
    letters = Counter(
        (
            len(row["options"]),
            list(interview_pages.shuffled(row).values()).index(row["answer"]),
        )
        for _, row in interview.items()
    )
    for size in {size for size, _ in letters}:
        found = [letters[size, place] for place in range(size)]
        assert max(found) - min(found) <= 1


def test_the_next_letter_cannot_be_guessed():
    """In the order of the pages, the letter after a letter is not always the same."""
    order = [row for group in GROUPS for row in interview.quiz(group)]
    places = [
        list(interview_pages.shuffled(r).values()).index(r["answer"]) for r in order
    ]
    steps = Counter((b - a) % 4 for a, b in pairwise(places))
    assert max(steps.values()) < len(order) / 2


def test_pages_link_back(monkeypatch):
    bank_of(monkeypatch, rms_norm=[of_evidence(f"{RMS_NORM}#backward")])
    for language in LANGUAGES:
        text = interview_pages.append_links("text\n", RMS_NORM, language)
        assert text.startswith("text\n")
        assert "](../interview/rms-norm.md#a-question)" in text
        assert (
            interview_pages.append_links("text\n", "no/page.md", language) == "text\n"
        )


def test_subject_is_the_title_without_its_section():
    assert interview_pages.subject("numerics", "en") == "Numerics"
    assert reference_lists.subject("面试：数值精度") == "数值精度"


def test_programs_read_plain_markdown(monkeypatch):
    item = {k: v for k, v in GOOD_ITEM.items() if k != "check"}
    asked = GOOD | {"id": "b", "asked": ["https://example.org/"]}
    bank_of(monkeypatch, rms_norm=[GOOD, asked, item])
    folder = ROOT / "docs/en/pages/interview"
    for name, wanted in (
        ("rms-norm", ["# A.", "**Answer**", "**Short answer**\n\nA."]),
        ("quiz-methods", ["A?", "-  A. A.", " is right.", "- **A**: B."]),
        ("index", ["/interview/rms-norm/#b)\n", "(https://example.org/)"]),
    ):
        parts = page_parts.parts(folder / f"{name}.md", "en", "https://example.org/en/")
        text = "\n".join(part.text for part in parts)
        assert not re.search(r"</?\w+[ >]|\?\?\?|\[\[|\.public", text), text
        for words in wanted:
            assert words in text
