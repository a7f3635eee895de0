"""Texts that readers see and no page holds: of data, navigation, theme and code."""

import ast
import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from scripts.site.data import citations, claims
from scripts.site.questions import interview, interview_pages
from scripts.site.reading.files import read_yaml
from scripts.site.reading.source import LANGUAGES, ROOT

DATA = ROOT / "docs" / "data"
HAN = re.compile(r"[\u3400-\u9fff]")
TAGS = re.compile(r"<[^>]*>")
SPOKEN = re.compile(r"""(?:content|alt|title|aria-label)=(["'])(.*?)\1""")
JINJA = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}", re.DOTALL)
# Keys of data whose values are no sentences.
NAMES = {"id", "page", "met", "was", "cite", "source", "evidence", "eps", "released"}
NAMES |= {"document", "model", "family", "variant", "architecture", "url", "answer"}
NAMES |= {"change"}  # of a known-wrong variant: code


@dataclass(frozen=True)
class Text:
    """A text, where it is found, and what bears it out besides its own citations."""

    where: str
    text: str
    proof: str = ""
    cited: bool = False

    @property
    def language(self) -> str:
        return "zh" if HAN.search(self.text) else "en"


def everything() -> list[Text]:
    return [
        *of_claims(),
        *of_questions(),
        *of_quiz(),
        *of_data(),
        *of_references(),
        *of_projects(),
        *of_templates(),
        *of_words(),
    ]


def of_claims() -> Iterator[Text]:
    """A row's own check or its sources bear out what it says."""
    for topic, row in claims.everything():
        proof = claims.check_source(topic, row) if row.get("check") else ""
        for field in ("claim", "correct"):
            for language in LANGUAGES:
                where = f"claims/{topic}#{row['id']} {field} {language}"
                yield Text(where, row[field][language], proof, bool(row.get("cite")))


def of_questions() -> Iterator[Text]:
    for group, row in interview.bank():
        cited = any(str(entry).startswith("cite:") for entry in row["evidence"])
        for text, path in _leaves(row):
            if path.startswith(("question", "weak.said", "follow_up.question")):
                continue  # given, or quoted as an answer that is not ours
            yield Text(f"interview/{group}#{row['id']} {path}", text, "", cited)


def of_quiz() -> Iterator[Text]:
    """An option may be wrong: its numbers are those of the question or the check."""
    for group, row in interview.items():
        cited = any(str(entry).startswith("cite:") for entry in row["evidence"])
        proof = interview_pages.check_source(group, row) if row.get("check") else ""
        proof += " ".join(row["question"].values())
        for text, path in _leaves(row):
            if path.startswith("question") or ".text." in path:
                continue  # given, or offered to choose from
            where = f"quiz/{group}#{row['id']} {path}"
            yield Text(where, text, proof, cited)


def of_data() -> Iterator[Text]:
    """Models, rejected variants, glossary, comparison, words of experiments."""
    own = {"claims", "interview", "quiz"}
    for path in sorted(DATA.rglob("*.yml")):
        name = path.relative_to(DATA).as_posix()
        if name.split("/")[0] in own or name == "terms.yml":  # lists words to avoid
            continue
        for row in _rows(read_yaml(path)):
            cited = isinstance(row, dict) and bool(row.get("source"))
            for text, key in _leaves(row):
                yield Text(f"{name} {key}", text, "", cited)


def _rows(data) -> list:
    return data if isinstance(data, list) else [data]


def _leaves(part, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(part, dict):
        for key, inner in part.items():
            if key not in NAMES:
                yield from _leaves(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(part, list):
        for inner in part:
            yield from _leaves(inner, path)
    elif isinstance(part, str):
        yield part, path


def of_references() -> Iterator[Text]:
    """What we note of a work; its title is its own."""
    for key, entry in citations.references().items():
        yield Text(f"references.bib {key} note", entry.note)


def of_projects() -> Iterator[Text]:
    for language in LANGUAGES:
        data = read_yaml(ROOT / "docs" / language / "mkdocs.yml")
        where = f"docs/{language}/mkdocs.yml"
        for key in ("site_name", "site_description", "copyright"):
            yield Text(f"{where} {key}", data[key])
        yield from (Text(f"{where} nav", title) for title in _titles(data["nav"]))
        for text, path in _leaves(data.get("extra", {})):
            yield Text(f"{where} {path}", text)


def _titles(part) -> Iterator[str]:
    if isinstance(part, dict):
        yield from part
        for inner in part.values():
            yield from _titles(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _titles(inner)


def of_templates() -> Iterator[Text]:
    """The portal and what wraps every page."""
    folders = (ROOT / "docs/portal", ROOT / "docs/theme/overrides")
    for path in sorted(p for folder in folders for p in folder.rglob("*.html")):
        where = path.relative_to(ROOT).as_posix()
        text = JINJA.sub("", path.read_text(encoding="utf-8"))
        for found in SPOKEN.finditer(text):
            yield Text(where, found[2])
        for line in TAGS.sub("\n", text).splitlines():
            if line.strip():
                yield Text(where, html.unescape(line.strip()))


def of_words() -> Iterator[Text]:
    """What the site's own code says: WORDS and labels of scripts/site."""
    for path in sorted((ROOT / "scripts" / "site").rglob("*.py")):
        where = path.relative_to(ROOT).as_posix()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.Assign):
                continue
            names = {
                target.id for target in node.targets if isinstance(target, ast.Name)
            }
            if not any(
                n in ("WORDS", "LABELS", "TEXTS") or n.endswith("_WORDS") for n in names
            ):
                continue
            for inner in ast.walk(node.value):
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                    yield Text(f"{where}:{inner.lineno}", unbroken(inner.value))


def unbroken(label: str) -> str:
    """A label of a drawing on one line: its breaks and blanks are layout."""
    han, wide = r"[\u3400-\u9fff]", "[，。：；（）]"
    label = re.sub(rf"(?<={han})\n(?={han})|(?<={wide})\n|\n(?={wide})", "", label)
    return re.sub(r"[ \n]+", " ", label)
