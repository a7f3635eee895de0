"""The atlas for programs: practice/model-atlas.json and .csv beside the page."""

import csv
import io
import json

from scripts.site.atlas import rows as atlas


def as_json() -> str:
    """The atlas with its norms as objects, for programs."""
    found = [row | {"norms": atlas.norms(row)} for row in atlas.rows()]
    data = {
        "transformers": atlas.version(),
        "date": atlas.record().date,
        "architectures": found,
    }
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


COLUMNS = (
    *("architecture", "layer", "status", "placement", "norm", "gain"),
    *("qk_norm", "qk_scope", "qk_rope", "eps", "equations", "reason"),
)


def as_csv() -> str:
    """The atlas's table as comma-separated values, a line per row."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in atlas.rows():
        main, qk = atlas.main_norm(row), [*atlas.qk_norms(row), [""] * 5][0]
        writer.writerow(
            [
                row["architecture"],
                row["layer"],
                row["status"],
                row["placement"] or "",
                main.get("kind", ""),
                main.get("gain", ""),
                qk[1],
                qk[3],
                qk[4],
                main.get("eps", ""),
                "; ".join(row["equations"] or ()),
                row["reason"] or "",
            ]
        )
    return out.getvalue()


def add(files, config) -> None:
    """practice/model-atlas.json and .csv beside the page."""
    from mkdocs.structure.files import File

    if not files.get_file_from_path("practice/model-atlas.md"):
        return
    for ending, make in (("json", as_json), ("csv", as_csv)):
        uri = f"practice/model-atlas.{ending}"
        files.append(File.generated(config, uri, content=make()))
