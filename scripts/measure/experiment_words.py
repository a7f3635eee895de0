"""What an experiment says, in both languages: docs/data/experiments/<name>.yml.

    figure:   # WORDS: title, caption and alternative text of the figure, its labels
      title: {en: ..., zh: ...}
    design:   # words of DESIGN
      question: {en: ..., zh: ...}
      arms: {post: Post-Norm, ...}
    lacks:    # the rules that the record breaks, and why
      edges.post: {en: ..., zh: ...}

A text is a pair of languages, or one string where they share it; `{name}` in it
stands for a fact. No record ages by a word.
"""

from pathlib import Path

import yaml

from scripts.measure.records import ROOT, RecordError

FOLDER = ROOT / "docs" / "data" / "experiments"
LANGUAGES = ("zh", "en")
YAML = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is ten times faster


def figure_words(file: str, folder: Path = FOLDER) -> dict[str, dict]:
    """WORDS of the experiment in this file: {language: words}."""
    figure = _read(file, folder)["figure"]
    return {language: _spoken(figure, language) for language in LANGUAGES}


def design_words(file: str, folder: Path = FOLDER) -> dict[str, dict]:
    """What its DESIGN says: `words`, by language, and `lacks`, by rule."""
    read = _read(file, folder)
    words = {language: _spoken(read["design"], language) for language in LANGUAGES}
    return {"words": words, "lacks": read.get("lacks", {})}


def _read(file: str, folder: Path) -> dict:
    path = folder / f"{Path(file).stem}.yml"
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), YAML)
    except OSError:
        raise RecordError(f"{path.name}: no words in {folder.name}/") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise RecordError(f"{path.name}: {reason}") from None
    parts = {"figure", "design"}
    if not isinstance(found, dict) or not parts <= set(found) <= parts | {"lacks"}:
        raise RecordError(f"{path.name}: wants figure and design, and may have lacks")
    for part, texts in found.items():
        _check(texts, f"{path.name}: {part}")
    return found


def _check(texts: object, where: str) -> None:
    """Texts are strings, pairs of strings, or groups of texts under a name."""
    if isinstance(texts, str) and texts:
        return
    if not isinstance(texts, dict) or not texts:
        raise RecordError(f"{where} is no text")
    if texts.keys() & set(LANGUAGES):
        if texts.keys() != set(LANGUAGES):
            raise RecordError(f"{where} wants {' and '.join(LANGUAGES)}, no more")
        if not all(isinstance(text, str) and text for text in texts.values()):
            raise RecordError(f"{where} is no text")
        return
    for name, inner in texts.items():
        _check(inner, f"{where}.{name}")


def _spoken(texts: dict | str, language: str) -> dict | str:
    """Texts in one language."""
    if isinstance(texts, str):
        return texts
    if language in texts:
        return texts[language]
    return {name: _spoken(inner, language) for name, inner in texts.items()}
