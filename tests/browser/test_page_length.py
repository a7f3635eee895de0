"""The law of length notices a long page and prose made of numbers, and skips folds."""

from dataclasses import replace

import pytest

from tests.browser.page_length import (
    MAX_SCREENS,
    MAX_SCREENS_OF_A_CHAPTER,
    MAX_SCREENS_WITH_FORK,
    Length,
    is_chapter,
    is_topical,
    measure,
)
from tests.lanes import first_quick

PAGE = "zh/attention/soft-capping/"
ADD = "html => document.querySelector('article').insertAdjacentHTML('beforeend', html)"
SENTENCE = "<p>这一段里没有数字，只有普通的一句话，读者会从头读到尾。</p>"
DENSE = "<p>损失 1.02、1.05、1.11，学习率 0.002、0.004、0.008。</p>"


@pytest.fixture
def page(site, open_page):
    page = open_page()
    page.goto(site[1] + PAGE)
    return page


def test_a_planted_long_page_fails(page, browser_checks):
    page.evaluate(ADD, SENTENCE * 400)
    length = measure(page, PAGE)
    assert length.screens > MAX_SCREENS
    assert any("longer than" in problem for problem in length.problems())
    browser_checks.add(1)


def test_planted_prose_of_numbers_fails_in_chinese(page, browser_checks):
    page.evaluate(ADD, DENSE * 120)
    problems = measure(page, PAGE).problems()
    assert any("more than one number" in problem for problem in problems)
    english = measure(page, PAGE.replace("zh/", "en/")).problems()
    assert not any("more than one number" in problem for problem in english)
    browser_checks.add(2)


@pytest.mark.parametrize("kind", first_quick("details", "table", "pre"))
def test_what_is_folded_or_no_prose_is_not_counted(kind, page, browser_checks):
    before = measure(page, PAGE)
    held = {
        "details": f"<details><summary>表</summary>{DENSE * 200}</details>",
        "table": "<table><tr><td><p>1 2 3 4</p></td></tr></table>",
        "pre": "<pre>1 2 3 4</pre>",
    }
    page.evaluate(ADD, held[kind])
    after = measure(page, PAGE)
    assert (after.characters, after.numbers) == (before.characters, before.numbers)
    assert after.screens - before.screens < 0.3
    browser_checks.add(2)


def test_a_list_within_a_list_is_counted_once(page, browser_checks):
    before = measure(page, PAGE)
    page.evaluate(ADD, "<ul><li>甲乙<ul><li>丙丁 12</li></ul></li></ul>")
    after = measure(page, PAGE)
    assert after.characters - before.characters == 6
    assert after.numbers - before.numbers == 1
    browser_checks.add(2)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("float16 与 GPT-2，Llama-3.1 与 H200", 0), ("1e-5、0.03、1,024 与 12 层", 4)],
)
def test_a_digit_in_a_name_is_no_number(text, numbers, page, browser_checks):
    before = measure(page, PAGE)
    page.evaluate(ADD, f"<p>{text}</p>")
    assert measure(page, PAGE).numbers - before.numbers == numbers
    browser_checks.add(1)


def test_a_chapter_is_short_and_may_hold_numbers():
    chapter = Length("zh/learn/dropped-mean/", MAX_SCREENS_OF_A_CHAPTER, 400, 100, 15)
    assert is_chapter(chapter.path) and not is_topical(chapter.path)
    assert chapter.problems() == []
    (problem,) = replace(chapter, screens=MAX_SCREENS_OF_A_CHAPTER + 0.1).problems()
    assert "longer than 5 screens" in problem


def test_a_page_with_a_fork_is_half_as_long():
    page = Length("en/rmsnorm/rms-norm/", MAX_SCREENS_WITH_FORK + 0.1, 400, 1, 15)
    assert page.problems() == []
    (problem,) = replace(page, forked=True).problems()
    assert "longer than 7 screens" in problem


def test_topical():
    assert is_topical("en/foundations/layer-norm/")
    assert is_topical("zh/claims/placement-and-depth/")
    assert not is_topical("en/") and not is_topical("zh/interview/sheet/")
