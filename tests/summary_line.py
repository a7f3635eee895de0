"""The closing lines of a run: how many pages, blocks, wrong variants, checks.

Counts travel in ``user_properties`` of the tests that earned them, so they are
right for any selection of tests and in any order:
("page", path), ("block", language), ("known wrong", name), ("browser checks", n),
("measured", a line to print as it is), ("length", a line that begins with screens).
"""

from collections import Counter

LONGEST = 5  # pages named


def pytest_terminal_summary(terminalreporter):
    reports = terminalreporter.stats
    properties = [
        pair
        for report in reports.get("passed", []) + reports.get("failed", [])
        if getattr(report, "when", None) == "call"
        for pair in report.user_properties
    ]
    if properties:
        terminalreporter.section("what was checked", "-")
        for kind, text in properties:
            if kind == "measured":
                terminalreporter.write_line(str(text))
        for line in longest(properties):
            terminalreporter.write_line(line)
        terminalreporter.write_line(closing_line(properties, why_no_browser(reports)))


def longest(properties: list[tuple[str, object]]) -> list[str]:
    """The longest pages, one line each."""
    lines = [str(text) for kind, text in properties if kind == "length"]
    lines.sort(key=lambda line: float(line.split()[0]), reverse=True)
    return [f"long page: {line}" for line in lines[:LONGEST]]


def closing_line(properties: list[tuple[str, object]], no_browser: str) -> str:
    """One line of counts; ``no_browser`` says why the last may be zero."""
    count = Counter(properties)
    pages = Counter(name.split("/")[1] for kind, name in count if kind == "page")
    checks = sum(n for kind, n in properties if kind == "browser checks")
    wrong = sum(kind == "known wrong" for kind, _ in properties)
    return " · ".join(
        (
            f"pages: {pages.total()} (zh {pages['zh']}, en {pages['en']})",
            f"blocks run: zh {count['block', 'zh']}, en {count['block', 'en']}",
            f"known-wrong variants rejected: {wrong}",
            f"browser checks: {checks}" + ("" if checks else f" ({no_browser})"),
        )
    )


def why_no_browser(reports: dict[str, list]) -> str:
    for report in reports.get("skipped", []):
        if report.nodeid.startswith("tests/browser"):
            return f"skipped: {report.longrepr[-1].removeprefix('Skipped: ')}"
    for outcome in ("error", "failed", "passed"):
        for report in reports.get(outcome, []):
            if report.nodeid.startswith("tests/browser"):
                return f"{outcome}, but none counted"
    return "tests/browser was not part of this run"
