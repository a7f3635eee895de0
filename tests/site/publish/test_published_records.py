"""Every record is published, as it is."""

from mkdocs.config.defaults import MkDocsConfig

from scripts.site.publish import published_records


def test_records_stand_below_their_machine(tmp_path, monkeypatch):
    for name in ("m/b.json", "m/a.json", "k/a.json", "loose.json", "m/a.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(published_records, "RECORDS", tmp_path)
    config, files = MkDocsConfig(), []
    config.load_dict({"site_name": "x"})
    config["plugins"] = type("None", (), {"_current_plugin": "x"})()
    published_records.add(files, config)
    uris = ["records/k/a.json", "records/m/a.json", "records/m/b.json"]
    assert [file.src_uri for file in files] == uris
    assert [file.content_string for file in files] == [
        "k/a.json",
        "m/a.json",
        "m/b.json",
    ]
