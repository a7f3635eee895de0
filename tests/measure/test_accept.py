"""Bundles from elsewhere: filed whole, or refused with one line."""

import io
import stat
import tarfile
import zipfile
from dataclasses import replace

import pytest

from scripts.measure import accept, records
from scripts.measure.records import RecordError


@pytest.fixture
def places(tmp_path, folder):
    return dict(root=tmp_path / "records", folder=folder)


@pytest.fixture
def text(record):
    return records.dumps(record)


def _zip(path, members):
    with zipfile.ZipFile(path, "w") as bundle:
        for name, content in members:
            bundle.writestr(name, content)
    return path


def _tar(path, members):
    with tarfile.open(path, "w:gz") as bundle:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            data = content.encode()
            entry.size = len(data)
            bundle.addfile(entry, io.BytesIO(data))
    return path


def _json(path, members):
    path = path.parent / "squares.json"
    path.write_text(members[0][1], encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("make", "name"),
    [(_zip, "b.zip"), (_tar, "b.tar.gz"), (_tar, "b.tgz"), (_json, "")],
)
def test_a_good_bundle_is_filed(tmp_path, places, text, make, name):
    bundle = make(tmp_path / name, [("records/test-cpu/squares.json", text)])
    written = accept.accept(bundle, **places)
    assert written == [places["root"] / "test-cpu" / "squares.json"]
    assert written[0].read_text(encoding="utf-8") == text
    assert accept.accept(bundle, **places) == written  # the same again is fine


TRICKS = [
    "../squares.json",
    "a/../../squares.json",
    "/tmp/squares.json",
    "..\\squares.json",
    "C:squares.json",
    "squares.py",
    "squares.json.exe",
]


@pytest.mark.parametrize("name", TRICKS)
@pytest.mark.parametrize("make", [_zip, _tar])
def test_path_tricks_are_refused(tmp_path, places, text, make, name):
    suffix = "zip" if make is _zip else "tar.gz"
    bundle = make(tmp_path / f"b.{suffix}", [(name, text)])
    with pytest.raises(RecordError, match="refused: ") as caught:
        accept.accept(bundle, **places)
    assert "\n" not in str(caught.value)
    assert not places["root"].exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_links_in_a_tar_are_refused(tmp_path, places, kind):
    path = tmp_path / "b.tar.gz"
    with tarfile.open(path, "w:gz") as bundle:
        entry = tarfile.TarInfo("squares.json")
        entry.type, entry.linkname = kind, "/etc/hostname"
        bundle.addfile(entry)
    with pytest.raises(RecordError, match="not a plain file"):
        accept.accept(path, **places)


def test_a_link_in_a_zip_is_refused(tmp_path, places):
    path = tmp_path / "b.zip"
    with zipfile.ZipFile(path, "w") as bundle:
        entry = zipfile.ZipInfo("squares.json")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        bundle.writestr(entry, "/etc/hostname")
    with pytest.raises(RecordError, match="not a plain file"):
        accept.accept(path, **places)


def _refused(bundle, places, says):
    with pytest.raises(RecordError, match=says) as caught:
        accept.accept(bundle, **places)
    assert "\n" not in str(caught.value)


def test_what_is_inside_is_checked(tmp_path, places, record, text):
    def bundle(content, name="squares.json"):
        return _zip(tmp_path / "b.zip", [(name, content)])

    _refused(bundle(text[:-20]), places, r"b\.zip: squares\.json: damaged record: line")
    _refused(bundle(b"\xff"), places, "not UTF-8")
    _refused(bundle(text, "cubes.json"), places, "holds 'squares'")
    cubes = records.dumps(replace(record, experiment="cubes"))
    _refused(
        bundle(cubes, "cubes.json"), places, "unknown experiment 'cubes'; known: s"
    )
    tiny = records.dumps(replace(record, size="tiny"))
    _refused(bundle(tiny), places, "never recorded")
    _refused(_zip(tmp_path / "b.zip", []), places, "holds no record")
    twice = [("a/squares.json", text), ("b/squares.json", text)]
    _refused(
        _zip(tmp_path / "b.zip", twice), places, "two records for test-cpu/squares"
    )
    assert not places["root"].exists()


def test_one_bad_record_keeps_the_good_one_out(tmp_path, places, text):
    members = [("squares.json", text), ("other/squares.json", "{}")]
    _refused(_zip(tmp_path / "b.zip", members), places, "no 'experiment'")
    assert not places["root"].exists()


def test_an_older_record_does_not_replace_a_newer_one(tmp_path, places, record, text):
    records.save(record, places["root"])
    made = {**record.provenance, "date": "2026-11-20T09:04:43Z"}
    older = records.dumps(replace(record, provenance=made))
    says = r"test-cpu/squares\.json is newer \(2026-11-21, this one is of 2026-11-20\)"
    _refused(_zip(tmp_path / "b.zip", [("squares.json", older)]), places, says)
    made = {**record.provenance, "date": "2026-11-22T09:04:43Z"}
    newer = records.dumps(replace(record, provenance=made))
    [path] = accept.accept(
        _zip(tmp_path / "c.zip", [("squares.json", newer)]), **places
    )
    assert records.load(path).date == "2026-11-22"


def test_a_smaller_record_does_not_replace_a_larger_one(tmp_path, places, record):
    records.save(replace(record, size="medium"), places["root"])
    small = [("squares.json", records.dumps(record))]
    says = r"test-cpu/squares\.json is of size 'medium', this one is of size 'small'"
    _refused(_zip(tmp_path / "b.zip", small), places, says)
    full = [("squares.json", records.dumps(replace(record, size="full")))]
    [path] = accept.accept(_zip(tmp_path / "c.zip", full), **places)
    assert records.load(path).size == "full"


def test_a_partial_record_does_not_replace_a_complete_one(tmp_path, places, record):
    made = {**record.provenance, "steps": [2, 3]}
    partial = replace(record, provenance=made)
    bundle = _zip(tmp_path / "b.zip", [("squares.json", records.dumps(partial))])
    assert accept.accept(bundle, **places)
    records.save(record, places["root"])
    says = r"test-cpu/squares\.json is complete, this one has 2 of 3 steps"
    _refused(bundle, places, says)


def test_files_that_are_no_bundle(tmp_path, places, monkeypatch, text):
    _refused(tmp_path / "none.zip", places, r"none\.zip: no such file")
    for name in ("b.zip", "b.tar.gz"):
        (tmp_path / name).write_text("not an archive", encoding="utf-8")
        _refused(tmp_path / name, places, "damaged archive")
    good = _tar(tmp_path / "c.tar.gz", [("squares.json", text)]).read_bytes()
    (tmp_path / "d.tar.gz").write_bytes(good[: len(good) // 2])
    _refused(tmp_path / "d.tar.gz", places, "damaged archive")
    (tmp_path / "b.rar").write_text("x", encoding="utf-8")
    _refused(tmp_path / "b.rar", places, "not a .json, .zip or .tar.gz")
    monkeypatch.setattr(accept, "MOST_BYTES", 100)
    _refused(_zip(tmp_path / "e.zip", [("squares.json", text)]), places, "too big")
    _refused(_json(tmp_path / "x", [("", text)]), places, "too big")
    monkeypatch.setattr(accept, "MOST_RECORDS", 1)
    many = [("a/squares.json", text), ("b/squares.json", text)]
    _refused(_zip(tmp_path / "f.zip", many), places, "more than 1 files")
