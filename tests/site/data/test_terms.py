"""Terms: Chinese and English, and what is out of form in them."""

import pytest

from scripts.site.data import terms
from scripts.site.reading.files import SourceError


def test_the_project_s_own():
    assert ("normalization", "归一化") in {(t["en"], t["zh"]) for t in terms.terms()}


GOOD = "- {en: gain, zh: 增益, avoid: []}\n"


def test_terms_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(terms, "FILE", tmp_path / "terms.yml")
    (tmp_path / "terms.yml").write_text(GOOD, encoding="utf-8")
    assert terms.terms() == [{"en": "gain", "zh": "增益", "avoid": []}]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]\n", "is no list of terms"),
        ("gain: 增益\n", "is no list of terms"),
        (GOOD + "- 3\n", "term 2: is not en, zh and avoid"),
        (GOOD + "- {zh: 增益, avoid: []}\n", "term 2: is not en, zh and avoid"),
        (GOOD + "- {en: a, zh: 甲}\n", "term a: is not en, zh and avoid"),
        (GOOD + "- {en: 3, zh: 甲, avoid: []}\n", "term 3: en or zh is no text"),
        (GOOD + "- {en: a, zh: 3, avoid: []}\n", "term a: en or zh is no text"),
        (GOOD + "- {en: a, zh: 甲, avoid: 乙}\n", "term a: avoid is no list"),
    ],
)
def test_bad_terms_are_named(text, says, tmp_path, monkeypatch):
    monkeypatch.setattr(terms, "FILE", tmp_path / "terms.yml")
    (tmp_path / "terms.yml").write_text(text, encoding="utf-8")
    with pytest.raises(SourceError) as caught:
        terms.terms()
    assert str(caught.value).endswith(f"terms.yml: {says}")
