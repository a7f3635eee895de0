"""Rows in both languages: read again when they change, and refused out of form."""

import os

import pytest

from scripts.site.data import bilingual
from scripts.site.reading.files import SourceError


def no_problem(row):
    return None


def test_rows_are_read_again_when_their_file_changes(tmp_path):
    path = tmp_path / "a.yml"
    path.write_text("- id: a\n", encoding="utf-8")
    first = bilingual.read(path, no_problem)
    assert first == [{"id": "a"}] and bilingual.read(path, no_problem) is first
    path.write_text("- id: b\n", encoding="utf-8")
    os.utime(path, ns=(1, 1))
    assert bilingual.read(path, no_problem) == [{"id": "b"}]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]\n", "a.yml: is no list of rows"),
        ("id: a\n", "a.yml: is no list of rows"),
        ("- id: good\n- id: bad\n", "a.yml: bad: is bad"),
        ("- {}\n", "a.yml: ?: is bad"),
        ("- 3\n", "a.yml: ?: is bad"),
    ],
)
def test_a_bad_row_is_named(text, says, tmp_path):
    def problem_of(row):
        return None if row == {"id": "good"} else "is bad"

    path = tmp_path / "a.yml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SourceError) as caught:
        bilingual.read(path, problem_of)
    assert str(caught.value).endswith(says)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"id": "a-b2", "x": 1}, None),
        ({"id": "a", "x": 1, "maybe": 2}, None),
        (3, "is no mapping"),
        ({}, "no id, x"),
        ({"id": "a"}, "no x"),
        ({"id": "a", "x": 1, "z": 1, "y": 1}, "unknown field y, z"),
        ({"id": "A", "x": 1}, "id is not lower-case words joined by hyphens"),
        ({"id": "a--b", "x": 1}, "id is not lower-case words joined by hyphens"),
        ({"id": "a-", "x": 1}, "id is not lower-case words joined by hyphens"),
        ({"id": "2a", "x": 1}, "id is not lower-case words joined by hyphens"),
    ],
)
def test_fields(row, says):
    assert bilingual.problem_of_fields(row, {"id", "x"}, {"maybe"}) == says


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ({"en": "A.", "zh": "甲。"}, None),
        ("A.", "f is not one text a language"),
        ({"en": "A."}, "f is not one text a language"),
        ({"en": "A.", "zh": "甲。", "de": "A."}, "f is not one text a language"),
        ({"en": "A.", "zh": " "}, "f is empty or no text"),
        ({"en": "", "zh": "甲。"}, "f is empty or no text"),
        ({"en": 3, "zh": "甲。"}, "f is empty or no text"),
    ],
)
def test_texts(text, says):
    assert bilingual.problem_of_text("f", text) == says


@pytest.mark.parametrize(
    ("places", "says"),
    [
        (None, None),
        (["https://a.org", "https://b.org"], None),
        ("https://a.org", "f is not a list of different addresses"),
        ([], "f is not a list of different addresses"),
        (["https://a.org"] * 2, "f is not a list of different addresses"),
        (["https://a.org", "http://b.org"], "f: http://b.org is no address"),
        ([3], "f: 3 is no address"),
    ],
)
def test_addresses(places, says):
    assert bilingual.problem_of_addresses("f", places) == says


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://www.example.org/a/b", "example.org"),
        ("https://docs.example.org/a", "docs.example.org"),
        ("https://github.com/a/b", "a/b"),
        ("https://github.com/a/b/", "a/b"),
        ("https://github.com/a/b/blob/main/c/d%20e.py#L3", "a/b: d e.py"),
        ("https://github.com/a/b/issues/7", "a/b: 7"),
    ],
)
def test_hosts(address, name):
    assert bilingual.host(address) == name
