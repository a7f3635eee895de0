"""The ledger's pages, of a ledger of four rows."""

from types import SimpleNamespace

import pytest
import yaml

from scripts.site.data import citations, claims, reference_lists
from scripts.site.reading.source import SourceError

OWN = claims.topics(), claims.CHECKS
COMMIT = "https://github.com/a/b/blob/" + "0" * 40 + "/c.py"
PAPERS = {
    key: SimpleNamespace(authors=authors, year=year, url=f"https://{key}.org", title=t)
    for key, authors, year, t in (
        ("one", "A and B", 2020, "The First"),
        ("two", "A and B", 2020, "The Second"),
        ("three", "C", 2021, "The Third"),
    )
}
PAGES = {
    "norms/a.md": "A page",
    "b.md": "B page",
    "claims/deep-nets.md": "Claims: deep nets",
    "claims/scale.md": "Claims: scale",
}


def said(text):
    return {"en": f"{text}.", "zh": f"{text}。"}


def row(name, verdict, **more):
    made = {"id": name, "claim": said(f"Claim {name}"), "verdict": verdict}
    return made | {"correct": said(f"True {name}"), "page": "norms/a.md"} | more


LEDGER = {
    "deep-nets": [
        row(
            "one",
            "wrong",
            check="code",
            met=[COMMIT],
            top=2,
            page="norms/a.md#x",
            instead=said("B"),
        ),
        row("two", "open", check="record", dare=None, met=["three", COMMIT]),
    ],
    "scale": [
        row("three", "holds", cite=["one", "two", "three"], dare=1, page="b.md"),
        row("four", "holds-when", check="example", cite=["three"], was="deep-nets"),
        row("five", "wrong", check="arithmetic", top=1, dare=2, instead=said("C")),
    ],
}
for rows in LEDGER.values():
    for each in rows:
        if each.get("dare", 1) is None:
            del each["dare"]


@pytest.fixture(autouse=True)
def ledger(tmp_path, monkeypatch):
    monkeypatch.delenv("REPO_URL", raising=False)
    monkeypatch.setattr(claims, "FOLDER", tmp_path)
    monkeypatch.setattr(claims, "CHECKS", tmp_path)
    monkeypatch.setattr(citations, "references", lambda: PAPERS)
    monkeypatch.setattr(citations, "link", lambda text, url: f"[{text}]({url})")
    monkeypatch.setattr(reference_lists, "pages", lambda language: PAGES)
    order = [*PAGES.items()]
    monkeypatch.setattr(reference_lists, "in_reading_order", lambda language: order)
    for topic, found in LEDGER.items():
        text = yaml.safe_dump(found, allow_unicode=True)
        (tmp_path / f"{topic}.yml").write_text(text, encoding="utf-8")
    (tmp_path / "deep_nets.py").write_text(
        "X = 1\n\n\ndef one():\n    if X:\n\n        assert X\n\n\n"
        "def two():\n    assert 2\n",
        encoding="utf-8",
    )
    return tmp_path


def test_each_topic_has_a_file_of_checks():
    topics, folder = OWN
    stems = [topic.replace("-", "_") for topic in topics]
    assert topics and all((folder / f"{stem}.py").is_file() for stem in stems)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, None),
        ({"verdict": "true"}, "verdict is none of holds, holds-when, wrong, open"),
        ({"met": ["one"]}, None),
        (
            {"met": ["https://github.com/a/b/blob/main/c.py"]},
            "met: https://github.com/",
        ),
        ({"met": [3]}, "met is not a list of different addresses"),
        ({"met": []}, "met is not a list of different addresses"),
        ({"page": "a"}, "page 'a' is no page"),
        ({"page": 3}, "page 3 is no page"),
        ({"top": "1"}, "top '1' is no number"),
        ({"dare": "1"}, "dare '1' is no number"),
        ({"cite": "one"}, "cite is not a list of citations"),
        ({"cite": [1]}, "cite is not a list of citations"),
        ({"was": "scale"}, None),
        ({"was": "none"}, "was: no topic none"),
        ({"check": "proof"}, "check is none of code, arithmetic, record, example"),
        ({"claim": "A."}, "claim is not one text a language"),
        ({"correct": {"en": "A.", "zh": ""}}, "correct is empty or no text"),
        ({"check": None}, "check is none of code"),
        ({"check": "example"}, "an example decides nothing: a citation has to"),
        ({"check": "example", "cite": ["one"]}, None),
        ({"more": 1}, "unknown field more"),
    ],
)
def test_problems(changes, says):
    found = claims.problem_of(row("a", "wrong", check="code") | changes)
    assert (found or "").startswith(says or "") and bool(found) == bool(says)


def test_something_decides_a_row():
    bare = row("a", "wrong")
    assert claims.problem_of(bare) == "neither a check nor a citation decides it"
    assert claims.problem_of(bare | {"cite": ["one"]}) is None
    found = {each["id"]: claims.decided(each) for _, each in claims.everything()}
    assert found == {
        "one": "code",
        "two": "undecided",
        "three": "source",
        "four": "example",
        "five": "arithmetic",
    }


def test_counts_and_names():
    counts = {name: claims.make(name, "en") for name in claims.COUNTS}
    assert counts == {
        "count": "5",
        "wrong": "2",
        "with_place": "2",
        "by_code": "1",
        "by_arithmetic": "1",
        "by_record": "0",
        "by_source": "2",
        "undecided": "1",
    }
    assert claims.names()[-2:] == ["deep_nets", "scale"]
    for name in claims.names()[:4]:
        assert claims.make(name, "zh")
    with pytest.raises(SourceError, match="'no-ne'; known: deep-nets, scale"):
        claims.make("no_ne", "en")


