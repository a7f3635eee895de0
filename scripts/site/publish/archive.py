"""Zip archives: the same content gives the same bytes."""

import io
import zipfile

FIRST_DAY = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can name


def zipped(files: dict[str, bytes]) -> bytes:
    """An archive of the files by name, in the order given."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, FIRST_DAY)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return out.getvalue()
