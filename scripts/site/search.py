"""Chinese search: the field's terms as words, and whole words in queries."""

import logging
from functools import cache
from pathlib import Path

from mkdocs.exceptions import PluginError

from scripts.site.source import ROOT, read_yaml

TERMS = ROOT / "docs" / "data" / "terms.yml"
# Material 9.8.1 splits a Chinese query into words of the index, but its loops stop
# one character early: 均方根 was looked up as 均方, 带宽 as 带. Old and new code of
# the search worker; a Material whose worker reads otherwise fails the build.
MENDED = {
    "for(let o=s+1;o<t.length;o++)t.slice(s,o)in e": (
        "for(let o=s+1;o<=t.length;o++)t.slice(s,o)in e"
    ),
    "n[a]&&a<t.length-1&&": "n[a]&&a<t.length&&",
}


@cache
def teach_jieba() -> None:
    """Add every Chinese term of terms.yml to jieba's dictionary, once a process.

    Material segments pages with the same jieba, so a reader who types 均方根 finds it.
    """
    import jieba

    jieba.setLogLevel(logging.WARNING)
    for term in read_yaml(TERMS):
        for word in str(term.get("zh") or "").split("/"):
            if any("\u4e00" <= character <= "\u9fff" for character in word):
                jieba.add_word(word.strip())


def mend_worker(site_dir: str) -> None:
    """Let the built site's search worker look up whole Chinese words."""
    for path in Path(site_dir).glob("assets/javascripts/workers/search.*.min.js"):
        code = path.read_text(encoding="utf-8")
        for old, new in MENDED.items():
            if new in code and old not in code:  # a page was built anew, not the site
                continue
            if code.count(old) != 1:
                raise PluginError(f"{path.name}: Material's search worker has changed")
            code = code.replace(old, new)
        path.write_text(code, encoding="utf-8")