def test_an_entry_in_english():
    (topic, first), *_ = claims.everything()
    assert claims.entry(topic, first, "en") == "\n".join(
        [
            '<div class="claim" data-verdict="wrong" markdown>',
            "",
            '## <span class="verdict">✗ wrong</span>: Claim one { #one }',
            "",
            "True one. More: [A page](../norms/a.md#x).",
            "",
            '??? note "Decided by code"',
            "",
            f"    Met at [a/b: c.py]({COMMIT}).",
            "",
            "    ```python",
            "    X = 1",
            "",
            "",
            "    def one():",
            "        if X:",
            "",
            "            assert X",
            "    ```",
            "",
            "</div>",
        ]
    )


def test_an_entry_in_chinese_with_an_address_for_mistakes(monkeypatch):
    monkeypatch.setenv("REPO_URL", "https://example.org/r/")
    third = LEDGER["scale"][0]
    lines = claims.entry("scale", third, "zh").splitlines()
    assert lines[2] == '## <span class="verdict">✓ 成立</span>：Claim three { #three }'
    assert lines[4] == "True three。详见 [B page](../b.md)。"
    assert lines[6] == '??? note "依据：来源"'
    assert lines[8] == "    这句话我们没有找到出处。"
    links = "[The First](https://one.org)、[The Second](https://two.org)"
    assert lines[10] == f"    来源：{links}、[C, 2021](https://three.org)。"
    assert lines[12].startswith(
        "    [报告这一条的错误](https://example.org/r/issues/new?title=claims%3A+scale"
        "%23three&body=%3E+Claim+three%E3%80%82%0A%0A"
    )
    assert lines[13:] == ["", "</div>"]


def test_places_are_papers_or_hosts():
    second = LEDGER["deep-nets"][1]
    lines = claims.entry("deep-nets", second, "en").splitlines()
    met = f"Met at [C, 2021](https://three.org), [a/b: c.py]({COMMIT})."
    assert f"    {met}" in lines
    assert lines[6] == '??? note "Not decided; what there is"'


def test_what_is_not_there_is_one_line():
    lost = row("a", "wrong", cite=["nobody"])
    with pytest.raises(SourceError, match="claims: a: unknown citation 'nobody'"):
        claims.entry("scale", lost, "en")
    with pytest.raises(SourceError, match=r"claims: no page c\.md"):
        claims.entry("scale", lost | {"page": "c.md#x"}, "en")


def test_a_topic_is_tally_rows_and_what_moved():
    found = claims.make("deep_nets", "en")
    assert found.startswith(
        '<div class="tally"><div aria-hidden="true">'
        '<span data-verdict="wrong" data-mark="✗" style="flex-grow: 1"></span>'
        '<span data-verdict="open" data-mark="○" style="flex-grow: 1"></span>'
        "</div><div>✗ wrong 1 · ○ open 1</div></div>\n\n"
    )
    link = "- △ holds when: [Claim four](scale.md#four){ #four }"
    assert found.endswith(
        f'\n??? question "Claims that moved to a page of their own (1)"\n\n    {link}\n'
    )
    assert claims.moved("scale", "en") == []
    assert found.index("Claim one") < found.index("Claim two") < found.index("four")


def test_dares_in_their_order_are_true_or_false(ledger):
    found = claims.dare("en").splitlines()
    assert [line for line in found if line.startswith("<div")] == [
        '<div class="dare" data-verdict="holds" markdown>',
        '<div class="dare" data-verdict="wrong" markdown>',
    ]
    assert [line.rstrip() for line in found[2:7]] == [
        "Claim three.",
        "",
        '??? question "The verdict"',
        "",
        "    **✓ holds**: True three. More: [B page](b.md).",
    ]
    text = yaml.safe_dump([row("a", "holds-when", check="code", dare=3)])
    (ledger / "more.yml").write_text(text)
    with pytest.raises(SourceError, match="claims: a: a dare is true or false"):
        claims.dare("en")


def test_the_top_in_its_order():
    assert claims.make("top", "en") == (
        "1. [Claim five](scale.md#five): **wrong**. C.\n"
        "1. [Claim one](deep-nets.md#one): **wrong**. B."
    )
    assert claims.make("top_at_home", "zh").startswith(
        "1. [Claim five](claims/scale.md#five)：**错误**。C。\n"
    )


def test_the_overview_in_the_order_of_the_navigation(monkeypatch):
    turned = [*PAGES.items()][::-1]
    monkeypatch.setattr(reference_lists, "in_reading_order", lambda language: turned)
    assert claims.make("overview", "en").splitlines() == [
        "| Subject | ✓ holds | △ holds when | ✗ wrong | ○ open | all |",
        "|---|--:|--:|--:|--:|--:|",
        "| [scale](scale.md) | 1 | 1 | 1 | 0 | 3 |",
        "| [deep nets](deep-nets.md) | 0 | 0 | 1 | 1 | 2 |",
    ]


def test_a_page_lists_what_it_settles():
    found = claims.append_links("Text\n\n", "norms/a.md", "en").splitlines()
    assert found[:4] == [
        "Text",
        "",
        '??? question "Claims that this page takes up (4)"',
        "",
    ]
    assert found[4] == "    - [Claim one](../claims/deep-nets.md#one): wrong"
    home = claims.append_links("Text", "b.md", "zh").splitlines()
    assert home[-1] == "    - [Claim three](claims/scale.md#three)：成立"
    assert claims.append_links("Text\n", "c.md", "en") == "Text\n"
