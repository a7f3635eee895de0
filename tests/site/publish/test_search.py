"""What the build does to the search: other names, a slim index, the worker's order."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import material
import pytest
from material.plugins.search import plugin
from material.plugins.search.plugin import Parser
from mkdocs.exceptions import PluginError

from scripts.site.publish import search
from scripts.site.reading import formulas
from scripts.site.reading.source import SourceError
from tests import javascript


def test_other_names():
    assert search.other_names({"also": ["BN", "batch norm"]}) == ["BN", "batch norm"]
    assert search.other_names({}) == []
    for wrong in ("BN", ["BN", 1]):
        with pytest.raises(SourceError, match="also: is no list"):
            search.other_names({"also": wrong})


def test_names_are_looked_up_whole_and_by_word():
    """A page's names are in its first entry's text, and nowhere on the page."""
    search.teach_material()
    index = plugin.SearchIndex(lang=["en"], separator="", pipeline=[], fields={})
    toc = [SimpleNamespace(id="a", url="#a", children=[])]
    page = SimpleNamespace(
        content='<h1 id="a">A</h1><p>x</p><h2 id="b">B</h2><p>y</p>',
        meta={"tags": ["BN", "R&D norm"]},
        toc=toc,
        url="a/",
        title="A",
    )
    index.add_entry_from_context(page)
    first, second = index.entries
    assert first["tags"] == second["tags"] == ["BN", "R&D norm"]
    assert "BN, R&amp;D norm" in first["text"] and "BN" not in second["text"]
    assert "BN" not in page.content


def test_slim_index(tmp_path):
    path = tmp_path / "search" / "search_index.json"
    path.parent.mkdir()
    kept = "<p>\u200b归一化</p> "
    docs = [{"location": "", "text": kept + "<pre><code>x = 1\n</code></pre> <p>y</p>"}]
    path.write_text(json.dumps({"config": {}, "docs": docs}), encoding="utf-8")
    search.slim_index(str(tmp_path))
    text = path.read_text(encoding="utf-8")
    assert "归一化" in text
    assert json.loads(text)["docs"] == [{"location": "", "text": kept + " <p>y</p>"}]


SAID = r"""<h1 id="a">A <span class="arithmatex">\(x_1\)</span></h1><p>with
<span class="arithmatex">\(\frac{a}{b} &lt; c\)</span> and <span>b</span></p>
<div class="arithmatex">\[\sqrt{x}\]</div> <h2 id="b">B</h2>
<figure class="measured" data-search-exclude><svg><text>no</text></svg></figure>
<ul><li>one <span class="arithmatex">\(d\)</span>, <code>two</code></li></ul>
<div class="highlight"><pre id="c"><span></span><code><span>x</span> = <a>1</a>
</code></pre></div> <p>end</p>"""


def entries(html: str) -> list:
    """What Material's parser finds, without listings, which the index leaves out."""
    parser = Parser()
    parser.feed(html)
    parser.close()
    return [
        ("".join(part.title), search.LISTING.sub("", "".join(part.text)), part.id)
        for part in parser.data
    ]


@pytest.mark.parametrize("how", ["html", "mathml"])
def test_a_lean_page_has_the_same_entries(how):
    file = SimpleNamespace(src_uri="page.md")
    page = SimpleNamespace(file=file, meta={"formulas": how})
    html = formulas.render(SAID, page)
    lean = search.lean(html)
    assert entries(lean) == entries(html)
    assert lean.count("<") < html.count("<") / 2
    letters = lean.replace("<!---->", "").replace("<span></span>", "")
    assert (entries(letters) != entries(html)) == (how == "html")


def test_refused_words_are_read_as_terms(tmp_path):
    terms = search.preferred()
    assert terms["批次归一化"] == terms["批标准化"] == "批归一化"
    assert terms["规范化"] == "归一化"
    assert "标准化" not in terms  # standardization is a term of its own
    assert [*terms] == sorted(terms, key=len, reverse=True)
    path = worker(tmp_path, " ".join(search.MENDED))
    search.mend_worker(str(tmp_path))
    assert '"批次归一化":"批归一化"' in path.read_text(encoding="utf-8")


def test_an_english_word_is_its_chinese_term(tmp_path):
    words = search.chinese()
    assert words["bias"] == "偏置"
    assert not {"LayerNorm", "warp", "residual stream", "nats per byte"} & {*words}
    path = worker(tmp_path, " ".join(search.MENDED))
    search.mend_worker(str(tmp_path))
    code = path.read_text(encoding="utf-8")
    assert '"bias":"偏置"' in code and "const CHINESE = {}" not in code


def worker(tmp_path, code: str):
    folder = tmp_path / "assets" / "javascripts" / "workers"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "search.0.min.js"
    path.write_text(code, encoding="utf-8")
    return path


def test_worker_is_mended_once(tmp_path):
    path = worker(tmp_path, " ".join(search.MENDED))
    search.mend_worker(str(tmp_path))
    once = path.read_text(encoding="utf-8")
    assert once.startswith(search.ORDER) and "self.ranked = " in once
    assert all(new in once for new in search.MENDED.values())
    search.mend_worker(str(tmp_path))
    assert path.read_text(encoding="utf-8") == once


def test_another_worker_stops_the_build(tmp_path):
    worker(tmp_path, "search(t){}")
    with pytest.raises(PluginError, match="has changed"):
        search.mend_worker(str(tmp_path))


def test_parts_of_the_index_have_names_of_their_own():
    """Edges 1 to 23 and 4 to 5 are not edge 1 to 2345; lunr would merge the two."""
    workers = Path(material.__file__).parent / "templates/assets/javascripts/workers"
    [path] = workers.glob("search.*.min.js")
    found = re.search(
        r"TokenSet\.prototype\.toString=(function\(\)\{.*?\}return e\})",
        path.read_text(encoding="utf-8"),
    )[1]

    def alike(function: str) -> bool:
        part = f"(edges) => ({function}).call({{ final: false, edges }})"
        with javascript.context(f"const part = {part};") as context:
            return context.eval(
                "part({1: {id: 23}, 4: {id: 5}}) === part({1: {id: 2345}})"
            )

    mended = found
    for old, new in search.MENDED.items():
        mended = mended.replace(old, new)
    assert alike(found) and not alike(mended)
