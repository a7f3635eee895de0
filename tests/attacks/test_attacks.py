"""Attacks on what the project promises: each is refused, or slips for a reason.

attacks.yml lists them. All are planted in one copy of the tree, each in its own place;
then every law is asked once about the copy.
"""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts.site.laws import blocks, markup
from scripts.site.reading.files import read_yaml
from scripts.site.reading.source import ROOT
from tests.attacks import laws

LISTED = read_yaml(Path(__file__).with_name("attacks.yml"))
COPIED = ("docs", "snippets", "scripts", "tests", "mkdocs.yml", "CONTRIBUTING.md")
COPIED += ("requirements.txt", "pyproject.toml", "Makefile", ".ci", ".github")
BUILT = {  # laws over HTML: an attack is a piece of a page
    "site/laws/test_blocks.py": lambda text: blocks.problems_of(text, frozenset()),
    "site/laws/test_markup.py": lambda text: [
        problem
        for tag in markup.tags(text)
        for problem in markup.problems_of(tag, "https://example.org/")
    ],
}


@dataclass(frozen=True)
class Attack:
    """``new`` instead of ``old`` in a file; a paragraph at its end without ``old``.

    says    what the law's line holds; for a page without it: file and line
    slips   why no law refuses it, and rightly
    """

    law: str
    file: str
    new: str
    old: str = ""
    says: str = ""
    slips: str = ""

    def __str__(self):
        return f"{self.file}: {self.new.strip()[:80]!r}"


def refused() -> list[Attack]:
    return [
        Attack(law, file, **(one if isinstance(one, dict) else {"new": one}))
        for law, files in LISTED["refused"].items()
        for file, ones in files.items()
        for one in ones
    ]


def slipping() -> list[Attack]:
    return [
        Attack("", file, **one, slips=why)
        for why, files in LISTED["slips"].items()
        for file, ones in files.items()
        for one in (o if isinstance(o, dict) else {"new": o} for o in ones)
    ]


ATTACKS = [*refused(), *slipping()]
PLANTED = [attack for attack in ATTACKS if attack.law not in BUILT]


def planted(text: str, attacks: list[Attack]) -> str:
    for attack in attacks:
        if attack.old:
            assert text.count(attack.old), f"{attack.file} has no {attack.old!r}"
            text = text.replace(attack.old, attack.new, 1)
        else:
            text = text.rstrip("\n") + f"\n\n{attack.new}\n"
    return text


def places(attack: Attack, text: str) -> list[str]:
    """'file:line:' of each line of the attack in the planted text."""
    at = text.rindex(attack.new.strip("\n"))
    first = text.count("\n", 0, at) + 1
    last = first + attack.new.strip("\n").count("\n")
    return [f"{attack.file}:{line}: " for line in range(first, last + 1)]


def named(attack: Attack, text: str, said: list[str]) -> bool:
    """Whether one of these lines is about the attack."""
    wanted = [attack.says] if attack.says else places(attack, text)
    return any(part in line for line in said for part in wanted)


def wrong(attacks: list[Attack], texts: dict, said: dict[str, list[str]]) -> list[str]:
    """Attacks that no law names, and those that are named and said to slip."""
    found = []
    for attack in attacks:
        text = texts[attack.file]
        if attack.slips:
            by = [law for law in said if named(attack, text, said[law])]
            found += [f"{attack} does not slip: {law} sees it" for law in by]
        elif not named(attack, text, said[attack.law]):
            found.append(f"{attack} gets through {attack.law}")
    return found


def test_each_attack_is_refused_or_slips_for_a_reason(tmp_path, obeyed):
    for name in COPIED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    texts = {}
    for file in {attack.file for attack in PLANTED}:
        path = tmp_path / file
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        texts[file] = planted(text, [a for a in PLANTED if a.file == file])
        path.write_text(texts[file], encoding="utf-8")
    asked = subprocess.run(
        [sys.executable, "-m", "tests.attacks.laws"],
        cwd=tmp_path,
        input=json.dumps([*texts]),
        capture_output=True,
        text=True,
    )
    assert asked.returncode == 0, asked.stderr
    obeyed(wrong(PLANTED, texts, json.loads(asked.stdout)))


def test_the_unharmed_tree_has_no_problem(obeyed):
    said = laws.problems({attack.file for attack in PLANTED})
    obeyed(f"{law}: {line}" for law, lines in said.items() for line in lines)


def test_pieces_of_built_pages(obeyed):
    built = [attack for attack in ATTACKS if attack.law in BUILT]
    obeyed(f"{a} gets through {a.law}" for a in built if not BUILT[a.law](a.new))


def test_one_that_gets_through_is_named():
    page = "docs/en/pages/index.md"
    one, other = Attack("a", page, "It is 3x faster."), Attack("a", page, "Fast.")
    slips = Attack("", page, "Slow.", slips="no amount")
    texts = {page: planted("# Home\n", [one, other, slips])}
    assert texts[page].splitlines()[2::2] == [one.new, other.new, slips.new]
    said = {"a": [f"{page}:3: '3x'", f"{page}:55: 'x'"]}
    assert wrong([one, slips], texts, said) == []
    assert wrong([other], texts, said) == [f"{other} gets through a"]
    said["a"] += [f"{page}:7: 'Slow'"]
    assert wrong([slips], texts, said) == [f"{slips} does not slip: a sees it"]


@pytest.mark.parametrize("attack", LISTED["tested"])
def test_others_have_their_own_test(attack):
    file, _, test = LISTED["tested"][attack].partition("::")
    text = (ROOT / "tests" / file).read_text(encoding="utf-8")
    assert f"\ndef {test}(" in text
