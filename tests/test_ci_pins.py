"""What CI may do, and that what it installs is named exactly."""

import os
import re
import subprocess
import sys
import tomllib

import pytest
import yaml

from scripts.site.reading.source import ROOT

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PINNED = re.compile(r"uses: [\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
EXACT = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>[\w.]+)")
STRICT = os.environ.get("BROWSER_TESTS") == "required"  # in CI; you may add packages
VERSIONS = (ROOT / "requirements.txt").read_text(encoding="utf-8")


def violations(text: str) -> list[str]:
    """How a workflow gives away more than it has to."""
    found = [
        f"line {number}: {line.strip()!r} is not a commit with its version"
        for number, line in enumerate(text.splitlines(), 1)
        if "uses:" in line and not PINNED.search(line)
    ]
    workflow = yaml.safe_load(text)
    if workflow.get("permissions") != {"contents": "read"}:
        found.append("permissions of all jobs are not contents: read alone")
    cancels = workflow.get("concurrency", {}).get("cancel-in-progress")
    if cancels is True:
        found.append("a deployment of main may be cancelled")
    for name, job in workflow["jobs"].items():
        writes = {k for k, v in job.get("permissions", {}).items() if v == "write"}
        told = ["github.token" in str(step) for step in job["steps"]]
        last = not any(told[:-1]) and "uses" not in job["steps"][-1]
        if writes == {"contents"} and name == "notebooks":
            if not last or "refs/heads/main" not in job.get("if", ""):
                found.append("notebooks gives its right to more than its last step")
        elif writes and writes != {"pages", "id-token"}:
            found.append(f"{name} may write {', '.join(sorted(writes))}")
        used = " ".join(step.get("uses", "") for step in job["steps"])
        reads = writes | {k for k in job.get("permissions", {})}
        if "configure-pages" in used and "pages" not in reads:
            found.append(f"{name} reads the Pages settings without pages: read")
        found += [
            f"{name} keeps the credentials of its checkout"
            for step in job["steps"]
            if "actions/checkout" in step.get("uses", "")
            and step.get("with", {}).get("persist-credentials") is not False
        ]
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows(path, no_violations):
    no_violations(
        f"{path.name}: {v}" for v in violations(path.read_text(encoding="utf-8"))
    )


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (r"checkout@\w{40} # v[\d.]+", "checkout@v5", "is not a commit"),
        (r"(checkout@\w{40}) # v[\d.]+", r"\1", "is not a commit"),
        ("persist-credentials: false", "fetch-depth: 1", "keeps the credentials"),
        ("permissions: { contents: read }", "permissions: write-all", "of all jobs"),
        (", pages: read }", " }", "without pages: read"),
        (r"\$\{\{ github.ref != .*", "true", "may be cancelled"),
        ("pages: write, id-token: write", "contents: write", "may write contents"),
    ],
)
def test_planted(old, new, says):
    text = (ROOT / ".github/workflows/pages.yml").read_text(encoding="utf-8")
    changed, count = re.subn(old, new, text, count=1)
    assert count == 1
    assert any(says in v for v in violations(changed))


PUSHES = ROOT / ".github/workflows/notebooks.yml"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "        env: { NOTEBOOKS",
            "        env: { T: '${{ github.token }}', NOTEBOOKS",
        ),
        ("github.ref == 'refs/heads/main' && ", ""),
    ],
)
def test_planted_in_the_push(old, new):
    text = PUSHES.read_text(encoding="utf-8")
    assert text.count(old) == 1
    (found,) = violations(text.replace(old, new))
    assert "more than its last step" in found


def test_the_push_replaces_the_branch_and_takes_notebooks_alone(tmp_path):
    job = yaml.safe_load(PUSHES.read_text(encoding="utf-8"))["jobs"]["notebooks"]
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", remote], check=True)
    environment = os.environ | {"REMOTE": str(remote), "GITHUB_SHA": "0" * 40}
    for names in (["en/a/b.ipynb", "zh/c.ipynb", "en/index.html"], ["en/d.ipynb"]):
        here = tmp_path / names[0].replace("/", "-")
        for name in names:
            path = here / "site" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}", encoding="utf-8")
        script = ["bash", "-e", "-c", job["steps"][-1]["run"]]
        subprocess.run(script, cwd=here, env=environment, check=True)
        listed = ["git", "-C", remote, "ls-tree", "-r", "--name-only", "notebooks"]
        printed = subprocess.run(listed, capture_output=True, text=True, check=True)
        assert printed.stdout.split() == [n for n in names if n.endswith(".ipynb")]
    count = ["git", "-C", remote, "rev-list", "--count", "notebooks"]
    assert subprocess.run(count, capture_output=True, text=True).stdout.strip() == "1"


def test_ci_runs_ruff():
    run = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert "ruff check" in run and "ruff format --check" in run


def test_versions_are_exact_and_name_what_builds_and_all_that_is_asked_for():
    names = set()
    for line in VERSIONS.splitlines():
        match = EXACT.fullmatch(line)
        assert match, f"requirements.txt: {line!r} is no exact version"
        names.add(re.sub(r"[-_.]+", "-", match["name"]).lower())
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    asked = {
        re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", item)[0]).lower()
        for group in groups.values()
        for item in group
        if isinstance(item, str)
    }
    assert asked | {"setuptools", "pip"} <= names
    make = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "--build-constraint requirements.txt" in make  # jieba comes as source


def test_what_is_installed_is_what_is_named():
    listed = [sys.executable, "-m", "pip", "list", "--format=freeze"]
    printed = subprocess.run(listed, capture_output=True, text=True).stdout
    known = {re.sub(r"[-_.]+", "-", n).lower(): v for n, v in EXACT.findall(VERSIONS)}
    wrong = []
    for name, version in EXACT.findall(printed.replace("+cpu", "")):
        wanted = known.get(re.sub(r"[-_.]+", "-", name).lower())
        if wanted != version and (wanted or STRICT):
            wrong.append(f"{name} {version}, requirements.txt: {wanted}")
    assert wrong == []
