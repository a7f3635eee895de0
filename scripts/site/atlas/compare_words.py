"""The words of a comparison of two rows: docs/data/comparison.yml, and the atlas's."""

from scripts.site.atlas.table import FILTERED
from scripts.site.atlas.words import CASTS, WORDS
from scripts.site.reading.files import ROOT, read_yaml

FILE = ROOT / "docs" / "data" / "comparison.yml"
ERRORS = ROOT / "snippets" / "port_a_norm" / "wrong_choices.out"
SHARED = ("comma", "and", "semicolon", "colon", "stop", "none")


def written() -> dict:
    """{words, bugs, steps} as written. SourceError, one line, if damaged."""
    return read_yaml(FILE)


def _in(language: str, words: dict):
    if isinstance(words, dict) and language in words:
        return words[language]
    return {key: _in(language, of) for key, of in words.items()}


def steps(language: str) -> dict[str, dict]:
    """{key of a difference: what it asks for}, as written but for the language."""
    return {
        key: {"text": step[language]}
        | {k: v for k, v in step.items() if k in ("bugs", "wrong", "more", "code")}
        for key, step in written()["steps"].items()
    }


def errors() -> dict[str, list[str]]:
    """{wrong choice: its relative error, the share of top tokens that change}."""
    lines = ERRORS.read_text(encoding="utf-8").splitlines()[1:]
    return {name: [error, moved] for name, error, moved in map(str.split, lines)}


def words(language: str) -> dict:
    """All other words; what the record's codes are called stands below values."""
    own, atlas = _in(language, written()["words"]), WORDS[language]
    sides = {key: atlas[key] for key in ("head", "projection", "before", "after")}
    values = {
        "placement": {kind: atlas[kind] for kind in FILTERED[:-2]},
        "gain": {
            **{"w": "w", "1+w": "1 + w", "none": atlas["no-gain"]},
            "w per head": atlas["per-head-gain"],
        },
        "bias": {"yes": atlas["bias"], "no": atlas["no-bias"]},
        "cast": {order: said[language] for order, said in CASTS.items()},
        "scope": sides | {"latent": ""},
        "rope": sides | {"none": atlas["no-rope"]},
        "overflow": own.pop("overflow"),
    }
    brackets = atlas["brackets"].replace("{0}", "{said}")
    shared = {key: atlas[key] for key in SHARED}
    return own | shared | {"brackets": brackets, "values": values}
