"""Citations: one form in the sentence, one list under the page."""

from types import SimpleNamespace

import pytest

from scripts.site.data import citations
from scripts.site.reading.source import SourceError

CONFIG = SimpleNamespace(
    extra={"words": {"references": "References", "sources": "Sources: {}"}}
)


@pytest.fixture(autouse=True)
def bibliography(tmp_path, monkeypatch):
    path = tmp_path / "references.bib"
    path.write_text(
        """
@article{one2019a, author={Doe, Jane}, title={A {B}C [x]}, year={2019},
  url={https://example.org/1}, journal={J}}
@misc{two2020b, author={van der Berg, An and Li, Bo}, title={T}, year={2020},
  url={https://example.org/2}, note={file.py, f}}
@misc{many2021c, author={A, B and C, D and E, F}, title={T}, year={2021},
  url={https://example.org/3}}
@misc{group2022d, author={{The Project}}, title={T}, year={2022},
  url={https://example.org/4}}
""",
        encoding="utf-8",
    )
    monkeypatch.setattr(citations, "BIBLIOGRAPHY", path)
    return path


@pytest.mark.parametrize(
    ("key", "authors"),
    [
        ("one2019a", "Doe"),
        ("two2020b", "van der Berg & Li"),
        ("many2021c", "A et al."),
        ("group2022d", "The Project"),
    ],
)
def test_short_form(key, authors):
    assert citations.references()[key].authors == authors


def test_link_and_list_fit_together():
    page = "Text [[ cite.two2020b ]], [[ cite.one2019a ]], again [[ cite.two2020b ]]."
    done = citations.append_list(page, CONFIG)
    link = str(citations.references()["two2020b"])
    assert 'href="#ref-two2020b"' in link and "van der Berg &amp; Li, 2020" in link
    assert done.startswith(page) and "## References { #references }" in done
    assert '??? quote "Sources: 2"' in done
    entries = [line for line in done.splitlines() if line.startswith("    1. ")]
    assert len(entries) == 2  # each once, in order of citation
    assert 'id="ref-two2020b"' in entries[0] and entries[0].endswith("file.py, f.")
    assert r"[A BC \[x\]](https://example.org/1). J." in entries[1]


def test_tex_becomes_letters(bibliography):
    bibliography.write_text(
        r"@misc{a2020b, author={Csord{\'a}s, R}, title={A \& a\_b}, year={2020}, "
        "url={https://example.org/%20c}}"
    )
    entry = citations.references()["a2020b"].entry
    assert r"Csordás (2020). [A & a\_b](https://example.org/%20c)." in entry


def test_page_without_citations_is_untouched():
    assert citations.append_list("Text.", CONFIG) == "Text."


def test_an_entry_without_a_field_is_named(bibliography):
    bibliography.write_text("@misc{bad1, author={A}, title={T}, year={1}}")
    with pytest.raises(SourceError, match="bad1 has no url"):
        citations.references()
