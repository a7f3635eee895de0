"""The real pages, and what a page says in words.

Prose is a page's text without code, formulas, link targets and ids. Inline code,
formulas, facts and citations leave one private character each, so that a law
about words still sees that something stood there.
"""

import re
from dataclasses import dataclass

from scripts.site.reading import source
from scripts.site.reading.files import read_yaml
from scripts.site.reading.source import ROOT

# Pages that the build writes from data.
LISTS = {f"reference/{name}.md" for name in ("rejected", "glossary", "bibliography")}
LISTS |= {
    f"practice/{path.name}" for path in ROOT.glob("docs/en/pages/practice/blocks-*")
}
LISTS.add("practice/released-models.md")


@dataclass(frozen=True)
class Page:
    """One page: its language, its path within pages/, its Markdown."""

    lang: str
    path: str
    text: str
    where: str  # its file in the repository

    @property
    def course(self) -> bool:
        """A page of the course, which has a form of its own."""
        return self.path.startswith("learn/")

    @property
    def topical(self) -> bool:
        """A page that treats one subject: no index, lab, list, exercise or chapter."""
        folder, _, name = self.path.rpartition("/")
        is_list = self.path in LISTS or folder in ("claims", "interview")
        if self.course or is_list:
            return False
        return folder not in ("", "labs") and name != "index.md"


def read(lang: str) -> dict[str, Page]:
    """All pages of a language by path."""
    folder = ROOT / "docs" / lang / "pages"
    found = {}
    for file in sorted(folder.rglob("*.md")):
        path, where = file.relative_to(folder), file.relative_to(ROOT)
        text = file.read_text(encoding="utf-8")
        found[path.as_posix()] = Page(lang, path.as_posix(), text, where.as_posix())
    return found


def read_labs(lang: str) -> list[Page]:
    """What each lab says in a language, at the line numbers of its script."""
    found = []
    for file in sorted((ROOT / "docs" / "labs").glob("*.py")):
        text = lab_text(file.read_text(encoding="utf-8"), lang)
        where = file.relative_to(ROOT).as_posix()
        found.append(Page(lang, f"labs/{file.name}", text, where))
    return found


def lab_text(script: str, lang: str) -> str:
    """The text cells and text alternatives of one language, code blanked."""
    lines, inside = [], False
    for line in script.splitlines():
        if line.startswith("# %%"):
            inside = f'lang="{lang}"' in line
            alternative = re.search(rf'alt_{lang}="((?:[^"\\]|\\.)*)"', line)
            lines.append(alternative[1] if alternative else "")
        else:
            lines.append(line.removeprefix("#").removeprefix(" ") if inside else "")
    return "\n".join(lines)


ZH, EN = read("zh"), read("en")
LABS = [*read_labs("zh"), *read_labs("en")]


def nav(lang: str) -> list[str]:
    """The files of a language's navigation, in reading order."""
    return nav_files(read_yaml(ROOT / "docs" / lang / "mkdocs.yml")["nav"])


def nav_files(part: object) -> list[str]:
    if isinstance(part, str):
        return [part]
    parts = part.values() if isinstance(part, dict) else part
    return [file for inner in parts for file in nav_files(inner)]


CODE, FORMULA, FACT, CITE = "\ue000", "\ue001", "\ue002", "\ue003"

FRONT_LINE = re.compile(r"\A(?:---|also: .*|[a-z_]+: *)")  # names are no prose
INLINE = [
    (re.compile(r"<!--.*?-->", re.DOTALL), ""),
    (re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)"), CODE),
    (re.compile(r"\$\$.+?\$\$", re.DOTALL), FORMULA),
    (re.compile(r"(?<![\\$])\$(?! )[^$]+?(?<! )\$"), FORMULA),
    (re.compile(r"\[\[ *cite\.[^\]]*\]\]"), CITE),
    (re.compile(r"\[\[[^\]]*\]\]"), FACT),
    (re.compile(r"\[\^[^\]]+\]:?"), ""),
    (re.compile(r"!?\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"<https?:[^>]*>|https?://\S+"), ""),
    (re.compile(r" *\{ *[#.:][^}]*\}"), ""),
    (re.compile(r'^( *)(?:!!!|\?\?\?\+?) +\w+(?: +"(.*)")? *$', re.M), r"\1# \2"),
    (re.compile(r"\*+(?=\S)|(?<=\S)\*+"), ""),
]
OPENS = re.compile(r" *(?:(?P<head>#+ +)|(?P<row>\|)|(?:[-+*]|\d+\.) +|(?:>|:) )")
RULE_OF_TABLE = re.compile(r"[ |:-]+")


@dataclass(frozen=True)
class Paragraph:
    """A paragraph, heading, list item or table row, and its first line."""

    line: int
    text: str
    heading: bool = False

    def line_of(self, offset: int) -> int:
        return self.line + self.text.count("\n", 0, offset)


def paragraphs(text: str) -> list[Paragraph]:
    """All prose of a page, its title and description first."""
    found: list[Paragraph] = []
    body, again = plain(text), False
    for number, line in enumerate(body.splitlines(), 1):
        opens = OPENS.match(line)
        words = line[opens.end() :].strip(" |") if opens else line.strip()
        if RULE_OF_TABLE.fullmatch(line) or not words:
            again = False
        elif again and not opens:
            last = found.pop()
            found.append(Paragraph(last.line, f"{last.text}\n{words}"))
        else:
            heading = bool(opens and opens["head"])
            found.append(Paragraph(number, words, heading))
            again = not heading and not (opens and opens["row"])
    return found


def plain(text: str) -> str:
    """The page's words, line numbers kept."""
    body = source.without_fences(text)
    if front := source.FRONT_MATTER.match(text):
        lines = (FRONT_LINE.sub("", line) for line in front[0].splitlines())
        body = "".join(f"# {line}\n" if line else "\n" for line in lines) + (
            "\n".join(body.splitlines()[front[0].count("\n") :])
        )
    for pattern, stand_in in INLINE:
        body = pattern.sub(lambda m, s=stand_in: keep_lines(m, m.expand(s)), body)
    return body


def keep_lines(match: re.Match, text: str) -> str:
    return text + "\n" * (match[0].count("\n") - text.count("\n"))
