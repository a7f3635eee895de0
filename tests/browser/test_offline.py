"""The offline build, opened as files in Chromium: nothing asked of any host."""

import shutil
import zipfile
from pathlib import Path

import pytest
import yaml

from scripts.site.publish import anki_decks, offline
from scripts.site.questions import interview
from scripts.site.reading.source import LANGUAGES, ROOT
from tests.site.conftest import Project

QUERY = {"zh": "带宽", "en": "bandwidth"}
GROUP = "rms-norm"
INTERVIEW = (f"{GROUP}.md", "quiz.md", "quiz-methods.md", "mock.md")
TEXT = {"en": "Is $x$ scaled?", "zh": "$x$ 缩放了吗？"}
SAID = {"en": "$x$ is.", "zh": "$x$ 缩放了。"}


def question(number: int) -> dict:
    row = {"id": f"question-{number}", "level": "screening"}
    return row | {
        **{field: TEXT for field in interview.TEXTS},
        **{name: dict.fromkeys(of, SAID) for name, of in interview.PAIRS.items()},
        "evidence": ["rmsnorm/rms-norm.md"],
    }


def item(number: int) -> dict:
    row = {"id": f"item-{number}", "level": "screening", "question": TEXT}
    options = {name: {"text": TEXT, "why": TEXT} for name in ("yes", "no", "both")}
    evidence = ["rmsnorm/rms-norm.md"]
    return row | {"options": options, "answer": "yes", "evidence": evidence}


def small_project(root) -> Project:
    """One topic, and of the interview a group of two questions and two items."""
    project = Project(root)
    project.keep_only("rmsnorm")
    for kind, make in (("interview", question), ("quiz", item)):
        file = root / "docs" / "data" / kind / f"{GROUP}.yml"
        file.parent.mkdir()
        file.write_text(yaml.safe_dump([make(1), make(2)], allow_unicode=True))
    for language in LANGUAGES:
        pages = root / "docs" / language / "pages" / "interview"
        pages.mkdir()
        for name in INTERVIEW:
            shutil.copy(ROOT / "docs" / language / "pages" / "interview" / name, pages)
        home = pages.parent / "index.md"
        text = home.read_text().replace("---\n", "---\nscript: home.js\n", 1)
        home.write_text(
            text + "\n<open-search>[Pages](rmsnorm/rms-norm.md)</open-search>\n"
        )
        front = (
            f"---\ntitle: Index\ndescription: {'Index. ' * 8}\n---\n\n# Index {{ #i }}"
        )
        link = "[deck](norms-measured.apkg)"
        (pages / "index.md").write_text(f"{front}\n\n{link}\n")
        nav = "".join(
            f"      - interview/{name}\n" for name in ("index.md", *INTERVIEW)
        )
        project.edit(
            root / "docs" / language / "mkdocs.yml",
            "\nextra:",
            f"\n  - Interview:\n{nav}extra:",
        )
    return project


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return small_project(tmp_path_factory.mktemp("project"))


def build(project) -> Path:
    done = project.run("scripts/build.py", "site", "--offline")
    assert done.returncode == 0, done.stderr[-2000:]
    return project.root / offline.FOLDER.name


@pytest.fixture(scope="module")
def built(project):
    return build(project)


@pytest.fixture
def page(built, open_page):
    """A page that notes every error, and every request that leaves the folder."""
    page, problems = open_page(), []
    page.on("console", lambda m: problems.append(f"{m.type}: {m.text}"))
    page.on("pageerror", lambda error: problems.append(str(error)))

    def failed(request):
        if request.failure != "net::ERR_ABORTED":  # the test went on to another page
            problems.append(f"no {request.url}: {request.failure}")

    def asked(request):
        if not request.url.startswith((built.as_uri(), "data:")):
            problems.append(f"asked for {request.url}")

    page.on("requestfailed", failed)
    page.on("request", asked)
    page.address = f"{built.as_uri()}/{offline.NAME}/"
    yield page
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(("here", "there"), [("zh", "en"), ("en", "zh")])
def test_reading(here, there, page, browser_checks):
    page.goto(f"{page.address}{here}/index.html")
    page.locator(".md-tabs a[href*='rms-norm.html']").click()
    page.wait_for_url("**/rmsnorm/rms-norm.html")
    page.wait_for_load_state()
    page.locator("button[aria-label]:has(+ .md-select__inner)").hover()
    page.locator(f".md-select__link[hreflang={there}]").click()
    page.wait_for_url(f"{page.address}{there}/rmsnorm/rms-norm.html")
    page.goto(f"{page.address}{there}/rmsnorm/speed.html")
    link = page.locator("figure.measured figcaption a").first
    target = link.evaluate("a => a.href").removeprefix("file://")
    assert target.endswith(".json") and Path(target).is_file()
    browser_checks.add(2)


@pytest.mark.parametrize("language", LANGUAGES)
def test_search(language, page, browser_checks):
    page.goto(f"{page.address}{language}/index.html")
    page.keyboard.press("/")
    box = page.locator("[data-md-component=search-query]")
    box.wait_for(state="visible")
    box.press_sequentially(QUERY[language])
    home = f"{page.address}{language}/"
    links = page.locator(".md-search-result__link")
    page.locator(
        ".md-search-result__link[href*='/rmsnorm/speed.html']"
    ).first.wait_for()
    page.locator(".md-search-result mark").first.wait_for()
    hits = links.evaluate_all("links => links.map((link) => link.href)")
    assert all(hit.startswith(home) for hit in hits), hits
    browser_checks.add(2)


