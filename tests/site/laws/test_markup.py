"""No script but ours, no link that leads nowhere: planted in a small built site."""

import pytest

from scripts.site.laws import markup

ADDRESS = "https://example.org/norms/"
CODE = "var palette=1;1<2&&palette"
POLICY = f"default-src 'self'; script-src 'self' {markup.digest(CODE)}"
PAGE = """<!doctype html><html><head>
<meta http-equiv="Content-Security-Policy" content="{policy}">
<link rel="canonical" href="https://example.org/norms/en/page/">
<script>{code}</script><script id="__config" type="application/json">{{"a": 1}}</script>
<script src="../assets/site.js"></script></head>
<body><h1 id="page">1 &lt; 2</h1><!-- <b onclick="x"> -->
<p style="clip-path:url(#a)"><a href="#page">a</a> <a href="../#top">b</a>
<a href="https://arxiv.org/abs/1">c</a> <a href="/norms/en/">d</a>
<img src="data:image/png;base64,A" alt=""> <a href="../?q=1#top=state">e</a></p>
{planted}</body></html>"""

PLANTED = [
    ("<script>alert(1)</script>", "inline script that its policy does not name"),
    ("<SCRIPT\n>alert(1)</SCRIPT>", "inline script that its policy does not name"),
    ("<script type=module>alert(1)</script>", "inline script"),
    ("<svg><script>alert(1)</script></svg>", "inline script"),
    ('<script src="https://example.com/a.js"></script>', "<script src="),
    ('<script src="//example.com/a.js"></script>', "<script src="),
    ('<script src="../assets/none.js"></script>', "leads nowhere"),
    ("<img src=x onerror=alert(1)>", "onerror="),
    ('<p\nONCLICK = "alert(1)">', "onclick="),
    ("<svg/onload=alert(1)>", "onload="),
    ("<details open ontoggle='a()'>", "ontoggle="),
    ('<a href="javascript:alert(1)">', "<a href="),
    ('<a href=" Java\tScript:alert(1)">', "<a href="),
    ('<a href="&#106;avascript:alert(1)">', "<a href="),
    ('<a href="data:text/html,<b>">', "<a href="),
    ('<a href="http://example.com/">', "<a href="),
    ('<svg><a xlink:href="javascript:a()"></a></svg>', "<a xlink:href="),
    ('<form action="https://example.com/"></form>', "<form action="),
    ('<button formaction="https://example.com/">', "<button formaction="),
    ('<img src="https://example.com/a.png">', "<img src="),
    ('<img srcset="https://example.com/a.png 2x">', "<img srcset="),
    ('<img srcset="a.png, https://example.com/b.png 2x">', "<img srcset="),
    ('<a href="../" ping="https://example.com/">', "<a ping="),
    ('<link rel="stylesheet" href="https://example.com/a.css">', "<link href="),
    ("<p style=\"background:url('https://example.com')\">", "style="),
    ('<iframe src="../"></iframe>', "<iframe>"),
    ('<object data="../"></object>', "<object>"),
    ('<base href="https://example.com/">', "<base>"),
    ('<meta http-equiv="refresh" content="0;url=../">', "<meta http-equiv=refresh>"),
    ('<svg><set attributeName="href"/></svg>', "<set>"),
    ("<svg><animate attributeName=x /></svg>", "<animate>"),
    ("<img src=x onerror=alert(1)//", "out of form"),
    ('<a title="open>', "out of form"),
    ('<a href="../nowhere/">', "leads nowhere: '../nowhere/'"),
    ('<a href="../nowhere.md">', "leads nowhere"),
    ('<a href="#nowhere">', "anchor that leads nowhere"),
    ('<a href="../#nowhere">', "anchor that leads nowhere"),
    ('<a href="https://example.org/norms/zh/">', "leads nowhere"),
    ('<a href="/elsewhere/">', "out of the site"),
]


def problems(root, planted="", policy=POLICY, code=CODE) -> list[str]:
    page = PAGE.format(planted=planted, policy=policy, code=code)
    home = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    for name, text in {
        "en/page/index.html": page,
        "en/index.html": home + '<p id="top">',
        "en/assets/site.js": "",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return markup.problems(root, ADDRESS)


def test_a_page_as_it_should_be(tmp_path):
    assert problems(tmp_path) == []


@pytest.mark.parametrize(("planted", "said"), PLANTED)
def test_planted(tmp_path, planted, said):
    found = problems(tmp_path, planted)
    assert found and all(line.startswith("en/page/index.html: ") for line in found)
    assert any(said in line for line in found), found


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("default-src 'self'", "not one policy for scripts"),
        (POLICY.replace("script-src 'self'", "script-src *"), "not one policy"),
        ("default-src 'none'; script-src *", "not one policy"),
        (POLICY + " 'unsafe-inline'; img-src *", "lets any inline script run"),
        ("script-src 'self'", "does not name"),
    ],
)
def test_policies(tmp_path, policy, said):
    assert any(said in line for line in problems(tmp_path, policy=policy))


def test_a_changed_script_is_not_named(tmp_path):
    assert any("does not name" in line for line in problems(tmp_path, code=CODE + " "))
