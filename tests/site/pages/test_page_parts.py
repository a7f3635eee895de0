"""A page in parts, with nothing left to resolve."""

from types import SimpleNamespace

import pytest

from scripts.site.pages import page_parts
from scripts.site.pages.page_parts import Part

SITE = "https://example.org/en/"


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Write a page and the one snippet that it embeds."""
    monkeypatch.setattr(page_parts, "ROOT", tmp_path)
    monkeypatch.setattr(page_parts.macros, "check_names", lambda text: None)
    monkeypatch.setattr(page_parts, "expand", lambda text, language: text)
    code = {("a.py", None): "x = 1\n\ny = 2", ("a.out", None): "3"}
    monkeypatch.setattr(page_parts, "embedded", lambda *of: code[of])

    def write(text):
        path = tmp_path / "docs" / "en" / "pages" / "part" / "a.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\ntitle: A\n---\n{text}\n", encoding="utf-8")
        return path

    return write


PAGE = """# A { #a }

See [b](b.md#c), [home](../index.md), [data](../records/m/e.json).

```python
--8<-- "a.py"
```

!!! note "Boxed"

    Inside.

    ```text
    --8<-- "a.out"
    ```

??? question "Why"
    Because.

    ```python
    --8<-- "a.py"
    ```

    ??? note
        Deep.

After <div class="x">this</div>."""


def test_parts_of_a_page(page):
    assert page_parts.parts(page(PAGE), "en", SITE) == [
        Part(
            "text",
            "# A\n\nSee [b](https://example.org/en/part/b/#c), "
            "[home](https://example.org/en/), "
            "[data](https://example.org/en/records/m/e.json).",
        ),
        Part("code", "x = 1\n\ny = 2", "a.py"),
        Part("text", "**Boxed**\n\n\nInside."),
        Part("output", "3", "a.out"),
        Part("text", "**Why**\n\nBecause."),
        Part("code", "x = 1\n\ny = 2", "a.py"),
        Part("text", "Deep.\n\nAfter this."),
    ]


def test_folded_boxes_are_kept_whole(page):
    *start, box, after = page_parts.parts(page(PAGE), "en", SITE, folded=True)
    assert [part.kind for part in start] == ["text", "code", "text", "output"]
    assert box.text.replace("\n\n\n", "\n\n") == (
        "<details><summary>Why</summary>\n\nBecause.\n\n"
        "```python\nx = 1\n\ny = 2\n```\n\n"
        "<details><summary></summary>\n\nDeep.\n\n</details>\n\n</details>"
    )
    assert after == Part("text", "After this.")


def test_a_page_is_read_once_until_it_is_read_again(page):
    path = page("One.")
    assert page_parts.once(path, "en", SITE) == (Part("text", "One."),)
    page("Two.")
    assert page_parts.once(path, "en", SITE)[0].text == "One."
    page_parts.read_again()
    assert page_parts.once(path, "en", SITE)[0].text == "Two."
    page_parts.read_again()


@pytest.mark.parametrize(
    ("text", "flat"),
    [
        ('!!! note "T"\n    a\n\n    b\nc', "**T**\n\na\n\nb\nc"),
        ("!!! note\n    a", "\n\na"),
        ('???+ tip "T"\n    !!! note "U"\n        a\n    b', "**T**\n\n**U**\n\na\nb"),
        ('    !!! note "T"\n        a', "**T**\n\na"),  # in a list
        (
            '```text\n!!! note "T"\n```\n!!! note "U"',
            '```text\n!!! note "T"\n```\n**U**\n',
        ),
        ("~~~text\n```\n!!! a\n~~~\n", "~~~text\n```\n!!! a\n~~~"),
    ],
)
def test_boxes_are_flattened(text, flat):
    assert page_parts._flatten_boxes(text) == flat


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("[a](b.md)", f"[a]({SITE}part/b/)"),
        ("[a](b.md#c-d)", f"[a]({SITE}part/b/#c-d)"),
        ("[a](b.md?c=d#e)", f"[a]({SITE}part/b/?c=d#e)"),
        ("[a](../labs/l.ipynb)", f"[a]({SITE}labs/l/)"),
        ("[a](index.md)", f"[a]({SITE}part/)"),
        ("[a](../index.md#x)", f"[a]({SITE}#x)"),
        ("[a](../code/x.py)", f"[a]({SITE}code/x.py)"),
        ("[a](https://b.org/c.md)", "[a](https://b.org/c.md)"),
        ("[a](#c)", "[a](#c)"),
    ],
)
def test_links_are_absolute(link, target):
    assert page_parts.absolute_links(link, "part/page.md", SITE) == target


@pytest.mark.parametrize(
    ("address", "known"),
    [
        ("https://example.org/en/", True),
        ("https://a.b.io:8000/", True),
        ("http://localhost:8000/", False),
        ("http://127.0.0.1:8731/en/", False),
        ("http://[::1]/", False),
        ("/", False),
    ],
)
def test_who_is_published(address, known, monkeypatch):
    assert page_parts.published(address) is known
    text = f"See [a [b] c]({address}part/a/#x) and [d](https://other.org/)."
    kept = text if known else "See a [b] c and [d](https://other.org/)."
    assert page_parts.lasting(text, address) == kept
    titles = {"part/a.md": "Title"}
    monkeypatch.setattr(page_parts.reference_lists, "pages", lambda language: titles)
    where = f"<{address}part/a/>" if known else "“Title”"
    assert page_parts.whereabouts("part/a.md", "zh", address) == where


def test_what_stands_for_a_name(monkeypatch):
    def note(module, name):
        monkeypatch.setattr(module, name, lambda *of: f"{name}{of}")

    for module, name in (
        (page_parts.facts, "design"),
        (page_parts.facts, "text"),
        (page_parts.gradient_bet, "text"),
        (page_parts.playground, "text"),
        (page_parts.explore, "text"),
        (page_parts.mock, "text"),
        (page_parts.atlas, "make_plain"),
    ):
        note(module, name)
    words = {"zh": {"caption": "甲", "alt": "乙。"}}
    found = [SimpleNamespace(machine=m) for m in ("m", "n")]
    monkeypatch.setattr(page_parts.facts, "recorded", lambda: {"e": found})
    monkeypatch.setattr(page_parts.facts, "words", lambda record, of: words[of])
    drawn = SimpleNamespace(WORDS=words)
    monkeypatch.setattr(page_parts.diagram, "load", lambda name: drawn)
    wanted = {
        "figures.e": "*甲* (m) 乙。\n\n*甲* (n) 乙。",
        "designs.e": f"design('e', 'zh', {page_parts.designs.plain})",
        "diagrams.d": "*甲* 乙。",
        "bets.gradient": "text('gradient', 'zh')",
        "playground.screen": "text('zh',)",
        "explore.x": "text('x', 'zh')",
        "mock.quiz": "text('quiz', 'zh')",
        "atlas.table": "make_plain('table', 'zh')",
        "facts.e.a": "text('facts.e.a',)",
    }
    for name, text in wanted.items():
        assert page_parts._resolve(f"[[ {name} ]]", "zh") == (
            page_parts.TAG.sub("", text)
        ), name
    assert page_parts._resolve("## T `x` { #t }\n[a](b){ #moved }", "zh") == (
        "## T `x`\n[a](b)"
    )


def test_which_pages_have_code():
    embed = '```{}\n--8<-- "a.py"\n```'
    assert page_parts.has_code(embed.format("python"))
    assert not page_parts.has_code(embed.format("text"))
    assert not page_parts.has_code("```python\nx = 1\n```")
    assert not page_parts.has_code("text")
