"""Generated files are as they were written, and are written the same again."""

import hashlib
import re

import pytest

from scripts.measure import figures, records
from scripts.site.notebooks import lab_source
from scripts.site.pictures import diagram
from scripts.site.reading import generated, outputs

STEPS = (
    "from scripts.site import render; print(render.stale(), render.stale_only());"
    "print(render.stale_only(mend=True), render.stale())"
)


def test_nothing_was_edited_and_the_list_names_what_is_there():
    assert generated.edited() == []
    assert set(generated.listed()) == set(map(generated.name, generated.files()))


EDITS = [  # file, pattern, what stands there instead
    ("docs/figures/amd-epyc/init_gradients.en.svg", r"L(\d)", r"L9\1"),
    ("docs/facts/amd-epyc/init_gradients.json", r'": "\d', r"\g<0>7"),
    ("docs/figures/diagrams/placement_blocks.en.svg", "Pre-Norm", "Post-Norm"),
    ("docs/figures/zh/labs/deep-stack.ipynb", r'"text": \[\n *"[^"]*?\d', r"\g<0>7"),
    ("snippets/rms_norm/worked_example.out", r"\d", r"\g<0>7"),
]


@pytest.mark.parametrize(("file", "old", "new"), EDITS)
def test_an_edit_is_seen(file, old, new, monkeypatch, tmp_path):
    true = generated.ROOT / file
    edited, count = re.subn(old, new, true.read_text(encoding="utf-8"), count=1)
    assert count == 1
    monkeypatch.setattr(generated, "ROOT", tmp_path)
    copy = tmp_path / file
    copy.parent.mkdir(parents=True)
    copy.write_text(true.read_text(encoding="utf-8"), encoding="utf-8")
    assert generated.edited([copy]) == []
    copy.write_text(edited, encoding="utf-8")
    assert generated.edited([copy]) == [file]
    (twin := copy.with_name(f"other{copy.suffix}")).write_text(edited)
    assert generated.edited([twin]) == [generated.name(twin)]  # on no list


def test_ends_of_lines_do_not_matter_and_what_is_gone_is_dropped(monkeypatch, tmp_path):
    monkeypatch.setattr(generated, "ROOT", tmp_path)
    monkeypatch.setattr(generated, "LIST", tmp_path / "generated.json")
    monkeypatch.setattr(generated, "OWN", tmp_path / "own.json")
    paths = [tmp_path / name for name in ("a.svg", "b.svg", "yours/c.svg")]
    paths[2].parent.mkdir()
    for path in paths:
        path.write_bytes(b"one\ntwo\n")
    generated.keep(paths, "0a")
    assert [*generated.listed()] == ["a.svg", "b.svg", "yours/c.svg"]
    assert "yours" not in generated.LIST.read_text()
    paths[0].write_bytes(b"one\r\ntwo\r\n")
    assert generated.edited(paths) == []
    paths[0].unlink()
    generated.keep([], "")
    assert [*generated.listed()] == ["b.svg", "yours/c.svg"]


def test_a_file_is_stale_that_was_made_from_something_else(monkeypatch, tmp_path):
    monkeypatch.setattr(generated, "ROOT", tmp_path)
    monkeypatch.setattr(generated, "LIST", tmp_path / "generated.json")
    monkeypatch.setattr(generated, "OWN", tmp_path / "own.json")
    ours, own = tmp_path / "a.svg", tmp_path / "yours" / "a.svg"
    assert generated.stale(ours, "0a", {})
    own.parent.mkdir()
    for path in (ours, own):
        path.write_text("<svg/>")
    assert generated.stale(ours, "0a", {})
    generated.keep([ours, own], "0a")
    known = generated.listed()
    assert not generated.stale(ours, "0a", known)
    assert generated.stale(ours, "0b", known)
    assert generated.stale(own, "0b", known) and not generated.stale(own, "0a", known)
    assert generated.edited([own]) == []  # a reader may


def test_a_damaged_list_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(generated, "ROOT", tmp_path)
    monkeypatch.setattr(generated, "LIST", tmp_path / "generated.json")
    monkeypatch.setattr(generated, "OWN", tmp_path / "own.json")
    generated.LIST.write_text("{")
    with pytest.raises(generated.SourceError, match=r"^generated\.json: damaged"):
        generated.listed()


def test_check_names_the_first_and_counts_the_rest(monkeypatch):
    said = "not as written by render; make render writes it anew"
    for found, words in ((["a"], "a"), (["a", "b", "c"], "a and 2 more")):
        monkeypatch.setattr(generated, "edited", lambda found=found: found)
        with pytest.raises(generated.SourceError) as caught:
            generated.check()
        assert str(caught.value) == f"{words}: {said}"
    monkeypatch.setattr(generated, "edited", list)
    generated.check()


def test_a_file_that_is_no_text_is_edited_and_has_a_digest(monkeypatch, tmp_path):
    monkeypatch.setattr(generated, "ROOT", tmp_path)
    monkeypatch.setattr(generated, "LIST", tmp_path / "generated.json")
    monkeypatch.setattr(generated, "OWN", tmp_path / "own.json")
    path = tmp_path / "a.svg"
    path.write_bytes(b"<svg>\xff</svg>")
    assert generated.edited([path]) == ["a.svg"]
    generated.keep([path], "0a")
    assert generated.edited([path]) == []
    path.write_bytes(b"<svg>\xfe</svg>")
    assert generated.edited([path]) == ["a.svg"]


def test_an_edit_is_listed_by_check_and_mended_by_render_alone(project):
    path = project.root / "snippets/rms_norm/worked_example.out"
    true = path.read_text(encoding="utf-8")
    project.append(path, "RMSNorm is much faster\n")
    done = project.run("-c", STEPS)
    assert done.returncode == 0, done.stderr
    *said, _, last = done.stdout.splitlines()
    assert said == ["['snippets/rms_norm/worked_example.out'] 0"]
    assert last == "1 []"
    assert path.read_text(encoding="utf-8") == true


def chosen(names: list[str]) -> str:
    """Another one whenever a generated file has changed."""
    key = hashlib.sha256(generated.LIST.read_bytes()).hexdigest()
    return names[int(key, 16) % len(names)]


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_figure_drawn_again_has_the_same_bytes(language, monkeypatch, tmp_path):
    """Alone, or after the other language's."""
    monkeypatch.setattr(figures, "FIGURES", tmp_path)
    first = [name for name in records.experiments() if records.find(name)]
    record = records.find(chosen(first))[0]
    drawn = figures.draw(record, language)
    true = generated.FOLDERS[0] / record.machine / drawn.name
    assert drawn.read_bytes() == true.read_bytes()


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_diagram_drawn_again_has_the_same_bytes(language, monkeypatch, tmp_path):
    monkeypatch.setattr(diagram, "FIGURES", tmp_path / "diagrams")
    drawn = diagram.draw(chosen(diagram.names()), language)
    true = generated.FOLDERS[0] / "diagrams" / drawn.name
    assert drawn.read_bytes() == true.read_bytes()


def test_every_kind_is_on_the_list():
    known = generated.listed()
    paths = [lab_source.executed_path(s, "zh") for s in lab_source.sources()]
    paths += [*outputs.files()[:1], diagram.path(diagram.names()[0], "en")]
    assert {generated.name(path) for path in paths} <= set(known)
