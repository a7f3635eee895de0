"""Flashcards: the question bank as an Anki deck, one a language.

A card's id comes from its question's id, so that a new deck updates the cards a
reader has and keeps what they learned. The same sources give the same bytes.
"""

import itertools
import sqlite3
import subprocess
from functools import cache

from mkdocs.structure.files import File

from scripts.site import asked, interview, plain
from scripts.site.archive import zipped
from scripts.site.source import ROOT
from scripts.site.written import html

INDEX = "interview/index.md"  # the page that offers the deck
URI = "interview/norms-measured.apkg"
IDS = {"zh": 1763700000001, "en": 1763700000002}  # never change: Anki knows them
FIELDS = ("Question", "Short", "Answer", "Weak", "FollowUp", "Evidence")
LABELS = ("Group", "Level")
WORDS = {
    "en": {
        "name": "Norms, Measured: interview",
        "about": "Questions on normalization in language models, from {url}.",
        "answer": "In full",
        "weak": "A weak answer",
        "follow_up": "Follow-up",
        "evidence": "Evidence",
        "page": "This question on the site",
    },
    "zh": {
        "name": "归一化实测：面试",
        "about": "大语言模型归一化的面试题，出自 {url}。",
        "answer": "完整回答",
        "weak": "较差的回答",
        "follow_up": "追问",
        "evidence": "依据",
        "page": "网站上的这道题",
    },
}
FRONT = """\
<main lang="{language}">
<p class="where">{{{{Group}}}} · {{{{Level}}}}</p>
<div class="question">{{{{Question}}}}</div>
</main>"""
BACK = """\
{{{{FrontSide}}}}
<hr id="answer">
<main lang="{language}">
{{{{Short}}}}
<h2>{answer}</h2>
{{{{Answer}}}}
<h2>{weak}</h2>
{{{{Weak}}}}
<h2>{follow_up}</h2>
{{{{FollowUp}}}}
<h2>{evidence}</h2>
{{{{Evidence}}}}
</main>"""
# No colours: Anki's own follow its day and night.
STYLE = """\
.card { font: 1.1rem/1.6 system-ui, "PingFang SC", "Microsoft YaHei", "Noto Sans SC", sans-serif; text-align: left; }
main { display: block; max-width: 40rem; margin: 0 auto; padding: 0 .5rem; overflow-wrap: anywhere; }
.where { font-size: .8em; opacity: .75; }
.question { font-size: 1.15em; font-weight: 600; }
h2 { font-size: 1em; margin: 1.4em 0 .3em; padding-top: .6em; border-top: 1px solid #8886; }
code { font-size: .9em; background: #8883; border-radius: .2em; padding: .1em .25em; }
div.arithmatex { overflow-x: auto; }
ul, ol { padding-left: 1.3em; }
"""  # noqa: E501


def add(files, config) -> None:
    """Publish the deck of a language beside the page that offers it."""
    language = config.theme["language"]
    if files.get_file_from_path(INDEX):
        content = _package(language, config.site_url or "/", moment(), _stamps())
        files.append(File.generated(config, URI, content=content))


def _stamps() -> tuple:
    """What docs/data holds; a changed file is a changed stamp."""
    files = sorted((ROOT / "docs" / "data").rglob("*.*"))
    return tuple((file, file.stat().st_mtime_ns) for file in files)


@cache
def _package(language: str, site_url: str, moment: int, stamps: tuple) -> bytes:
    return package(language, site_url, moment)


def moment() -> int:
    """When the project was last changed: Anki keeps the newer of two cards."""
    git = ["git", "log", "-1", "--format=%ct"]
    done = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 0 and done.stdout.strip():
        return int(done.stdout)
    files = interview.QUESTIONS.glob("*.yml")  # a copy of the tree without .git
    return int(max((file.stat().st_mtime for file in files), default=0))


def package(language: str, site_url: str, moment: int) -> bytes:
    """The deck of a language as an .apkg file."""
    from genanki import Package

    with sqlite3.connect(":memory:") as collection:
        ids = itertools.count(IDS[language])
        Package(deck(language, site_url)).write_to_db(collection.cursor(), moment, ids)
        collection.commit()
        stored = {"collection.anki2": collection.serialize(), "media": b"{}"}
    return zipped(stored)


def deck(language: str, site_url: str):
    from genanki import Deck, Model, Note, guid_for

    words = WORDS[language]
    model = Model(
        IDS[language],
        words["name"],
        fields=[{"name": name} for name in FIELDS + LABELS],
        templates=[
            {
                "name": "question",
                "qfmt": FRONT.format(language=language),
                "afmt": BACK.format(language=language, **words),
            }
        ],
        css=STYLE,
    )
    made = Deck(IDS[language], words["name"], words["about"].format(url=site_url))
    for place, (group, row) in enumerate(interview.bank()):
        made.add_note(
            Note(
                model,
                fields(group, row, language, site_url),
                tags=[f"norms::{group}", f"norms::{row['level']}"],
                guid=guid_for("norms-measured", language, row["id"]),
                due=place,
            )
        )
    return made


def fields(group: str, row: dict, language: str, site_url: str) -> list[str]:
    """What a card says, as HTML, in the order of FIELDS and LABELS."""
    words = asked.WORDS[language]
    page = f"[{WORDS[language]['page']}]({group}.md#{row['id']})"
    evidence = f"- {page}\n{asked.evidence(row, language)}"
    return [
        *(
            html(asked.said(row, field, language))
            for field in (*interview.TEXTS, *interview.PAIRS)
        ),
        html(plain.absolute_links(evidence, INDEX, site_url)),
        asked.subject(group, language),
        words[row["level"]],
    ]
