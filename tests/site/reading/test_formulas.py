"""Formulas are typeset while building, readably for screen readers too."""

import html
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from mkdocs.exceptions import PluginError

from scripts.site.reading import formulas

ROOT = Path(__file__).resolve().parents[3]
PAGE = SimpleNamespace(file=SimpleNamespace(src_uri="page.md"), meta={})


def test_inline_and_display():
    source = (
        r'<p>a <span class="arithmatex">\(x &lt; y\)</span></p>'
        r'<div class="arithmatex">\[\sqrt{x}\]</div>'
    )
    done = formulas.render(source, PAGE)
    assert done.count("<math") == 2 and r"\(" not in done and r"\[" not in done
    assert 'display="block"' in done and 'tabindex="0"' in done
    assert "data-search-exclude" in done


def test_tex_survives_for_copying():
    done = formulas.to_html(r"x < \gamma", False)
    assert html.escape(r"x < \gamma") in done or r"x &lt; \gamma" in done


@pytest.mark.parametrize("tex", [r"\undefined{x}", r"\frac{1}", r"x_{1", r"均"])
def test_bad_tex_is_one_line_that_names_the_page(tex):
    with pytest.raises(PluginError) as caught:
        formulas.render(rf'<span class="arithmatex">\({tex}\)</span>', PAGE)
    message = str(caught.value)
    assert message.startswith("page.md: formula") and "\n" not in message


def test_page_that_asks_for_mathml_alone():
    page = SimpleNamespace(file=PAGE.file, meta={"formulas": "mathml"})
    source = r'<p><span class="arithmatex">\(x &lt; y\)</span></p>'
    short = formulas.render(source, page)
    assert short.startswith("<p><math") and "<mo>&lt;</mo>" in short
    assert "katex" not in short and "annotation" not in short
    display = formulas.render(r'<div class="arithmatex">\[\sqrt{x}\]</div>', page)
    assert 'display="block"' in display and "<msqrt>" in display


def test_headings_are_typeset_in_the_table_of_contents():
    deep = SimpleNamespace(title=r"deep \(y_1\) \(z\)", children=[])
    plain = SimpleNamespace(title="plain $5", children=[])
    top = SimpleNamespace(title=r"top \(x &lt; 1\)", children=[deep])
    formulas.render_contents([top, plain])
    assert top.title == "top " + formulas.to_html("x < 1", False)
    wanted = [formulas.to_html(tex, False) for tex in ("y_1", "z")]
    assert deep.title == f"deep {wanted[0]} {wanted[1]}"
    assert plain.title == "plain $5"


def test_text_without_formulas_is_untouched():
    assert formulas.render("<p>costs $5</p>", PAGE) == "<p>costs $5</p>"


def test_no_thread_outlives_a_failed_build():
    # A thread left to the interpreter's teardown hung one build in twenty.
    code = (
        "import atexit, threading\n"
        "atexit.register(lambda: print(threading.active_count()))\n"
        "from scripts.site.reading import formulas\n"
        "formulas.to_html('x_{1', False)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=60
    )
    assert b"FormulaError" in done.stderr
    assert done.stdout.split() == [b"1"]
