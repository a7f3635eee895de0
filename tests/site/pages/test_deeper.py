"""Sections under #deeper fold; what ends a page stays in sight."""

import pytest

from scripts.site.pages import deeper
from scripts.site.reading.source import SourceError


def h2(name: str) -> str:
    return f'<h2 id="{name}">{name}</h2>'


def test_only_what_is_between_the_fork_and_the_end_folds():
    above = f"<p>a</p>{h2('code')}<p>b</p>{h2('deeper')}<p>c</p>"
    proof = '<h3 id="step">s</h3><p>d</p>'
    link = '<a class="headerlink" href="#proof">&para;</a>'
    with_link = h2("proof").replace("</h2>", f"{link}</h2>")
    below = f"{h2('limits')}<p>e</p>{h2('questions')}</article>"
    assert deeper.folded(f"{above}{with_link}{proof}{below}") == (
        f'{above}<details class="deeper"><summary>{h2("proof")}</summary>'
        f"{proof}</details>{below}"
    )
    assert deeper.folded(h2("proof")) == h2("proof")


def test_a_fork_without_an_end_is_refused():
    with pytest.raises(SourceError, match="#deeper without one of limits"):
        deeper.folded(h2("deeper") + h2("proof"))
