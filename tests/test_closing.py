"""The known-wrong fixture and the closing line are themselves able to fail."""

import pytest

from tests.closing import closing_line, longest, why_no_browser


def check_doubles(function):
    assert function(3) == 6


def check_refuses_none(function):
    with pytest.raises(TypeError):
        function(None)


def squares(x):
    return x * x


def doubles_and_forgives(x):
    return 2 * x if x is not None else 0


def doubles(x):
    return 2 * x


def crashes(x):
    raise RuntimeError("not a rejection")


@pytest.mark.parametrize("wrong", [squares, doubles_and_forgives])
def test_rejects(wrong, known_wrong):
    known_wrong.rejected_by([check_doubles, check_refuses_none], wrong)


def test_a_right_variant_is_reported(known_wrong):
    with pytest.raises(pytest.fail.Exception, match=r"no check rejects .* doubles"):
        known_wrong.rejected_by([check_doubles, check_refuses_none], doubles)


def test_a_crash_is_no_rejection(known_wrong):
    with pytest.raises(RuntimeError):
        known_wrong.rejected_by([check_doubles], crashes)


def test_closing_line():
    properties = [
        ("page", "docs/zh/pages/a.md"),
        ("page", "docs/zh/pages/a.md"),
        ("page", "docs/en/pages/a.md"),
        ("block", "zh"),
        ("block", "zh"),
        ("block", "en"),
        ("known wrong", "squares"),
        ("known wrong", "squares"),
        ("browser checks", 3),
        ("browser checks", 4),
    ]
    assert closing_line(properties, "unused") == (
        "pages: 2 (zh 1, en 1) · blocks run: zh 2, en 1"
        " · known-wrong variants rejected: 2 · browser checks: 7"
    )
    assert closing_line([], "no Chromium").endswith("browser checks: 0 (no Chromium)")
    assert "not part of this run" in why_no_browser({})


def test_the_longest_pages_are_named_first():
    lines = [(" 9.5 screens: a"), ("12.0 screens: b"), *["1.0 screens: c"] * 9]
    named = longest([("length", line) for line in lines] + [("page", "x")])
    assert named[:2] == ["long page: 12.0 screens: b", "long page:  9.5 screens: a"]
    assert len(named) == 5
