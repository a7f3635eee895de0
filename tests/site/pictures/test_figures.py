"""A measured figure: how a reader measures it, and their own beside ours."""

import os
import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from scripts.measure import figures, records, svg
from scripts.site.data import facts
from scripts.site.pages import macros
from scripts.site.reading.source import ROOT

LABELS = dict.fromkeys(("record", "alternative", "rerun", "rerun_how"), "label")


@pytest.fixture
def own_record(tmp_path, monkeypatch):
    """The record of init_gradients, and the same as the machine `yours`."""
    (ours,) = records.find("init_gradients")
    monkeypatch.setattr(records, "RECORDS", tmp_path / "records")
    monkeypatch.setattr(figures, "FIGURES", tmp_path / "figures")
    found = [ours, replace(ours, machine=records.YOURS)]
    monkeypatch.setattr(records, "find", lambda name: found if name == "x" else [])
    monkeypatch.setattr(records, "experiments", lambda: ["x"])
    monkeypatch.setattr(macros, "words", lambda *_: {"caption": "Norms", "alt": "Rise"})
    drawn = ROOT / "docs/figures" / ours.machine / "init_gradients.en.svg"
    for record in found:
        path = figures.figure_path("x", record.machine, "en")
        path.parent.mkdir(parents=True)
        shutil.copy(drawn, path)
    # What the cache is keyed by: the files of the folder of records.
    (tmp_path / "records/yours").mkdir(parents=True)
    (tmp_path / "records/yours/x.json").write_text("")
    facts.read_again()
    yield found
    facts.read_again()


def test_the_readers_figure_stands_beside_ours(own_record):
    shown = macros.all_machines("x", "en", LABELS, "../")
    assert shown.startswith('<div class="machines">')
    machines = re.findall(r'<figure [^>]*id="x-([\w-]+)"', shown)
    assert machines == [own_record[0].machine, "yours"]
    assert shown.count("<code>make reproduce NAME=x</code>") == 2


def test_one_machine_needs_no_grid(own_record):
    own_record.pop()
    facts._recorded.cache_clear()
    shown = macros.all_machines("x", "en", LABELS, "../")
    assert shown.startswith("<figure")


def test_a_page_rounds_coordinates_and_no_words():
    drawn = (
        '<svg><path d="M 1.23456 -0.0001 L 2 33.56 "/><text x="2.0049">0.0625</text>'
    )
    seen = svg.slim(drawn)
    assert seen == '<svg><path d="M1.23 0L2 33.6"/><text x="2">0.0625</text>'


def test_styles_stand_once_and_ids_are_its_own():
    mark = '<use xlink:href="#long-id" x="1.0" style="fill: red"/>'
    drawn = (
        f'<svg><defs><path id="long-id"/></defs><g><g id="a">{mark * 3}</g></g></svg>'
    )
    seen = svg.slim(drawn)
    (own,) = re.findall(r'<path id="(\w+)-0"/>', seen)
    use = f'<use xlink:href="#{own}-0" x="1" class="{own}0"/>'
    style = f"<style>.{own}0{{fill: red}}</style>"
    path = f'<defs><path id="{own}-0"/></defs>'
    assert seen == f"<svg>{style}{path}{use * 3}</svg>"
    other = svg.slim(drawn.replace("red", "blue"))
    assert own not in other


def makes(*arguments):
    return subprocess.run(
        ["make", "--just-print", "--no-print-directory", *arguments],
        cwd=ROOT,
        env={**os.environ, "MAKEFLAGS": ""},
        capture_output=True,
        text=True,
    ).stdout


def test_one_command_measures_as_yours_and_serves():
    said = makes("reproduce", "NAME=init_gradients", "PORT=8001").splitlines()
    measured, served = said[-2:]
    assert "MACHINE=yours" in measured
    assert measured.endswith("scripts/build.py measure init_gradients")
    assert served.endswith("scripts/build.py serve --address 127.0.0.1:8001")
    assert makes("serve", "PORT=8002").splitlines()[-1].endswith(":8002")


def test_without_a_name_it_asks_which():
    run = subprocess.run(
        ["make", "--silent", "--old-file=.venv/run.installed", "reproduce"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode != 0
    assert "make reproduce NAME=" in run.stdout


def test_git_ignores_what_is_yours(tmp_path):
    """In a repository of its own: a source archive is none."""
    shutil.copy(ROOT / ".gitignore", tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    for path, status in (
        ("docs/records/yours/x.json", 0),
        ("docs/figures/yours/x.en.svg", 0),
        ("docs/records/amd-epyc/x.json", 1),
    ):
        found = subprocess.run(["git", "check-ignore", "-q", path], cwd=tmp_path)
        assert found.returncode == status
