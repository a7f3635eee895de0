"""Texts of the bank with facts filled in, as Markdown and as HTML."""

from scripts.site.questions import texts


def test_names_are_filled_in_and_ends_cut(monkeypatch):
    monkeypatch.setattr(texts, "fact_text", lambda name: f"<{name}>")
    found = texts.markdown("  A [[ facts.a.b ]] and [[cite.c]].\n")
    assert found == "A <facts.a.b> and <cite.c>."


def test_html_with_the_marks_of_mathjax():
    found = texts.html("**A** $x < 1$\n\n$$\ny\n$$")
    assert "<strong>A</strong>" in found
    assert r"\(x &lt; 1\)" in found and "\\[\ny\n\\]" in found
    assert texts.html("[a]: b\n\n[a]") != texts.html("[a]")  # nothing is left over
