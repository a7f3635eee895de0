"""Bad files: one line each, which names the file and the place, and no traceback."""

import pytest

from scripts.site.atlas import models
from scripts.site.data import citations, claims, facts, reference_lists, terms
from scripts.site.notebooks import labs
from scripts.site.pages import macros
from scripts.site.questions import interview, interview_pages
from scripts.site.reading import files, source
from scripts.site.reading.files import ROOT, SourceError

FOLDERS = (".github", "docs", "scripts", "tests")
YAML = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.yml")
    if "site-packages" not in path.parts
)
YAML.append(ROOT / "mkdocs.yml")


@pytest.mark.parametrize("path", YAML, ids=files.where)
def test_no_key_stands_twice(path):
    files.load_yaml(files.read_text(path), path.name)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3: 'a' stands twice"),
        ("- a:\n    b: 1\n    b: 2\n", "line 3: 'b' stands twice"),
        ("- {a: 1, b: 2, a: 3}\n", "line 1: 'a' stands twice"),
        ("a: 1\nb: [\n", "line 3: did not find expected node content"),
        ("a: 1\n\tb: 2\n", "line 2: found "),
        ("a: b: c\n", "line 1: mapping values are not allowed in this context"),
        ("a: *b\n", "line 1: found undefined alias"),
        ("a: !!python/object:os.system x\n", None),
        ("a: !ENV [X, y]\n", None),
    ],
)
def test_yaml_names_the_line(text, says, tmp_path):
    path = tmp_path / "a.yml"
    path.write_text(text, encoding="utf-8")
    if says is None:
        assert files.read_yaml(path) == {"a": None}
        return
    with pytest.raises(SourceError) as caught:
        files.read_yaml(path)
    assert str(caught.value).startswith(f"{path}: {says}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"a\nb \xff\n", "line 2: not UTF-8"),
        ("a\nb".encode("utf-16"), "line 1: not UTF-8"),
        (b"a\n\nb\0", "line 3: a NUL character"),
        (None, "No such file or directory"),
    ],
)
def test_text_names_the_line(data, says, tmp_path):
    path = tmp_path / "page.md"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(SourceError) as caught:
        files.read_text(path)
    assert str(caught.value) == f"{path}: {says}"


def said(call, *arguments) -> str:
    """The one line with which a reading function refuses."""
    with pytest.raises(SourceError) as caught:
        call(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def put(tmp_path, monkeypatch):
    """Write a file below another root."""
    monkeypatch.setattr(files, "ROOT", tmp_path)

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("RMSNorm\n", "is no list of models"),
        ("a: 1\n", "is no list of models"),
        ("", "is no list of models"),
        ("- null\n", "1: its fields differ by architecture, "),
        ("- {model: X, family: X}\n", "X: its fields differ by architecture, "),
    ],
)
def test_models(text, says, put, monkeypatch):
    monkeypatch.setattr(models, "FILE", put("models.yml", text))
    assert said(models.models).startswith(f"models.yml: {says}")


CLAIM = """- id: a-claim
  claim: {en: A., zh: 甲。}
  correct: {en: B., zh: 乙。}
  verdict: wrong
  page: index.md
  check: code
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("page: index.md", "page: 3", "a-claim: page 3 is no page"),
        (
            "page: index.md",
            "page: i.md\n  top: first",
            "a-claim: top 'first' is no num",
        ),
        ("page: index.md", "page: i.md\n  dare: [1]", "a-claim: dare [1] is no number"),
        ("page: index.md", "page: i.md\n  met: [3]", "a-claim: met is not a list"),
        ("page: index.md", "page: i.md\n  cite: one", "a-claim: cite is not a list"),
        (
            "verdict: wrong",
            "verdict: wrong\n  verdict: holds",
            "line 5: 'verdict' stands",
        ),
        (CLAIM, "3\n", "is no list of rows"),
        (CLAIM, "", "is no list of rows"),
        (CLAIM, "a: 1\n", "is no list of rows"),
    ],
)
def test_claims(old, new, says, put, monkeypatch):
    assert old in CLAIM
    monkeypatch.setattr(claims, "FOLDER", put("a.yml", CLAIM.replace(old, new)).parent)
    assert said(claims.rows, "a").startswith(f"a.yml: {says}")


ITEM = """- id: an-item
  level: engineer
  question: {en: "A?", zh: 甲？}
  options:
    one: &it {text: {en: A., zh: 甲。}, why: {en: B., zh: 乙。}}
    two: *it
    three: *it
  answer: two
  evidence: [index.md]
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("answer: two", "answer: [two]", "an-item: answer is none of the options"),
        ("answer: two", "answer: {two: 1}", "an-item: answer is none of the options"),
        (ITEM, "", "is no list of rows"),
        (ITEM, "- 3\n", "?: is no mapping"),
    ],
)
def test_quiz(old, new, says, put, monkeypatch):
    path = put("kernels.yml", ITEM)
    monkeypatch.setattr(interview, "QUIZ", path.parent)
    assert interview.quiz("kernels")
    path = put("numerics.yml", ITEM.replace(old, new))
    assert said(interview.quiz, "numerics").startswith(f"numerics.yml: {says}")


