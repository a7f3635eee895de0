"""Live figures: ES modules of docs/theme/explore as one classic script each.

A browser refuses modules at file:// addresses, and instant navigation runs a classic
script again. So modules are joined: imports and the word export go, and each name at
the top of a module is the only one of its kind.
"""

import re
from pathlib import Path

from scripts.site.source import ROOT

FOLDER = ROOT / "docs" / "theme" / "explore"
ENGINE = FOLDER / "engine"
IMPORT = re.compile(
    r'^import \{[^}]*\} from "(?P<file>\.{1,2}/[^"]+)";\n', re.MULTILINE
)
EXPORT = re.compile(r"^export (?=(?:const|function|class) )", re.MULTILINE)


def modules(path: Path) -> list[Path]:
    """A module and all that it imports, each after what it needs."""
    found: list[Path] = []
    for match in IMPORT.finditer(path.read_text(encoding="utf-8")):
        deeper = modules((path.parent / match["file"]).resolve())
        found += [module for module in deeper if module not in found]
    return [*found, path]


def joined(*paths: Path) -> str:
    """The code of modules and of all that they import, in one scope."""
    every = dict.fromkeys(module for path in paths for module in modules(path))
    texts = (path.read_text(encoding="utf-8") for path in every)
    return "\n".join(EXPORT.sub("", IMPORT.sub("", text)).strip() for text in texts)
