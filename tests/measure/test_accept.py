"""Bundles from elsewhere: filed whole, or refused with one line."""

import io
import json
import stat
import sys
import tarfile
import zipfile
from dataclasses import replace
from unittest import mock

import pytest

from scripts.measure import accept, digest, provenance, records
from scripts.measure.records import RecordError


@pytest.fixture
def places(tmp_path, folder):
    return dict(root=tmp_path / "records", folder=folder)


@pytest.fixture
def record(record, folder):
    """Measured with the code that is here."""
    made = record.provenance | {"digest": digest.code_digest("squares", folder=folder)}
    rows = [{"x": x, "seed": 0, "y": x * x / 2} for x in range(3)]
    return replace(record, provenance=made, columns=list(rows[0]), rows=rows)


@pytest.fixture
def text(record):
    return records.dumps(record)


def changed(record, **provenance):
    return replace(record, provenance=record.provenance | provenance)


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


def _moded(path, mode, text):
    with zipfile.ZipFile(path, "w") as bundle:
        entry = zipfile.ZipInfo("squares.json")
        entry.external_attr = (mode | 0o777) << 16
        bundle.writestr(entry, text)
    return path


@pytest.mark.parametrize(
    "kind", ["S_IFLNK", "S_IFIFO", "S_IFCHR", "S_IFBLK", "S_IFSOCK"]
)
def test_links_and_devices_in_a_zip_are_refused(kind, tmp_path, places, text):
    path = _moded(tmp_path / "b.zip", getattr(stat, kind), text)
    with pytest.raises(RecordError, match="not a plain file"):
        accept.accept(path, **places)
    assert accept.accept(_moded(path, stat.S_IFREG, text), **places)


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
    _refused(bundle(tiny), places, "is of size 'tiny', never recorded")
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


@pytest.mark.parametrize("steps", [{}, {"steps": [2, 3]}])
def test_an_earlier_second_is_older(steps, tmp_path, places, record):
    records.save(changed(record, **steps), places["root"])
    earlier = changed(record, date="2026-11-21T09:04:42Z")
    _refused(_bundle(tmp_path, earlier), places, "is newer")


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
    for size, fits in ((len(text.encode()), True), (len(text.encode()) - 1, False)):
        monkeypatch.setattr(accept, "MOST_BYTES", size)
        for make, name in ((_zip, "s.zip"), (_tar, "s.tgz"), (_json, "s")):
            bundle = make(tmp_path / name, [("squares.json", text)])
            if fits:
                assert accept.accept(bundle, **places)
            else:
                _refused(bundle, places, "too big for a record")
    monkeypatch.setattr(accept, "MOST_BYTES", 100)
    _refused(_zip(tmp_path / "e.zip", [("squares.json", text)]), places, "too big")
    _refused(_json(tmp_path / "x", [("", text)]), places, "too big")
    monkeypatch.undo()
    monkeypatch.setattr(accept, "MOST_RECORDS", 1)
    assert accept.accept(_tar(tmp_path / "f.tgz", [("squares.json", text)]), **places)
    one, two = ("a/squares.json", text), ("b/squares.json", text)
    for make, name in ((_zip, "f.zip"), (_tar, "f.tar.gz")):
        _refused(make(tmp_path / name, [one, two]), places, "more than 1 files")


def test_no_more_is_read_than_shows_that_it_is_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr(accept, "MOST_BYTES", 7)
    source = io.BytesIO(b"0123456789")
    with pytest.raises(RecordError, match=r"a\.zip: refused: 'b' is too big"):
        accept._read(tmp_path / "a.zip", "b", source)
    assert source.tell() == 8


def _bundle(tmp_path, *found):
    names = [(f"{r.machine}/squares.json", raw(r)) for r in found]
    return _zip(tmp_path / "b.zip", names)


def raw(record) -> str:
    """A record's text, also of one that `dumps` refuses."""
    rows = [list(row.values()) for row in record.rows]
    parts = {k: getattr(record, k) for k in ("experiment", "machine", "size")}
    parts |= {"provenance": record.provenance, "columns": record.columns, "rows": rows}
    return json.dumps(parts)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ({"date": "2999-01-01T00:00:00Z"}, "in the future"),
        ({"date": "2026-99-99T99:99:99Z"}, "'date' is not like"),
        ({"date": "2026-02-30T00:00:00Z"}, "'date' is not like"),
        ({"date": "1970-01-01T00:00:00Z"}, "before its commit abc1234"),
        ({"commit": "<script>"}, "holds markup: '<s'"),
        ({"commit": "main"}, "commit 'main' is none"),
        ({"digest": "0" * 16}, "with other code"),
        ({"device": {"kind": "gpu", "name": "A GPU"}}, "measures a cpu, .* of a gpu"),
        ({"device": {"kind": "cpu", "name": "X <img src=x>"}}, "holds markup: '<i'"),
        ({"device": {"kind": "cpu", "name": "X &lt;img"}}, "holds markup: '&lt;'"),
        ({"method": "[x](javascript:alert(1))"}, r"markup: '\]\(javascript:'"),
        ({"method": "[x](//example.org)"}, r"markup: '\]\(//'"),
        ({"device": {"kind": "cpu", "name": "X\x00"}}, r"unseen character U\+0000"),
        ({"device": {"kind": "cpu", "name": "X\u202e"}}, r"unseen character U\+202E"),
        ({"method": "\ud800"}, r"unseen character U\+D800"),
        ({"method": "long " * 1000}, "a text of 5000 characters; at most 2000"),
    ],
)
def test_provenance_that_cannot_be(made, says, tmp_path, places, record, monkeypatch):
    source = (places["folder"] / "squares.py").read_text(encoding="utf-8")
    (places["folder"] / "squares.py").write_text(source + '\nDEVICE = "cpu"\n')
    monkeypatch.setattr(provenance, "commit_date", lambda _: "2026-11-21T09:00:00Z")
    good = replace(record, machine="another-cpu")
    _refused(_bundle(tmp_path, good, changed(record, **made)), places, says)
    assert not places["root"].exists()
    assert accept.accept(_bundle(tmp_path, good, record), **places)


