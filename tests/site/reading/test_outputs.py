"""Outputs of snippets: a digest of their code, written whole, or one line."""

import pytest

from scripts.measure import digest
from scripts.site.reading import outputs


@pytest.fixture
def snippets(tmp_path, monkeypatch):
    folder = tmp_path / "snippets"
    (folder / "a").mkdir(parents=True)
    for name in ("two", "one"):
        (folder / "a" / f"{name}.py").write_text(f'print("{name}")\n')
        (folder / "a" / f"{name}.out").write_text("")
    (folder / "a" / "silent.py").write_text("")
    for module in (outputs, digest):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(outputs, "SNIPPETS", folder)
    return folder


def test_an_output_has_the_digest_of_its_code(snippets):
    one, two = outputs.files()
    assert [outputs.name(path) for path in (one, two)] == ["a/one.out", "a/two.out"]
    outputs.write(one)
    assert one.read_text() == "one\n" and two.read_text() == ""
    before = outputs.digest(one)
    one.with_suffix(".py").write_text('print("one")  # said\n')
    assert outputs.digest(one) == before
    one.with_suffix(".py").write_text('print("One")\n')
    assert outputs.digest(one) != before


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("1 / 0", "snippets/a/one.py does not run: ZeroDivisionError: division by"),
        ("raise SystemExit(3)", "snippets/a/one.py does not run: no message"),
        ("import warnings\nwarnings.warn('old')", "does not run: UserWarning: old"),
    ],
)
def test_a_snippet_that_does_not_run_writes_nothing(code, says, snippets):
    one = outputs.files()[0]
    one.with_suffix(".py").write_text(code)
    with pytest.raises(outputs.OutputError) as caught:
        outputs.write(one)
    assert says in str(caught.value) and "\n" not in str(caught.value)
    assert one.read_text() == ""


def test_hashes_are_the_same_in_every_run(snippets):
    one = outputs.files()[0]
    one.with_suffix(".py").write_text("print(hash('a'))")
    assert outputs.run(one) == outputs.run(one)
