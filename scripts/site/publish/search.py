"""Search: a page's other names, the field's terms as words, and the order of pages."""

import json
import logging
import re
from functools import cache
from html import escape
from html.parser import HTMLParser
from pathlib import Path

from material.plugins.search import plugin
from mkdocs.exceptions import PluginError

from scripts.site.data import terms
from scripts.site.reading.source import ROOT, SourceError

ORDER = "/* ranked.js */{"
RANKED = ROOT / "docs" / "theme" / "search" / "ranked.js"
HAN = re.compile("[\u4e00-\u9fff]+")
LISTING = re.compile(r"<pre>.*?</pre>", re.DOTALL)
# Of a page's tags four in five stand where the search reads nothing, or nothing that
# is kept: in listings, displayed formulas, figures, and around an inline formula's
# letters, of which it takes all that follow the formula's MathML.
UNREAD = re.compile(
    r"<(?P<tag>div|math|figure)\b[^>]* data-search-exclude\b[^>]*>.*?</(?P=tag)>"
    r"|<pre\b.*?</pre>",
    re.DOTALL,
)
INLINE = '<span class="arithmatex" data-search-exclude>'
TAGS = re.compile(r"(?:<[^>]*>)+")
SPAN = re.compile(r"<(/?)span\b[^>]*>")
# Material 9.8.1 splits a Chinese query into words of the index, but its loops stop
# one character early: 均方根 was looked up as 均方, 带宽 as 带. Old and new code of
# the search worker; a Material whose worker reads otherwise fails the build.
# Its search is wrapped: `ranked` puts the pages in order.
MENDED = {
    "search(e){if(e=e.replace(": (
        "search(e){return self.ranked(e,{search:q=>this.found(q),index:this.index,"
        "map:this.map,separator:lunr.tokenizer.separator})}found(e){if(e=e.replace("
    ),
    "for(let o=s+1;o<t.length;o++)t.slice(s,o)in e": (
        "for(let o=s+1;o<=t.length;o++)t.slice(s,o)in e"
    ),
    "n[a]&&a<t.length-1&&": "n[a]&&a<t.length&&",
    # Lunr takes two parts of its index for one where their names run into each other:
    # edge 1 to node 23 with edge 4 to node 5, and edge 1 to node 2345. Words that no
    # page has come up then, and every query that begins one of them finds nothing.
    "e=e+s+o.id}return e}": 'e=e+s+o.id+","}return e}',
}


def other_names(meta: dict) -> list[str]:
    """What else people type for a page: ``also`` of its front matter, as titles."""
    names = meta.get("also", [])
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
        raise SourceError("also: is no list of names")
    return names


def teach_material() -> None:
    """Let Material's search read pages without what it leaves out, with their names."""

    class Parser(plugin.Parser):
        def feed(self, html):
            super().feed(lean(html))

    class SearchIndex(plugin.SearchIndex):
        def create_entry_for_section(self, section, toc, url, page):
            names = page.meta.get("tags")
            if names and not section.id:  # what stands under the page's title
                # As tags they are looked up whole; here word by word.
                section.text.append(f"<p>{escape(', '.join(names))}</p>")
            super().create_entry_for_section(section, toc, url, page)

    if plugin.Parser.feed is HTMLParser.feed:
        plugin.Parser = Parser
        plugin.SearchIndex = SearchIndex


def lean(html: str) -> str:
    """A page of which Material's parser makes the same entries, listings apart."""
    html = UNREAD.sub(_emptied, html)
    before, *rest = html.split(INLINE)
    return before + "".join(map(_letters, rest))


def _emptied(found: re.Match) -> str:
    if tag := found["tag"]:
        return f"<{tag} data-search-exclude></{tag}>"
    return "<pre><code>…</code></pre>"


def _letters(html: str) -> str:
    """HTML that begins inside an inline formula, with the formula's text alone."""
    depth = 1
    for tag in SPAN.finditer(html):
        depth += -1 if tag[1] else 1
        if not depth:
            formula, rest = html[: tag.start()], html[tag.end() :]
            return f"<span data-search-exclude>{_text(formula)}</span>{rest}"
    raise PluginError("a formula without its end")


@cache
def _text(formula: str) -> str:
    """KaTeX's letters, each a text of its own as it was between its tags."""
    _, _, drawn = formula.partition("</math>")
    return "<span></span>" + "<!---->".join(filter(None, TAGS.split(drawn)))


@cache
def teach_jieba() -> None:
    """Add every Chinese term of terms.yml to jieba's dictionary, once a process.

    Material segments pages with the same jieba, so a reader who types 均方根 finds it.
    """
    import jieba

    jieba.setLogLevel(logging.WARNING)
    for term in terms.terms():
        for word in term["zh"].split("/"):
            if any("\u4e00" <= character <= "\u9fff" for character in word):
                jieba.add_word(word.strip())


def mend_worker(site_dir: str) -> None:
    """Let the built site's search order pages and look up whole Chinese words."""
    for path in Path(site_dir).glob("assets/javascripts/workers/search.*.min.js"):
        code = path.read_text(encoding="utf-8")
        for old, new in MENDED.items():
            if new in code and old not in code:  # a page was built anew, not the site
                continue
            if code.count(old) != 1:
                raise PluginError(f"{path.name}: Material's search worker has changed")
            code = code.replace(old, new)
        if not code.startswith(ORDER):
            code = f"{ORDER}{_ranked()}}}\n{code}"
        path.write_text(code, encoding="utf-8")


def _ranked() -> str:
    """The order of pages as a plain script: a worker of this kind has no imports."""
    code = RANKED.read_text(encoding="utf-8")
    code = re.sub(r"^\s*//.*\n", "", code, flags=re.MULTILINE)
    for name, words in (("PREFERRED", preferred()), ("CHINESE", chinese())):
        code = code.replace(f"const {name} = {{}}", f"const {name} = {_json(words)}", 1)
    return code.replace("export const ranked", "self.ranked", 1)


def preferred() -> dict[str, str]:
    """What people type -> the term of terms.yml for it, longest first.

    A word that is itself a term for something else (标准化) stays what it is.
    """
    known = terms.terms()
    own = {term["zh"] for term in known}
    pairs = [(word, term["zh"]) for term in known for word in term["avoid"]]
    pairs = [(word, term) for word, term in pairs if word not in own]
    return dict(sorted(pairs, key=lambda pair: -len(pair[0])))


def chinese() -> dict[str, str]:
    """The English terms of one word -> the Chinese ones that stand for them."""
    pairs = [(term["en"], term["zh"]) for term in terms.terms()]
    return {en: zh for en, zh in pairs if en.isalpha() and HAN.fullmatch(zh)}


def _json(data: object) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def slim_index(site_dir: str) -> None:
    """Leave listings out of the index, a third of it, and write letters as letters."""
    for path in Path(site_dir).glob("search/search_index.json"):
        index = json.loads(path.read_text(encoding="utf-8"))
        for document in index["docs"]:
            document["text"] = LISTING.sub("", document["text"])
        path.write_text(_json(index), encoding="utf-8")
