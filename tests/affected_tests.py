"""What ``make test-fast`` runs: laws of pages and data, tests of what was touched.

``python -m tests.affected_tests`` prints the arguments of pytest. Touched is what
differs from the branch main, or from the last commit where there is no main: pages and
their snippets, claims, records, and test files. What else may depend on it, and the
laws of the built site, are for ``make test``.
"""

import re
import subprocess
from collections.abc import Iterable

from scripts.site.reading.source import ROOT

LAWS = (
    "tests/pages",
    "tests/claims/test_ledger.py",
    "tests/interview/test_bank.py",
    "tests/interview/test_pages.py",
    "tests/interview/test_said_in_answers.py",
    "tests/test_designs.py",
    "tests/test_layers.py",
    "tests/test_names.py",
    "tests/test_rejected.py",
)
PAGE = re.compile(r"docs/(?:zh|en)/pages/(?P<path>(?:.+/)?(?P<slug>[^/]+))\.md")
SNIPPET = re.compile(r"(?:tests/)?snippets/(?P<folder>\w+)/.+")
CLAIMS = re.compile(r"(?:docs/data|tests)/claims/\w[\w-]*\.(?:yml|py)")
RECORD = re.compile(r"docs/(?:records|facts)/.+\.json")
REJECTED = re.compile(r"docs/data/rejected/(?P<folder>\w+)\.yml")


def changed() -> list[str]:
    """Paths that differ from main, tracked or not; none where there is no git."""
    for base in (["--merge-base", "main"], ["HEAD"]):
        differ = git("diff", "--name-only", "--no-renames", *base)
        if differ is not None:
            return differ + (git("ls-files", "--others", "--exclude-standard") or [])
    return []


def git(*arguments: str) -> list[str] | None:
    """The lines that git prints; None if it fails or is not here."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True
        )
    except OSError:
        return None
    return done.stdout.splitlines() if done.returncode == 0 else None


def selected(paths: Iterable[str]) -> list[str]:
    """The tests of touched paths: pages in both languages, and their snippets'."""
    found = set()
    for path in paths:
        if page := PAGE.fullmatch(path):
            found |= {f"docs/{lang}/pages/{page['path']}.md" for lang in ("zh", "en")}
            found.add(f"tests/snippets/{page['slug'].replace('-', '_')}")
        elif snippet := SNIPPET.fullmatch(path):
            found |= {
                *showing(snippet["folder"]),
                f"tests/snippets/{snippet['folder']}",
            }
        elif CLAIMS.fullmatch(path):
            found.add("tests/claims/test_verdicts.py")
        elif RECORD.fullmatch(path):
            found.add("tests/site/reading/test_generated.py")
        elif rejected := REJECTED.fullmatch(path):
            found.add(f"tests/snippets/{rejected['folder']}")
        elif re.fullmatch(r"tests/(.+/)?test_\w+\.py", path):
            found.add(path)
    return sorted(
        path
        for path in found - set(LAWS)
        if (ROOT / path).exists() and not path.startswith("tests/pages/")
    )


def showing(folder: str) -> list[str]:
    """The pages that embed files of a folder of snippets."""
    return [
        page.relative_to(ROOT).as_posix()
        for page in ROOT.glob("docs/*/pages/**/*.md")
        if f'--8<-- "{folder}/' in page.read_text(encoding="utf-8")
    ]


if __name__ == "__main__":
    print(*LAWS, *selected(changed()))
