"""The policy in a browser: what is injected does not run, what is ours does."""

import re

import pytest

from tests.browser.conftest import awake

INJECTED = """<p id="planted"><script>window.ran = "script"</script>
<img src="data:image/png;base64,A" alt="" onerror="window.ran = 'onerror'">
<svg onload="window.ran = 'onload'"><script>window.ran = "svg"</script></svg>
<a href="javascript:void(window.ran = 'link')">planted</a></p>"""
BLOCKED = """addEventListener("securitypolicyviolation",
  (event) => (window.blocked = window.blocked || []).push(event.violatedDirective))"""
PAGE = "rmsnorm/rms-norm/"
# A page, and what only a script puts there.
AWAKE = {
    "": "one-token input",
    "interview/quiz-methods/": ".quiz [type=submit]",
    "interview/mock/": "mock-interview button",
    "practice/model-atlas/": "model-atlas form",
}


def blocked(page, times: int) -> bool:
    """Whether the policy blocks this often before long."""
    for _ in range(300):
        if page.evaluate("(window.blocked || []).length") >= times:
            return True
        page.wait_for_timeout(100)
    return False


@pytest.mark.parametrize("language", ["zh", "en"])
def test_injected_scripts_do_not_run(
    language, site, elsewhere, open_page, browser_checks
):
    page = open_page()
    page.add_init_script(BLOCKED)

    def plant(route):
        # fetched from outside the browser, which alone knows the host of the site
        body = route.fetch(url=f"{elsewhere}{language}/{PAGE}").text()
        assert body.count("</article>") == 1
        text = body.replace("</article>", INJECTED + "</article>")
        route.fulfill(body=text, content_type="text/html; charset=utf-8")

    page.route(re.compile(rf"{PAGE}$"), plant)
    page.goto(f"{site[1]}{language}/{PAGE}")
    page.get_by_role("link", name="planted").click()
    assert blocked(page, 5)
    assert page.evaluate("window.ran") is None
    # As from a script of the theme's that went wrong.
    page.evaluate("""() => {
      const script = document.createElement("script");
      script.textContent = "window.ran = 'element'";
      document.body.append(script);
    }""")
    assert blocked(page, 6)
    assert page.evaluate("window.ran") is None
    browser_checks.add(3)


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("path", AWAKE)
def test_the_sites_own_run(path, language, visit, browser_checks):
    page = visit(f"{language}/{path}")  # a blocked script is a console error
    page.locator(AWAKE[path]).first.wait_for(state="attached")
    assert page.evaluate("typeof __md_get") == "function"
    browser_checks.add(2)


def test_palette_and_search(visit, browser_checks):
    """The scheme is kept on the next page, and the search's worker answers."""
    page = visit("en/" + PAGE, color_scheme="light")
    scheme = "document.body.getAttribute('data-md-color-scheme')"
    before = page.evaluate(scheme)
    page.locator("[data-md-component=palette] label:visible").first.click()
    chosen = page.evaluate(scheme)
    assert chosen != before
    page.reload()
    awake(page)
    assert page.evaluate(scheme) == chosen
    page.locator("[data-md-component=search-query]").click()
    page.keyboard.type("bandwidth")
    page.locator(".md-search-result__link").first.wait_for()
    page.keyboard.press("Escape")
    page.locator(".md-footer__link").first.click()
    page.wait_for_url(lambda url: PAGE not in url)
    assert page.evaluate(scheme) == chosen
    browser_checks.add(3)
