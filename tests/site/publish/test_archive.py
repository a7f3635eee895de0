"""A zip has the same bytes for the same content."""

import io
import stat
import zipfile

from scripts.site.publish.archive import zipped

FILES = {"b/a.txt": b"a" * 1000, "a.txt": "甲".encode()}


def test_an_archive_holds_its_files_in_order_and_says_nothing_of_the_day():
    content = zipped(FILES)
    assert content == zipped(dict(FILES))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [*FILES]
        assert {name: archive.read(name) for name in FILES} == FILES
        for entry in archive.infolist():
            assert entry.date_time == (1980, 1, 1, 0, 0, 0)
            assert stat.S_IMODE(entry.external_attr >> 16) == 0o644
            assert entry.compress_type == zipfile.ZIP_DEFLATED
    assert len(content) < 400
