"""What is written from data takes the place of its name; other names stay."""

from types import SimpleNamespace

from scripts.site.pages import expand


def test_lists_claims_and_questions_are_written(monkeypatch):
    def maker(kind):
        return SimpleNamespace(make=lambda name, of: f"<{kind} {name} {of}>")

    written = {kind: maker(kind) for kind in ("lists", "claims")}
    monkeypatch.setattr(expand, "WRITTEN", written)
    text = "[[ lists.a ]], [[claims.b_c]] [[ facts.x.y ]]\n[[ lists ]]"
    wanted = "<lists a zh>, <claims b_c zh> [[ facts.x.y ]]\n<lists  zh>"
    assert expand.expand(text, "zh") == wanted


def test_what_is_written():
    assert set(expand.WRITTEN) == {"lists", "claims", "interview"}