def test_a_name_that_no_record_has_is_found_in_its_question(monkeypatch):
    row = dict(interview.questions("kernels")[0])
    row["short"] = {"en": "It is [[ facts.a.b ]].", "zh": "甲。"}
    monkeypatch.setattr(interview, "bank", lambda: [("kernels", row)])
    line = said(interview_pages.check, "en")
    assert line.startswith(f"kernels.yml: {row['id']}: unknown experiment")


@pytest.mark.parametrize(
    ("name", "text", "read", "says"),
    [
        ("glossary.yml", "- a\n", "definitions", "is no mapping of terms"),
        ("glossary.yml", "gain: 3\n", "definitions", "gain: is not zh, en and page"),
        (
            *("glossary.yml", "gain: {en: A., zh: 甲。, page: 3}\n", "definitions"),
            "gain: page 3 is none",
        ),
        (
            *("glossary.yml", "gain: {en: A., zh: 3, page: i.md}\n", "definitions"),
            "gain: its text is empty or no text",
        ),
        ("a.yml", "test_a: {x: {en: A.}}\n", "rejected_data", "test_a: x is not one"),
        ("a.yml", "test_a: [x]\n", "rejected_data", "test_a: is no mapping of var"),
        ("a.yml", "", "rejected_data", "is no mapping of suites"),
    ],
)
def test_lists(name, text, read, says, put, monkeypatch):
    folder = put(name, text).parent
    monkeypatch.setattr(reference_lists, "DATA", folder)
    monkeypatch.setattr(reference_lists, "REJECTED", folder)
    assert said(getattr(reference_lists, read)).startswith(f"{name}: {says}")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: b\n", "is no list of terms"),
        ("- {en: gain}\n", "term gain: is not en, zh and avoid"),
        ("- {en: gain, zh: null, avoid: []}\n", "term gain: en or zh is no text"),
        ("- {en: gain, zh: 增益, avoid: 放大}\n", "term gain: avoid is no list"),
        ("- null\n", "term 1: is not en, zh and avoid"),
        ("- {en: [\n", "line 2: "),
    ],
)
def test_terms(text, says, put, monkeypatch):
    monkeypatch.setattr(terms, "FILE", put("terms.yml", text))
    assert said(terms.terms).startswith(f"terms.yml: {says}")


def test_an_entry_without_author(put, monkeypatch):
    entry = "@misc{a2020b, title={T}, year={2020}, url={https://example.org}}\n"
    monkeypatch.setattr(citations, "BIBLIOGRAPHY", put("references.bib", entry))
    assert said(citations.references) == "references.bib: a2020b has no author"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("# A { #a }\n", "line 1: no front matter between two lines ---"),
        ("---\ntitle: A\n# A { #a }\n", "line 1: no front matter"),
        ("---\ndescription: A\n---\n", "line 1: front matter without a title"),
        ("---\n- title\n---\n", "line 1: front matter without a title"),
        (
            "---\ntitle: A\ntitle: B\n---\n",
            "front matter: line 3: 'title' stands twice",
        ),
        ("---\ntitle: [A\n---\n", "front matter: line 3: did not find"),
        (b"---\ntitle: A\n---\n\xff\n", "line 4: not UTF-8"),
        (b"---\ntitle: A\n---\n\0\n", "line 4: a NUL character"),
    ],
)
def test_pages(text, says, put):
    folder = put("pages/a.md", text).parent
    assert said(reference_lists._pages, folder).startswith(f"pages/a.md: {says}")


def test_snippets_that_are_no_text(put):
    path = put("a/b.py", b"x = 1\ny = '\xff'\n")
    folder = path.parents[1]
    assert said(source.embedded, "a/b.py", None, folder) == "a/b.py: line 2: not UTF-8"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[ config ]]", "unknown name [[ config ]]"),
        ("A.\n\n[[ 1 + 2 ]]x", "line 3: '[[ 1 + 2 ]]' is not [[ a name ]]"),
        ("[[ facts | length ]]", "line 1: '[[ facts | length ]]' is not"),
        ("[[ facts.init_gradients.seeds", "line 1: '[[ facts.init_gradients.seeds' is"),
        ("A [% if true %]3[% endif %]x", "line 1: '[% if true %]' is not [[ a name ]]"),
        ("A [% if", "line 1: '[% if' is not [[ a name ]]"),
        ("A [=# hidden", "line 1: '[=#' is not [[ a name ]]"),
        (
            "[[ facts.init_gradients ]]",
            "[[ facts.init_gradients ]] is a group of names",
        ),
        ("[[ cite.zhang2019rms.title ]]", "unknown name [[ cite.zhang2019rms.title ]]"),
        ("[[ facts.init_gradients.seeds.x ]]", "unknown name [[ facts.init_grad"),
    ],
)
def test_names(text, says):
    assert said(macros.check_names, text).startswith(says)
    macros.check_names("[[facts.init_gradients.seeds]] [[ cite.zhang2019rms ]]")


def test_json_that_is_cut_off(put, monkeypatch):
    path = put("lab.ipynb", '{"cells": [')
    monkeypatch.setattr(labs, "sources", lambda: [path])
    monkeypatch.setattr(labs, "executed_path", lambda source, language: path)
    config = type("Config", (), {"theme": {"language": "en"}, "site_dir": "site"})
    config.use_directory_urls = True
    assert said(labs.add, [], config).startswith("lab.ipynb: line 1: ")


def test_facts_are_numbers_of_a_record():
    assert said(facts.text, "facts.no_such.name").startswith("unknown experiment")