@pytest.mark.parametrize("language", LANGUAGES)
def test_search_from_the_home_page(language, page, browser_checks):
    page.goto(f"{page.address}{language}/index.html")
    page.locator("open-search input").fill(QUERY[language])
    page.keyboard.press("Enter")
    page.locator(".md-search-result__link[href*='speed.html']").first.wait_for()
    browser_checks.add(1)


@pytest.mark.parametrize("language", LANGUAGES)
def test_mock_interview_by_keyboard(language, page, browser_checks):
    page.goto(f"{page.address}{language}/interview/mock.html")
    page.locator("mock-interview button[type=submit]").focus()
    for _ in range(2):
        page.keyboard.press("Enter")  # starts, then rates
        page.locator("h3.mock-question:focus").wait_for()
        for wanted in ("mock-main", "mock-revise"):
            page.keyboard.press("Enter")
            page.locator(".mock-answer:focus").wait_for()
            while wanted not in page.evaluate("document.activeElement.className"):
                page.keyboard.press("Tab")
            if wanted == "mock-main":
                page.keyboard.press("Enter")  # on to the follow-up
                page.locator("h3.mock-question:focus").wait_for()
    page.keyboard.press("Enter")
    links = page.locator("mock-interview ul a:visible")
    assert links.count() == 2
    links.first.click()
    page.wait_for_url(f"{page.address}{language}/interview/{GROUP}.html#question-*")
    page.locator(".asked > details[open]").wait_for()
    assert page.locator(".asked details[open]").count() == 1
    browser_checks.add(4)


@pytest.mark.parametrize("language", LANGUAGES)
def test_quiz_by_keyboard(language, page, browser_checks):
    """Answered, read again after a reload and on the page of all scores, deleted."""
    page.goto(f"{page.address}{language}/interview/quiz-methods.html")
    page.locator("#item-1 input[value=yes]").focus()
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    page.locator("#item-1 summary:focus").wait_for()
    score = page.locator("quiz-score span")
    said = {"en": "1 of 2 answered, 1 right.", "zh": "已答 1/2 题，答对 1 题。"}
    assert score.inner_text() == said[language]
    page.reload()
    page.locator("#item-1 label.right").wait_for()
    page.locator(".md-content a[href*='quiz.html']").click()
    page.wait_for_url("**/quiz.html")
    assert set(score.all_inner_texts()) == {said[language]}
    page.once("dialog", lambda dialog: dialog.accept())
    page.locator("quiz-score button").focus()
    page.keyboard.press("Enter")
    page.locator("quiz-score span:focus").wait_for()
    assert page.evaluate("localStorage['norms-measured.quiz']") == "{}"
    browser_checks.add(4)


@pytest.mark.parametrize("language", LANGUAGES)
def test_mixed_round(language, page, browser_checks):
    """Drawn, answered wrong, drawn again after a reload; its evidence is found."""
    page.goto(f"{page.address}{language}/interview/quiz.html")
    items = page.locator("quiz-round .quiz:not([hidden])")
    for fits, option in ((2, "no"), (1, "yes")):
        page.locator(".draw [type=submit]").click()
        assert items.count() == fits
        items.first.locator(f"input[value={option}]").check()
        page.keyboard.press("Enter")
        page.reload()
        page.locator(".draw [value=missed]").check()
    assert page.locator(".draw [type=submit]").is_disabled()
    page.locator(".draw [value=all]").check()
    page.locator(".draw [type=submit]").click()
    items.first.locator("summary").click()
    items.first.locator("details a").click()
    page.wait_for_url(f"{page.address}{language}/interview/quiz-methods.html#item-*")
    page.locator(".quiz > details[open]").wait_for()
    browser_checks.add(4)


@pytest.mark.parametrize("language", LANGUAGES)
def test_live_figure(language, page, browser_checks):
    page.goto(f"{page.address}{language}/rmsnorm/low-precision.html")
    view = page.locator("explore-numbers .view")
    opening = view.inner_html()
    page.locator("explore-numbers input[name=eps]").focus()
    page.keyboard.press("ArrowLeft")
    assert view.inner_html() != opening
    page.wait_for_url("**numbers.eps=-7**")
    browser_checks.add(2)


def test_portal(page, browser_checks):
    page.goto(page.address + "index.html")
    page.wait_for_url(page.address + "en/index.html")
    browser_checks.add()


def test_zip_holds_the_folder(built):
    with zipfile.ZipFile(built / f"{offline.NAME}.zip") as archive:
        names = archive.namelist()
        assert archive.testzip() is None
    files = (path for path in (built / offline.NAME).rglob("*") if path.is_file())
    assert set(names) == {path.relative_to(built).as_posix() for path in files}
    for language in LANGUAGES:
        folder = f"{offline.NAME}/{language}/"
        assert folder + anki_decks.URI in names
        assert f"{folder}rmsnorm/rms-norm.ipynb" in names


@pytest.mark.slow
def test_same_sources_same_bytes(built, project):
    packed = built / f"{offline.NAME}.zip"
    first = packed.read_bytes()
    build(project)
    assert packed.read_bytes() == first


@pytest.mark.slow
def test_failed_build_is_one_line(project):
    """The last, since it breaks the project."""
    project.append(project.root / "mkdocs.yml", "\nno_such_setting: 1\n")
    done = project.run("scripts/build.py", "site", "--offline")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("build.py: the offline build")
    assert "Traceback" not in done.stderr
