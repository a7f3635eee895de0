"""Every block that readers see is an embed, an output or a shown check."""

import pytest

from scripts.site.data import claims
from scripts.site.laws import blocks

CODE = 'def f(x):\n    return x < 1  # "a"'
SHOWN = frozenset({CODE})
BLOCK = (
    '<div class="highlight"><pre><span></span><code><span class="k">def</span> f(x):\n'
    '    <span class="k">return</span> x &lt; 1  # &quot;a&quot;  \n</code></pre></div>'
)
GOOD = [
    BLOCK,
    f"<blockquote>{BLOCK}</blockquote>",
    "<p>Call <code>x.float()</code>, then <code>norm(x)</code>.</p>",
    "<p>Run <code>python scripts/build.py measure " + "norm_speed_cpu " * 9 + "</code>",
]
PLANTED = [
    BLOCK.replace("&lt; 1", "&lt; 2"),
    BLOCK + BLOCK.replace("def", "class"),
    "<pre><code>import torch\n</code></pre>",
    "<PRE>import torch</PRE>",
    '<pre style="">x = 1</pre>',
    "<div class='highlight'><pre>x = 1</pre></div>",
    "<p><code>x = 1\ny = 2</code></p>",
    "<p><code>x = 1</code><br><code>y = 2</code></p>",
    "<td><code>x = 1</code><br />\n<code>y = 2</code></td>",
    f"<p><code>{'x = f(x); ' * 10}</code></p>",
    "<textarea>x = 1</textarea>",
    "<xmp>x = 1</xmp>",
    "<samp>x = 1</samp>",
    "<p><kbd>x = 1</kbd></p>",
    "<p>```python x = 1 ```</p>",
    "<p>&#96;&#96;&#96;python x = 1</p>",
    "<p>~~~ x = 1</p>",
    "<p>&#126;&#126;&#126; x = 1</p>",
    '<p style="white-space: pre">x = 1</p>',
    '<p style="font-family: monospace">x = 1</p>',
]


@pytest.mark.parametrize("page", GOOD)
def test_good(page):
    assert blocks.problems_of(page, SHOWN) == []


@pytest.mark.parametrize("page", PLANTED)
def test_planted(page):
    assert blocks.problems_of(page, SHOWN)


def test_what_a_page_shows():
    for language in ("zh", "en"):
        shown = blocks.known("rmsnorm/rms-norm/index.html", language)
        assert any("def rms_norm(" in code for code in shown)
        assert not any("@triton.jit" in code for code in shown)
        cells = blocks.known("labs/deep-stack/index.html", language)
        assert any("import torch" in code for code in cells)
    topic, row = next(pair for pair in claims.everything() if pair[1].get("check"))
    assert claims.check_source(topic, row).strip("\n") in blocks.checks()


def test_a_built_site(tmp_path):
    page = tmp_path / "en" / "rmsnorm" / "rms-norm" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("<pre>x = 1</pre>", encoding="utf-8")
    (tmp_path / "index.html").write_text("<pre>y = 1</pre>", encoding="utf-8")
    assert blocks.problems(tmp_path) == [
        "en/rmsnorm/rms-norm/index.html: a block that nobody runs: 'x = 1'",
        "index.html: a block that nobody runs: 'y = 1'",
    ]
