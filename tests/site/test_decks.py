"""The flashcards, read by Anki's own library."""

import re
from copy import deepcopy

import pytest
from anki.collection import (
    Collection,
    ImportAnkiPackageOptions,
    ImportAnkiPackageRequest,
)

from scripts.site import asked, decks, interview
from scripts.site.source import LANGUAGES, SourceError

URL = "https://example.org/en/"
MOMENT = 1_760_000_000
TEXT = {"en": "Why $x < 1$?", "zh": "为什么 $x < 1$？"}
ROW = {
    "id": "a-question",
    "level": "screening",
    "evidence": ["rmsnorm/rms-norm.md#backward", "cite:zhang2019rms"],
    **{field: TEXT for field in interview.TEXTS},
    **{name: dict.fromkeys(of, TEXT) for name, of in interview.PAIRS.items()},
}
FULL = "**Bold** and `a < b`, [[ cite.zhang2019rms ]].\n\n- one\n- two\n\n$$\na < b\n$$"
BANK = [
    ("rms-norm", ROW | {"answer": {"en": FULL, "zh": FULL}}),
    ("rms-norm", ROW | {"id": "another-question"}),
]


@pytest.fixture
def bank(monkeypatch):
    """A bank of two questions that a test may change."""
    made = deepcopy(BANK)
    monkeypatch.setattr(interview, "bank", lambda: made)
    monkeypatch.setattr(asked, "subject", lambda group, language: group)
    return made


@pytest.fixture
def collection(tmp_path):
    """An empty collection of a reader, and the packages that it takes."""
    made = Collection(str(tmp_path / "collection.anki2"))

    def take(content: bytes):
        path = tmp_path / "deck.apkg"
        path.write_bytes(content)
        options = ImportAnkiPackageOptions(merge_notetypes=False)
        request = ImportAnkiPackageRequest(package_path=str(path), options=options)
        return made.import_anki_package(request).log

    made.take = take
    yield made
    made.close()


@pytest.mark.parametrize("language", LANGUAGES)
def test_import(language, bank, collection):
    log = collection.take(decks.package(language, URL, MOMENT))
    assert (len(log.new), collection.note_count(), collection.card_count()) == (2, 2, 2)
    note = collection.get_note(collection.find_notes("tag:norms::rms-norm")[0])
    assert tuple(note.keys()) == decks.FIELDS + decks.LABELS
    assert all(note.values())
    assert note.tags == ["norms::rms-norm", "norms::screening"]
    assert collection.decks.by_name(decks.WORDS[language]["name"])


def test_what_a_card_shows(bank, collection):
    collection.take(decks.package("en", URL, MOMENT))
    card = collection.get_note(min(collection.find_notes(""))).cards()[0]
    shown = card.render_output()
    assert r"\(x &lt; 1\)" in shown.question_text
    answer = shown.answer_text
    assert re.search(r"\\\[\s*a &lt; b\s*\\\]", answer)
    assert "<strong>Bold</strong>" in answer and "<code>a &lt; b</code>" in answer
    assert "<li>one</li>" in answer
    assert ">Zhang &amp; Sennrich, 2019</a>" in answer
    assert f'href="{URL}rmsnorm/rms-norm/#backward"' in answer
    assert f'href="{URL}interview/rms-norm/#a-question"' in answer
    assert not re.search(r"\[\[|\$|\{\{|\.md", answer)


def test_both_languages_side_by_side(bank, collection):
    for language in LANGUAGES:
        collection.take(decks.package(language, URL, MOMENT))
    assert collection.note_count() == 2 * len(bank)


def test_second_import_adds_nothing(bank, collection):
    content = decks.package("en", URL, MOMENT)
    collection.take(content)
    log = collection.take(content)
    assert (len(log.new), len(log.updated), len(log.duplicate)) == (0, 0, 2)


def test_new_version_updates_in_place(bank, collection):
    collection.take(decks.package("en", URL, MOMENT))
    before = {note: collection.get_note(note).cards() for note in notes(collection)}
    learned = collection.find_cards("")
    collection.sched.set_due_date(learned, "5")
    bank[1][1]["short"] = {"en": "Now $y$.", "zh": "现在是 $y$。"}
    bank[0] = ("numerics", bank[0][1])  # to another group
    bank.insert(0, ("rms-norm", ROW | {"id": "a-third-question"}))
    log = collection.take(decks.package("en", URL, MOMENT + 60))
    assert (len(log.new), collection.note_count()) == (1, 3)
    moved = collection.get_note(collection.find_notes("tag:norms::numerics")[0])
    assert moved.id in before and moved["Group"] == "numerics"
    assert set(before) < set(notes(collection))
    changed = [n for n in before if "Now" in collection.get_note(n)["Short"]]
    assert len(changed) == 1
    assert all(collection.get_card(card).ivl == 5 for card in learned)


def notes(collection) -> list[int]:
    return list(collection.find_notes(""))


@pytest.mark.parametrize("language", LANGUAGES)
def test_whole_bank(language, collection):
    log = collection.take(decks.package(language, URL, MOMENT))
    assert len(log.new) == len(interview.bank())
    for number in notes(collection):
        values = collection.get_note(number).values()
        assert all(values)
        text = " ".join(values)
        assert text.count(r"\(") == text.count(r"\)"), text
        prose = re.sub(r"<code>.*?</code>", "", text)
        assert "[[" not in prose and "$" not in prose, prose


def test_same_sources_same_bytes(bank):
    first = decks.package("en", URL, MOMENT)
    assert decks.package("en", URL, MOMENT) == first
    bank[0][1]["short"] = {"en": "Other.", "zh": "别的。"}
    assert decks.package("en", URL, MOMENT) != first


def test_moment_is_that_of_the_last_change(monkeypatch, tmp_path):
    assert decks.moment() == decks.moment() > 0
    (tmp_path / "rms-norm.yml").write_text("[]")
    monkeypatch.setattr(decks, "ROOT", tmp_path)  # no repository
    monkeypatch.setattr(interview, "QUESTIONS", tmp_path)
    assert decks.moment() == int((tmp_path / "rms-norm.yml").stat().st_mtime)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"short": dict.fromkeys(LANGUAGES, "[[ facts.no.such ]]")}, "unknown"),
        ({"answer": dict.fromkeys(LANGUAGES, "[[ cite.nobody ]]")}, "unknown citation"),
        ({"evidence": ["claim:basics#nobody-says-so"]}, "no claim"),
        ({"evidence": ["no/page.md"]}, "no page"),
    ],
)
def test_bad_data_is_one_line(change, says, bank):
    with pytest.raises(SourceError, match=says) as caught:
        decks.fields("rms-norm", ROW | change, "en", URL)
    assert "\n" not in str(caught.value)


def test_ids_are_those_that_readers_have(bank):
    """A changed id would give every reader a second deck."""
    assert decks.IDS == {"zh": 1763700000001, "en": 1763700000002}
    guids = [note.guid for note in decks.deck("en", URL).notes]
    assert guids == ["O$A7n5?2Xs", "z6I>N69kU?"]
