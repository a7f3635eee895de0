"""make serve: both languages, and a changed page or snippet is shown again."""

import json
import time

import pytest

from tests.site.conftest import Project
from tests.site.served import fetch, serve, wait_for

pytestmark = pytest.mark.slow  # builds both languages whole
BETWEEN_EDITS = 1  # seconds: a file's time must differ


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    return Project(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def address(project):
    with serve(project) as address:
        yield address
    log = (project.root / "server.log").read_text(encoding="utf-8")
    assert "dirty" not in log  # MkDocs' warning of partial builds


def test_reload_of_a_changed_page(project, address):
    wait_for(address + "zh/", "归一化实测")
    wait_for(address + "en/", "Norms, Measured")
    for sentence in ("A first new sentence.", "A second one."):
        time.sleep(BETWEEN_EDITS)
        project.append(project.page("index.md", "en"), f"\n{sentence}\n")
        wait_for(address + "en/", sentence)
    index = json.loads(fetch(address + "en/search/search_index.json"))
    text = {entry["location"]: entry["text"] for entry in index["docs"]}
    assert any("A second one." in t for t in text.values())
    assert "rmsnorm/rms-norm/#folding" in text  # of a page that was not built anew


def test_change_of_a_snippet_reaches_the_page(project, address):
    wait_for(address + "zh/rmsnorm/rms-norm/", "rms_norm")
    time.sleep(BETWEEN_EDITS)
    path = project.root / "snippets/rms_norm/reference.py"
    project.edit(path, "def rms_norm", "# a new comment\ndef rms_norm")
    wait_for(address + "zh/rmsnorm/rms-norm/", "a new comment")
