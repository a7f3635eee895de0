"""Changes of a snippet's text: where they apply, what they show, what is refused."""

import pytest

from scripts.site.data import known_wrong
from scripts.site.reading.source import SourceError

BASE = """def scale(x):
    return 2 * x
"""
HOME = """from snippets.a.base import scale


def other(x):
    return scale(x) + 1


def judged(
    x,
) -> float:
    y = scale(x) + 1
    return y * y


y = judged(1)
"""


@pytest.fixture(autouse=True)
def snippets(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/base.py").write_text(BASE, encoding="utf-8")
    (tmp_path / "a/home.py").write_text(HOME, encoding="utf-8")
    monkeypatch.setattr(known_wrong, "SNIPPETS", tmp_path)


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ("scale(x) + 1 => scale(x)", ["- y = scale(x) + 1", "+ y = scale(x)"]),
        (" * y =>", ["- return y * y", "+ return y"]),
        ("return y * y => y = y + 1\nreturn y", None),
        ("y = scale(x) + 1\nreturn y => return x", None),
        ("2 * x => x", ["  # a/base.py", "- return 2 * x", "+ return x"]),
        ("y = scale => x = x\ny = scale", ["+ x = x", "  y = scale(x) + 1"]),
        (["+ 1 => + 2", "+ 2 => + 3"], ["- y = scale(x) + 1", "+ y = scale(x) + 3"]),
    ],
)
def test_a_change_shows_the_lines_that_differ(change, shown):
    found = known_wrong.difference("a.home", "judged", change)
    lines = {
        "return y * y => y = y + 1\nreturn y": [
            *("- return y * y", "+ y = y + 1", "+ return y"),
        ],
        "y = scale(x) + 1\nreturn y => return x": [
            *("- y = scale(x) + 1", "- return y * y", "+ return x * y"),
        ],
    }
    assert found == (shown or lines[change])


def test_everywhere_replaces_all_that_a_module_has():
    new = known_wrong.changed("a.home", "judged", "everywhere + 1 => + 2")
    assert new == {"a.home": HOME.replace("+ 1", "+ 2")}


@pytest.mark.parametrize(
    ("change", "says"),
    [("z => w", "nowhere"), ("y => z", "stands 3 times"), ("3 * x => x", "nowhere")],
)
def test_a_change_that_does_not_apply(change, says):
    with pytest.raises(SourceError, match=says):
        known_wrong.changed("a.home", "judged", change)
