"""What the hook does to a finished page."""

from types import SimpleNamespace

from scripts.site import hooks


def test_blanks_of_templates_go_but_not_those_of_code():
    code = "<pre><code>\n  x\n\n    y\n</code></pre>"
    page = f"<p>\n\n   one\n  two </p>\n\n{code}\n  <b>"
    wanted = f"<p>\none\ntwo </p>\n{code}\n<b>"
    assert hooks.without_blanks(page) == wanted


def test_a_lean_stylesheet_says_the_same():
    css = """/* Figures. */
    .a :is(.b, .c) > p { margin: 0 auto; width: calc(1rem + 2px); }

    @media (min-width: 3em) { .d::after { content: "x"; } }
    """
    assert hooks.lean(css) == (
        ".a :is(.b,.c)>p{margin:0 auto;width:calc(1rem + 2px);}"
        '@media (min-width:3em){.d::after{content:"x";}}'
    )


def test_emphasis_of_chinese_is_dotted():
    page = "<p><em>归一化</em>把 <em>x</em> 除以 <em>RMS 值</em>。</p>"
    dotted = page.replace("<em>归", '<em class="dotted">归')
    assert hooks.dotted(page) == dotted.replace("<em>R", '<em class="dotted">R')


def test_what_is_done_to_a_finished_site(tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr(hooks.llms, "write", lambda config: done.append("llms"))
    for name in ("mend_worker", "slim_index"):
        monkeypatch.setattr(
            hooks.search, name, lambda folder, name=name: done.append((name, folder))
        )
    style = tmp_path / "assets" / "site.css"
    style.parent.mkdir()
    config = SimpleNamespace(site_dir=str(tmp_path), site_url="http://localhost:8000/")
    folders = [("mend_worker", str(tmp_path)), ("slim_index", str(tmp_path))]
    for dirty, wanted in ((False, ["llms", *folders]), (True, folders)):
        monkeypatch.setattr(hooks, "_dirty", dirty)
        style.write_text("/* a */\n.a { margin: 0; }\n", encoding="utf-8")
        hooks.on_post_build(config)
        assert done == wanted
        assert style.read_text(encoding="utf-8") == ".a{margin:0;}"
        done.clear()