def _renamed(record):
    rows = [{"z" if k == "x" else k: v for k, v in row.items()} for row in record.rows]
    return replace(record, columns=list(rows[0]), rows=rows)


def test_rows_that_cannot_be(tmp_path, places, record):
    other = replace(record, machine="another-cpu")
    assert accept.accept(_bundle(tmp_path, other), **places)
    said = "column 'x' is not in both this and another-cpu's"
    _refused(_bundle(tmp_path, _renamed(record)), places, said)
    twice = replace(record, rows=[*record.rows, record.rows[1]])
    _refused(_bundle(tmp_path, twice), places, "holds a row twice")
    wordy = [row | {"y": "<b>"} for row in record.rows]
    _refused(_bundle(tmp_path, replace(record, rows=wordy)), places, "holds markup")


@pytest.mark.parametrize(
    ("machine", "says"),
    [
        ("diagrams", "the name of another folder"),
        ("zh", "the name of another folder"),
        ("en", "the name of another folder"),
        ("yours", "not filed; set MACHINE"),
        ("a" * 300, "not a lower-kebab name"),
    ],
)
def test_machines_that_cannot_be(machine, says, tmp_path, places, record):
    text = raw(replace(record, machine=machine))
    _refused(_zip(tmp_path / "b.zip", [("squares.json", text)]), places, says)
    _refused(_json(tmp_path / "b", [("", text)]), places, says)


def test_every_folder_beside_the_machines_is_taken():
    drawn = {path.name for path in records.ROOT.glob("docs/figures/*")}
    recorded = {path.name for path in records.RECORDS.iterdir()} | {records.YOURS}
    assert drawn - recorded == set(records.TAKEN)


def test_what_gives_no_facts_or_leaves_words_open(tmp_path, places, record):
    """A run that stopped early, or half a fact: the site would not build with it."""
    path = places["folder"] / "squares.py"
    source = path.read_text(encoding="utf-8")
    with path.open("a", encoding="utf-8") as out:
        out.write("\ndef facts(record):\n")
        out.write("    return {'most': str(record.select(x=2)[0]['y'])}\n")
    early = changed(replace(record, rows=record.rows[:1]), steps=[1, 3])
    says = "no facts from its 1 rows of 1 of 3 steps: IndexError"
    _refused(_bundle(tmp_path, early), places, says)
    assert accept.accept(_bundle(tmp_path, record), **places)
    del sys.modules["scripts.experiments.squares"]
    path.write_text(source.replace("{most}", "{least}"))
    says = r"RecordError: words use the fact 'least', which facts\(\) does not give"
    _refused(_bundle(tmp_path, record), places, says)


def test_a_full_disk_keeps_all_out(tmp_path, places, record, monkeypatch):
    written = []

    def write(path, text):
        if written:
            raise OSError(28, "No space left on device")
        records.write_whole(path, text)
        written.append(path)

    monkeypatch.setattr(accept, "write_whole", write)
    both = _bundle(tmp_path, record, replace(record, machine="another-cpu"))
    _refused(both, places, r"b\.zip: not filed: No space left on device")
    assert [path for path in places["root"].rglob("*") if path.is_file()] == []


FILED = [
    path
    for path in sorted(records.RECORDS.glob("*/*.json"))
    if path.parent.name != records.YOURS
]


@pytest.mark.parametrize("path", FILED, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_filed(path, no_violations):
    """A record that is edited where it lies has to keep what a new one keeps.

    That its digest and its facts do is tests/pages/test_facts.py's.
    """
    record = records.load(path)
    asked_there = dict.fromkeys(("_code_problem", "_said"), lambda *_: None)
    with mock.patch.multiple(accept, **asked_there):
        problem = accept._problem(path.name, record, records.EXPERIMENTS)
    no_violations([f"{path.parent.name}/{path.name}: {problem}"] if problem else [])
