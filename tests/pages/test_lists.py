"""The pages made from docs/data: glossary, bibliography, rejected variants."""

import re

import pytest

from scripts.site.data import citations, reference_lists
from scripts.site.reading import files
from scripts.site.reading.source import LANGUAGES, SourceError, headings
from tests.pages import test_numbers
from tests.pages.page_prose import EN, ZH

GLOSSARY = files.read_yaml(reference_lists.DATA / "glossary.yml")
PAGES = {"zh": ZH, "en": EN}


@pytest.mark.parametrize("name", GLOSSARY)
def test_definition(name, no_violations):
    entry = GLOSSARY[name]
    assert set(entry) == {*LANGUAGES, "page"}
    found = test_numbers.violations(entry["en"]) + test_numbers.violations(entry["zh"])
    no_violations(f"glossary.yml: {name}: {v.partition(': ')[2]}" for v in found)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_glossary_leads_to_its_pages(lang, no_violations):
    found = []
    for name, entry in GLOSSARY.items():
        path, _, anchor = entry["page"].partition("#")
        ids = {heading.id for heading in headings(PAGES[lang][path].text)}
        if anchor and anchor not in ids:
            found.append(f"glossary.yml: {name}: {path} has no #{anchor}")
    no_violations(found)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_bibliography_is_complete(lang):
    text = reference_lists.make("bibliography", lang)
    for key in citations.references():
        assert text.count(f'id="ref-{key}"') == 1, key


def test_glossary_has_one_line_a_term():
    for lang in LANGUAGES:
        assert reference_lists.make("glossary", lang).count("\n- ") == len(GLOSSARY) - 1


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_rejected_variant_folds_under_its_page(lang):
    """76 screens otherwise; the summary counts what is folded below it."""
    text = reference_lists.make("rejected", lang)
    blocks = re.split(r"^\?\?\? note ", text, flags=re.MULTILINE)
    assert not blocks[0] and len(blocks) == len(reference_lists.rejected_data()) + 1
    for block in blocks[1:]:
        summary, *held = block.splitlines()
        assert all(line.startswith("    ") for line in held if line)
        count = sum(line.startswith("    - `") for line in held)
        assert summary.endswith(f' ({count})"')
        assert sum(line.startswith("    ## [") for line in held) == 1
    assert text.count("\n    - `") == int(reference_lists.rejected_count())


def test_unknown_list_is_named():
    with pytest.raises(SourceError, match="known: bibliography"):
        reference_lists.make("index", "en")


def test_damaged_data_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "ROOT", tmp_path)
    (tmp_path / "a.yml").write_text("a: [", encoding="utf-8")
    with pytest.raises(SourceError, match=r"^a\.yml: ") as caught:
        files.read_yaml(tmp_path / "a.yml")
    assert "\n" not in str(caught.value)
