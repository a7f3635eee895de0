"""The policy names the templates' inline scripts and no other."""

import base64
import hashlib

import pytest

from scripts.site.publish import policy
from scripts.site.reading.source import SourceError

TEMPLATES = {
    "base.html": '<script>scope=new URL("{{ base | d(url) }}",location)</script>',
    "partials/a.html": "{% if a %}\n<script>palette()</script>\n{% endif %}",
    "partials/b.html": '<script src="{{ a }}"></script><script>{% if a %}b</script>',
}
PAGE = "<meta content=\"script-src 'self' 'inline-scripts'\">"


@pytest.fixture
def is_own(tmp_path):
    for name, text in TEMPLATES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return policy.own([str(tmp_path)])


@pytest.mark.parametrize("code", ["palette()", 'scope=new URL("../..",location)'])
def test_a_script_of_the_templates(is_own, code):
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    page = f"{PAGE}<script>{code}</script><script>{code}</script>"
    assert f"script-src 'self' 'sha256-{digest}'\"" in policy.apply(page, is_own)


@pytest.mark.parametrize(
    "code",
    [
        "alert(1)",
        "",
        "palette() ",
        'scope=new URL("a");alert(1)//",location)',
        'scope=new URL("a",alert(1)),location)',
        "b",
    ],
)
def test_another_script(is_own, code):
    with pytest.raises(SourceError, match="no template has"):
        policy.apply(f"{PAGE}<script>{code}</script>", is_own)


def test_data_needs_no_hash(is_own):
    page = f'{PAGE}<script type="application/json">{{}}</script>'
    assert "sha256" not in policy.apply(page, is_own)


def test_a_page_without_a_place_for_it(is_own):
    with pytest.raises(SourceError, match="no policy"):
        policy.apply("<p>", is_own)
