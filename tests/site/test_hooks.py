"""What the hook does to a finished page."""

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
