"""The flashcards, read by Anki's own library."""

import itertools
import re
import sqlite3
from copy import deepcopy
from types import SimpleNamespace

import pytest
from anki.collection import (
    Collection,
    ImportAnkiPackageOptions,
    ImportAnkiPackageRequest,
    ImportCsvRequest,
)

from scripts.site.data import reference_lists
from scripts.site.publish import anki_decks
from scripts.site.publish.archive import zipped
from scripts.site.questions import interview, interview_pages
from scripts.site.reading.source import LANGUAGES, SourceError

URL = "https://example.org/en/"
MOMENT = 1_760_000_000
LOCAL = ("/", "http://localhost:8000/en/", "http://127.0.0.1:8731/en/", "http://[::1]/")
TEXT = {"en": "Why $x < 1$?", "zh": "为什么 $x < 1$？"}


def said(text: str) -> dict:
    return {"en": f"{text} $x < 1$.", "zh": f"{text} $x < 1$。"}


ROW = {
    "id": "a-question",
    "level": "screening",
    "evidence": ["rmsnorm/rms-norm.md#backward", "cite:zhang2019rms"],
    **{field: TEXT for field in interview.TEXTS},
    "weak": {"said": said("Said"), "wrong": said("Wrong")},
    "follow_up": {"question": said("Asked"), "answer": said("Answered")},
}
ITEM = {
    "id": "an-item",
    "level": "engineer",
    "question": TEXT,
    "options": {
        name: {"text": said(f"Option {name}"), "why": said(f"Because {name}")}
        for name in ("one", "two", "three")
    },
    "answer": "two",
    "evidence": ["rmsnorm/rms-norm.md#backward", "cite:zhang2019rms"],
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
    monkeypatch.setattr(interview, "items", lambda: [])
    monkeypatch.setattr(interview_pages, "subject", lambda group, language: group)
    return made


@pytest.fixture
def quiz(bank, monkeypatch):
    """A bank and two quiz items that a test may change."""
    made = [("rms-norm", deepcopy(ITEM)), ("rms-norm", deepcopy(ITEM) | {"id": "b"})]
    monkeypatch.setattr(interview, "items", lambda: made)
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
    log = collection.take(anki_decks.package(language, URL, MOMENT))
    assert (len(log.new), collection.note_count(), collection.card_count()) == (6, 6, 6)
    for kind in anki_decks.KINDS:
        note = collection.get_note(min(notes(collection, f"tag:norms::{kind}")))
        assert tuple(note.keys()) == anki_decks.FIELDS + anki_decks.LABELS
        assert sorted(note.tags) == sorted(
            ["norms::rms-norm", "norms::screening", f"norms::{kind}"]
        )
    assert collection.decks.by_name(anki_decks.WORDS[language]["name"])


def shown(collection, kind: str) -> tuple[str, str]:
    """(front, back) of the first card of a kind; the back without the front."""
    note = collection.get_note(min(notes(collection, f"tag:norms::{kind}")))
    (card,) = note.cards()
    output = card.render_output()
    return output.question_text, output.answer_text.removeprefix(output.question_text)


def words(html: str) -> str:
    blocks = re.sub(r"</?span[^>]*>", "", html)  # a formula's stands inside a word
    return " ".join(re.sub(r"<[^>]*>", " ", blocks).split())


@pytest.mark.parametrize(
    ("kind", "front", "back"),
    [
        ("question", r"Why \(x &lt; 1\)?", r"Why \(x &lt; 1\)? In full Bold"),
        (
            "follow-up",
            r"Why \(x &lt; 1\)? The follow-up Asked \(x &lt; 1\).",
            r"Answered \(x &lt; 1\). The question on the site, under rms-norm",
        ),
        (
            "weak",
            r"Why \(x &lt; 1\)? A weak answer: what is wrong with it?"
            r' "Said \(x &lt; 1\)."',
            r"Wrong \(x &lt; 1\). The question on the site, under rms-norm",
        ),
    ],
)
def test_what_each_kind_of_card_asks(kind, front, back, bank, collection):
    """Each asks one thing and answers it; no card gives another's answer away."""
    collection.take(anki_decks.package("en", URL, MOMENT))
    asks, answers = map(words, shown(collection, kind))
    assert asks == f"rms-norm · screening {front}"
    assert answers.startswith(back)
    others = {"question": "Said Wrong Asked Answered", "follow-up": "Said Wrong Bold"}
    for word in others.get(kind, "Asked Answered Bold").split():
        assert word not in asks + answers


def test_what_a_card_shows(bank, collection):
    collection.take(anki_decks.package("en", URL, MOMENT))
    answer = shown(collection, "question")[1]
    assert re.search(r"\\\[\s*a &lt; b\s*\\\]", answer)
    assert "<strong>Bold</strong>" in answer and "<code>a &lt; b</code>" in answer
    assert "<li>one</li>" in answer
    assert ">Zhang &amp; Sennrich, 2019</a>" in answer
    assert f'href="{URL}rmsnorm/rms-norm/#backward"' in answer
    assert f'href="{URL}interview/rms-norm/#a-question"' in answer
    assert not re.search(r"\[\[|\$|\{\{|\.md", answer)


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_item_is_a_card(language, quiz, collection):
    """Options in front; the right one and why behind; the others' reasons folded."""
    collection.take(anki_decks.package(language, URL, MOMENT))
    assert collection.note_count() == collection.card_count() == 8
    note = collection.get_note(min(notes(collection, "tag:norms::quiz")))
    assert tuple(note.keys()) == anki_decks.QUIZ_FIELDS + anki_decks.LABELS
    assert sorted(note.tags) == ["norms::engineer", "norms::quiz", "norms::rms-norm"]
    front, back = shown(collection, "quiz")
    letters = interview_pages.shuffled(ITEM)
    right = next(letter for letter, name in letters.items() if name == "two")
    places = [words(front).index(f"{k} Option {v}") for k, v in letters.items()]
    assert places == sorted(places)
    assert "Because" not in front and words(back).count("Because") == 3
    first, folded = back.split("<details>")
    key = interview_pages.WORDS[language]["right"].format(letter=right)
    assert words(first).startswith(key) and "Because two" in words(first)
    for letter in letters.keys() - {right}:
        assert f"{letter} Because {letters[letter]}" in words(folded)
    assert f'href="{URL}interview/quiz-methods/#an-item"' in folded


def test_an_updated_item_keeps_its_schedule(quiz, collection):
    """Also where a deck without items was there before, and where a key changes."""
    items, quiz[:] = list(quiz), []
    collection.take(anki_decks.package("en", URL, MOMENT - 60))
    learned = list(collection.find_cards(""))
    collection.sched.set_due_date(learned, "5")
    quiz[:] = items
    log = collection.take(anki_decks.package("en", URL, MOMENT))
    assert (len(log.new), collection.note_count()) == (2, 8)
    learned += (new := collection.find_cards("tag:norms::quiz"))
    collection.sched.set_due_date(new, "7")
    quiz[0][1]["answer"] = "three"
    log = collection.take(anki_decks.package("en", URL, MOMENT + 60))
    assert (len(log.new), collection.note_count()) == (0, 8)
    assert {collection.get_card(card).ivl for card in learned} == {5, 7}
    changed = collection.get_note(min(notes(collection, "tag:norms::quiz")))
    assert "Because three" in changed["Right"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_table_is_read_as_well(language, quiz, collection, tmp_path):
    """By Anki, as a text file: a front, a back and tags for each card."""
    path = tmp_path / "cards.tsv"
    path.write_text(anki_decks.table(language), encoding="utf-8")
    metadata = collection.get_csv_metadata(str(path), None)
    assert list(metadata.column_labels)[:2] == ["Front", "Back"]
    assert (metadata.is_html, metadata.tags_column) == (True, 3)
    metadata.global_notetype.id = collection.models.by_name("Basic")["id"]
    collection.import_csv(ImportCsvRequest(path=str(path), metadata=metadata))
    assert collection.note_count() == 8
    for kind in (*anki_decks.KINDS, "quiz"):
        found = [
            collection.get_note(n) for n in notes(collection, f"tag:norms::{kind}")
        ]
        assert len(found) == 2 and all(note["Front"] and note["Back"] for note in found)
    assert "http://" not in path.read_text() and "localhost" not in path.read_text()


def test_both_languages_side_by_side(bank, collection):
    for language in LANGUAGES:
        collection.take(anki_decks.package(language, URL, MOMENT))
    assert collection.note_count() == 2 * 3 * len(bank)


def test_second_import_adds_nothing(bank, collection):
    content = anki_decks.package("en", URL, MOMENT)
    collection.take(content)
    log = collection.take(content)
    assert (len(log.new), len(log.updated), len(log.duplicate)) == (0, 0, 6)


def test_new_version_updates_in_place(bank, collection):
    collection.take(anki_decks.package("en", URL, MOMENT))
    before = {note: collection.get_note(note).cards() for note in notes(collection)}
    learned = collection.find_cards("")
    collection.sched.set_due_date(learned, "5")
    bank[1][1]["short"] = {"en": "Now $y$.", "zh": "现在是 $y$。"}
    bank[0] = ("numerics", bank[0][1])  # to another group
    bank.insert(0, ("rms-norm", ROW | {"id": "a-third-question"}))
    log = collection.take(anki_decks.package("en", URL, MOMENT + 60))
    assert (len(log.new), collection.note_count()) == (3, 9)
    moved = [collection.get_note(n) for n in notes(collection, "tag:norms::numerics")]
    assert len(moved) == 3 and {note.id for note in moved} <= set(before)
    assert {note["Group"] for note in moved} == {"numerics"}
    assert set(before) < set(notes(collection))
    changed = [n for n in before if "Now" in collection.get_note(n)["Short"]]
    assert len(changed) == 1
    assert all(collection.get_card(card).ivl == 5 for card in learned)


def first_deck(language: str) -> bytes:
    """The deck as readers first had it: one long card a question, nothing tagged."""
    from genanki import Deck, Model, Note, Package, guid_for

    names = ("Question", "Short", "Answer", "Weak", "FollowUp", "Evidence")
    back = "".join(f"{{{{{name}}}}}" for name in ("FrontSide", *names[1:]))
    model = Model(
        anki_decks.IDS[language],
        anki_decks.WORDS[language]["name"],
        fields=[{"name": name} for name in (*names, "Group", "Level")],
        templates=[{"name": "question", "qfmt": "{{Question}}", "afmt": back}],
    )
    made = Deck(anki_decks.IDS[language], anki_decks.WORDS[language]["name"])
    for _, row in BANK:
        guid = guid_for("norms-measured", language, row["id"])
        said = [f"Old {name}" for name in (*names, "Group", "Level")]
        made.add_note(Note(model, said, guid=guid))
    with sqlite3.connect(":memory:") as database:
        ids = itertools.count(anki_decks.IDS[language])
        Package(made).write_to_db(database.cursor(), MOMENT - 600, ids)
        database.commit()
        stored = {"collection.anki2": database.serialize(), "media": b"{}"}
    return zipped(stored)


@pytest.mark.parametrize("language", LANGUAGES)
def test_long_cards_become_short_ones_and_keep_their_schedule(
    language, bank, collection
):
    collection.take(first_deck(language))
    had = list(collection.find_cards(""))
    collection.sched.set_due_date(had, "5")
    log = collection.take(anki_decks.package(language, URL, MOMENT))
    assert (len(log.new), len(log.updated), collection.note_count()) == (4, 2, 6)
    names = [model.name for model in collection.models.all_names_and_ids()]
    assert sum(anki_decks.WORDS[language]["name"] in name for name in names) == 1
    for number in had:
        card = collection.get_card(number)
        assert card.ivl == 5 and "norms::question" in card.note().tags
        output = card.render_output()
        assert "Old" not in output.question_text + output.answer_text


def test_a_card_that_a_reader_has_changed_is_kept_and_still_asks_one_thing(
    bank, collection
):
    collection.take(first_deck("en"))
    note = collection.get_note(min(notes(collection)))
    note["Short"] = "Mine"
    collection.update_note(note)
    collection.take(anki_decks.package("en", URL, MOMENT))
    output = collection.get_note(note.id).cards()[0].render_output()
    assert "Mine" in output.answer_text
    assert not re.search("Old (Weak|FollowUp)", output.answer_text)


@pytest.mark.parametrize("address", LOCAL)
@pytest.mark.parametrize("language", LANGUAGES)
def test_without_a_published_address_pages_are_named(address, language, bank, quiz):
    title = reference_lists.pages(language)["rmsnorm/rms-norm.md"]
    for kind in anki_decks.KINDS:
        evidence = anki_decks.fields(*bank[0], kind, language, address)[5]
        links = re.findall('href="([^"]*)"', evidence)
        assert all(link.startswith("https://") for link in links), evidence
        assert "rms-norm" in words(evidence) and "](" not in evidence
    assert title in anki_decks.fields(*bank[0], "question", language, address)[5]
    evidence = anki_decks.quiz_fields(*quiz[0], language, address)[4]
    links = re.findall('href="([^"]*)"', evidence)
    assert all(link.startswith("https://") for link in links), evidence
    assert title in evidence and "](" not in evidence
    about = anki_decks.deck(language, address).description
    assert about == anki_decks.WORDS[language]["about"]
    assert anki_decks.deck(language, URL).description.startswith(about)
    assert URL in anki_decks.deck(language, URL).description


def notes(collection, query="") -> list[int]:
    return list(collection.find_notes(query))


def test_the_sheet_has_its_tag(collection):
    collection.take(anki_decks.package("en", URL, MOMENT))
    of_the_sheet = notes(collection, "tag:norms::sheet tag:norms::question")
    assert len(of_the_sheet) == interview_pages.SHEET
    wanted = {row["id"] for _, row in interview_pages.chosen()}
    pages = [collection.get_note(number)["Evidence"] for number in of_the_sheet]
    assert {re.search(r'/#([\w-]+)"', page)[1] for page in pages} == wanted


@pytest.mark.parametrize("language", LANGUAGES)
def test_whole_bank(language, collection):
    log = collection.take(anki_decks.package(language, URL, MOMENT))
    assert len(log.new) == 3 * len(interview.bank()) + len(interview.items())
    for number in notes(collection, "tag:norms::quiz"):
        assert all(collection.get_note(number).values())
    unfilled = {
        "question": {"Weak", "FollowUp"},
        "follow-up": {"Answer", "Weak"},
        "weak": {"Answer", "FollowUp"},
    }
    for kind in anki_decks.KINDS:
        for number in notes(collection, f"tag:norms::{kind}"):
            note = dict(collection.get_note(number).items())
            assert {name for name, value in note.items() if not value} == unfilled[kind]
    for number in notes(collection):
        text = " ".join(collection.get_note(number).values())
        assert text.count(r"\(") == text.count(r"\)"), text
        prose = re.sub(r"<code>.*?</code>", "", text)
        assert "[[" not in prose and "$" not in prose, prose


def test_same_sources_same_bytes(bank):
    first = anki_decks.package("en", URL, MOMENT)
    assert anki_decks.package("en", URL, MOMENT) == first
    bank[0][1]["short"] = {"en": "Other.", "zh": "别的。"}
    assert anki_decks.package("en", URL, MOMENT) != first


def test_decks_are_published_beside_the_page_that_offers_them(monkeypatch):
    made = []

    class File:
        @staticmethod
        def generated(config, uri, *, content):
            made.append((config, uri, content))
            return uri

    class Files(list):
        def get_file_from_path(self, path):
            return path in offered

    monkeypatch.setattr(anki_decks, "File", File)
    monkeypatch.setattr(anki_decks, "package", lambda *of: of)
    monkeypatch.setattr(anki_decks, "table", lambda language: f"table {language}")
    monkeypatch.setattr(anki_decks, "moment", lambda: MOMENT)
    for cached in (anki_decks._package, anki_decks._table):
        cached.cache_clear()
    theme = {"language": "zh"}
    config = SimpleNamespace(theme=theme, site_url=None)
    offered, files = [], Files()
    anki_decks.add(files, config)
    assert files == made == []
    offered.append("interview/index.md")
    anki_decks.add(files, config)
    uris = ["interview/norms-measured.apkg", "interview/norms-measured.tsv"]
    contents = [("zh", "/", MOMENT), "table zh"]
    assert files == uris
    assert made == [(config, u, c) for u, c in zip(uris, contents, strict=True)]
    assert {path.name for path, _ in anki_decks._stamps()} >= {
        "terms.yml",
        "kernels.yml",
    }
    for cached in (anki_decks._package, anki_decks._table):
        cached.cache_clear()


def test_the_moment_is_asked_of_git(monkeypatch):
    def run(command, cwd, capture_output, text, check):
        assert command == ["git", "log", "-1", "--format=%ct"]
        assert (cwd, capture_output, text, check) == (
            anki_decks.ROOT,
            True,
            True,
            False,
        )
        return SimpleNamespace(returncode=0, stdout=f"{MOMENT}\n")

    monkeypatch.setattr(anki_decks.subprocess, "run", run)
    assert anki_decks.moment() == MOMENT


def test_moment_is_that_of_the_last_change(monkeypatch, tmp_path):
    assert anki_decks.moment() == anki_decks.moment() > 0
    (tmp_path / "rms-norm.yml").write_text("[]")
    monkeypatch.setattr(anki_decks, "ROOT", tmp_path)  # no repository
    monkeypatch.setattr(interview, "QUESTIONS", tmp_path)
    assert anki_decks.moment() == int((tmp_path / "rms-norm.yml").stat().st_mtime)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"short": dict.fromkeys(LANGUAGES, "[[ facts.no.such ]]")}, "unknown"),
        (
            {
                "weak": ROW["weak"]
                | {"wrong": dict.fromkeys(LANGUAGES, "[[ cite.no ]]")}
            },
            "unknown citation",
        ),
        ({"evidence": ["claim:basics#nobody-says-so"]}, "no claim"),
        ({"evidence": ["no/page.md"]}, "no page"),
    ],
)
def test_bad_data_is_one_line(change, says, bank):
    with pytest.raises(SourceError, match=says) as caught:
        for kind in anki_decks.KINDS:
            anki_decks.fields("rms-norm", ROW | change, kind, "en", URL)
    assert "\n" not in str(caught.value)


def test_ids_are_those_that_readers_have(bank):
    """A changed id would give every reader a second deck."""
    assert anki_decks.IDS == {"zh": 1763700000001, "en": 1763700000002}
    assert anki_decks.QUIZ_IDS == {"zh": 1763700000003, "en": 1763700000004}
    guids = [note.guid for note in anki_decks.deck("en", URL).notes]
    assert len(set(guids)) == 6
    assert guids[::3] == ["O$A7n5?2Xs", "z6I>N69kU?"]
