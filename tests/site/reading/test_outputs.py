"""Outputs of snippets: stale when their code changed, written whole, or one line."""

import json

import pytest

from scripts.measure import digest
from scripts.site.reading import outputs


def test_the_committed_list_is_of_the_committed_files():
    known = set(outputs.locked())
    assert known == {outputs.name(path) for path in outputs.files()} != set()


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
    monkeypatch.setattr(outputs, "LOCK", folder / "outputs.json")
    return folder


def test_an_output_is_stale_until_written_and_when_its_code_changes(snippets):
    one, two = outputs.files()
    assert [outputs.name(path) for path in (one, two)] == ["a/one.out", "a/two.out"]
    assert outputs.stale() == [one, two] and outputs.locked() == {}
    assert outputs.write(one) is True
    assert one.read_text() == "one\n"
    assert outputs.stale() == [two]
    assert outputs.write(one) is False  # the same again
    assert outputs.write(two) is True
    assert outputs.stale() == []
    text = outputs.LOCK.read_text()
    assert list(json.loads(text)) == ["a/one.out", "a/two.out"]
    assert text.endswith("\n}\n") and text.startswith('{\n "a/one.out"')
    one.with_suffix(".py").write_text('print("one")  # said\n')
    assert outputs.stale() == []
    one.with_suffix(".py").write_text('print("One")\n')
    assert outputs.stale() == [one]
    two.unlink()
    outputs.write(one)
    assert list(outputs.locked()) == ["a/one.out"]  # what is gone is dropped


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
    assert one.read_text() == "" and outputs.locked() == {}


def test_hashes_are_the_same_in_every_run(snippets):
    one = outputs.files()[0]
    one.with_suffix(".py").write_text("print(hash('a'))")
    assert outputs.run(one) == outputs.run(one)


def test_a_damaged_list_is_one_line(snippets):
    outputs.LOCK.write_text("{")
    with pytest.raises(outputs.OutputError, match=r"^snippets/outputs\.json: damaged"):
        outputs.stale()
