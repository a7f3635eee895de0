"""Records, published with the site as they are: /<language>/records/<machine>/."""

from mkdocs.structure.files import File

from scripts.measure.records import RECORDS


def add(files, config) -> None:
    for path in sorted(RECORDS.glob("*/*.json")):
        uri = f"records/{path.parent.name}/{path.name}"
        files.append(File.generated(config, uri, abs_src_path=str(path)))
