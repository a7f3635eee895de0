"""The bibliography: complete entries, one form of key, nothing unused."""

import re

import pytest
from pybtex.database import BibliographyDataError, parse_string
from pybtex.scanner import PybtexSyntaxError

from scripts.site.data import claims
from scripts.site.data.citations import BIBLIOGRAPHY
from scripts.site.reading.files import read_yaml
from scripts.site.reading.source import ROOT

KEY = re.compile(r"[a-z]+\d{4}[a-z0-9]+")  # firstauthor, year, word
KINDS = {"article", "inproceedings", "misc"}
MODELS = ROOT / "docs" / "data" / "models.yml"
CITING = ("docs/*/pages/**/*.md", "docs/labs/*.py", "docs/data/**/*.yml")


def violations(bibliography: str, cited: set[str]) -> list[str]:
    """'key: what' for each entry that is incomplete or that nobody cites."""
    try:
        entries = parse_string(bibliography, "bibtex").entries
    except (BibliographyDataError, PybtexSyntaxError) as error:
        return [str(error)]
    found = [f"{key}: nobody cites it" for key in entries if key not in cited]
    for key, entry in entries.items():
        if not KEY.fullmatch(key):
            found.append(f"{key}: key is not author, year, word")
        if entry.type not in KINDS:
            found.append(f"{key}: @{entry.type} is none of {sorted(KINDS)}")
        missing = {"title", "year", "url"} - set(entry.fields.keys())
        found += [f"{key}: no {field}" for field in sorted(missing)]
        if not entry.persons.get("author"):
            found.append(f"{key}: no author")
        if entry.fields.get("year", "") not in key:
            found.append(f"{key}: year {entry.fields['year']} is not in the key")
        if not entry.fields.get("url", "https://").startswith("https://"):
            found.append(f"{key}: url is not https")
    return found


def test_bibliography(no_violations):
    files = [path for glob in CITING for path in ROOT.glob(glob)]
    texts = [path.read_text(encoding="utf-8") for path in files]
    cited = {key for text in texts for key in re.findall(r"cite[.:](\w+)", text)}
    cited |= {key for _, row in claims.everything() for key in row.get("cite", ())}
    models = read_yaml(MODELS)
    cited |= {key for row in models for key in row["source"]}
    cited |= {row["released"][1] for row in models if row["released"]}
    text = BIBLIOGRAPHY.read_text(encoding="utf-8")
    no_violations(f"{BIBLIOGRAPHY.name}: {v}" for v in violations(text, cited))


GOOD = """@article{who2020what,
  author = {Who, Ann and What, Bo}, title = {A title}, year = {2020},
  url = {https://arxiv.org/abs/2001.00001},
}
@misc{project2026file,
  author = {{The Project}}, title = {A file}, year = {2026},
  url = {https://github.com/a/b/blob/c/d.py}, note = {d.py, f},
}
"""


def test_good():
    assert violations(GOOD, {"who2020what", "project2026file"}) == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("{who2020what", "{Who2020", "Who2020: key is not"),
        ("author = {Who, Ann and What, Bo},", "", "who2020what: no author"),
        ("title = {A title},", "", "who2020what: no title"),
        ("year = {2020},", "", "who2020what: no year"),
        ("year = {2020}", "year = {2019}", "who2020what: year 2019 is not in the key"),
        ("  url = {https://arxiv.org/abs/2001.00001},\n", "", "who2020what: no url"),
        ("https://arxiv", "http://arxiv", "who2020what: url is not https"),
        ("@article", "@book", "who2020what: @book is none of"),
        ("who2020what", "who2020why", "who2020why: nobody cites it"),
        ("project2026file", "who2020what", "repeated"),
        ("author = {Who", "author = {{Who", ""),
    ],
)
def test_bad(old, new, says):
    found = violations(GOOD.replace(old, new, 1), {"who2020what", "project2026file"})
    assert any(says in v for v in found), found
