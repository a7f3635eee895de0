"""Reading files: what is wrong with one is a line that names it and the place."""

import json
from functools import cache
from pathlib import Path

import yaml

from scripts.errors import UserError

ROOT = Path(__file__).resolve().parents[3]


class SourceError(UserError):
    """A file of the site that cannot be read as meant. One line."""


def where(path: Path) -> str:
    """A file as people name it: from the root of the repository."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def read_text(path: Path) -> str:
    """A text file. SourceError where it is not one, with the line."""
    try:
        data = path.read_bytes()
        text = data.decode("utf-8")
    except OSError as error:
        raise SourceError(f"{where(path)}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SourceError(f"{where(path)}: line {line}: not UTF-8") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise SourceError(f"{where(path)}: line {line}: a NUL character")
    return text


FAST = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is ten times faster


class Loader(FAST):
    """YAML in which a key stands once; tags that only MkDocs knows are None."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"{key.value!r} stands twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


for tag in ("!", "tag:yaml.org,2002:python/"):
    Loader.add_multi_constructor(tag, lambda loader, suffix, node: None)


def load_yaml(text: str, name: str, first_line: int = 1):
    """What YAML says. SourceError with the line, counted from ``first_line``."""
    try:
        return yaml.load(text, Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = f"line {mark.line + first_line}: {error.problem or error.context}"
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0]
    raise SourceError(f"{name}: {reason}")


def read_yaml(path: Path):
    """What a YAML file holds, read again when it has changed."""
    stamp = path.stat().st_mtime_ns if path.is_file() else None
    return _read_yaml(path, stamp)


@cache
def _read_yaml(path: Path, stamp: int | None):
    return load_yaml(read_text(path), where(path))


def read_json(path: Path):
    """What a JSON file holds."""
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        reason = f"line {error.lineno}: {error.msg}"
        raise SourceError(f"{where(path)}: {reason}") from None
