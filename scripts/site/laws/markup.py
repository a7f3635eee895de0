"""What the site's HTML may hold: no script but ours, no link that leads nowhere.

Reads the built files of all pages, whatever wrote them. A tag that is out of form is
refused as well: a browser would make something of it that this reader does not see.
"""

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import unquote, urlsplit

_VALUES = r"""(?:[^<>"']|"[^"]*"|'[^']*')*"""
TAG = re.compile(
    rf"""<!--.*?--> | <!doctype[^>]*> | </(?P<end>[a-z][\w:-]*)\s*>
    | <(?P<name>[a-z][\w:-]*)(?P<attributes>{_VALUES})>
    | <(?P<broken>[a-z/!?].{{0,40}})""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
ATTRIBUTE = re.compile(
    r"""([^\s"'=<>/]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>]+)))?"""
)
# Between these tags is no HTML.
RAW = {"script", "style", "textarea", "title"}
REFUSED = {"animate", "animatemotion", "animatetransform", "applet", "base", "embed"}
REFUSED |= {"foreignobject", "frame", "frameset", "iframe", "object", "portal", "set"}
ADDRESSES = {"action", "background", "cite", "data", "formaction", "href", "ping"}
ADDRESSES |= {"poster", "src", "srcset", "xlink:href"}
POLICY = "content-security-policy"
SCRIPTS = re.compile(r"script-src 'self'|default-src 'none'(?!.*script-src)")
DATA = {"application/json"}
UNSEEN = re.compile(r"[\x00-\x20]")  # a browser leaves them out of a scheme
# What a tag must hold to be looked at, besides those that are by their name.
LOOKED = re.compile(r"url\(|\bid\b|(?<![\w-])on|" + "|".join(sorted(ADDRESSES)), re.I)
NAMED = RAW | REFUSED | {"meta"}
# Text, ends, and tags of which nothing below looks at name or attributes: most of a
# page with formulas and listings.
_OTHER = rf"(?!on|(?:id|style|{'|'.join(sorted(ADDRESSES))})(?![\w-]))[\w-]++"
QUIET = re.compile(
    rf"""(?: [^<]++ | </[a-z]++> | <(?!(?:{"|".join(sorted(NAMED))})\b)[a-z]++
    (?: \ style="[\w\ :;.%-]*+" | \ {_OTHER}(?:="[^"<>]*+")?+ )*+ >)++""",
    re.IGNORECASE | re.VERBOSE,
)
ELSEWHERE = re.compile(r"url\((?!#)", re.IGNORECASE)
SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
LINKED = ("https:", "mailto:")


@dataclass(frozen=True)
class Tag:
    """An opening tag: its attributes by name, what stands between it and its end."""

    name: str
    attributes: dict[str, str]
    raw: str = ""


def tags(text: str) -> Iterator[Tag]:
    """The opening tags of a page that matter; ``!`` names what is no tag in form."""
    at = 0
    while match := TAG.search(text, _loud(text, at)):
        at = match.end()
        if match["broken"]:
            yield Tag("!", {}, match[0])
        elif match["name"]:
            name, raw = match["name"].lower(), ""
            if name in RAW:
                end = re.compile(rf"</{name}\s*>", re.IGNORECASE).search(text, at)
                raw = text[at : end.start() if end else len(text)]
                at = end.end() if end else len(text)
            if name in NAMED or LOOKED.search(match["attributes"]):
                yield Tag(name, dict(_attributes(match["attributes"])), raw)


def _loud(text: str, at: int) -> int:
    """Where the next tag may stand that is to be looked at."""
    quiet = QUIET.match(text, at)
    return quiet.end() if quiet else at


def _attributes(text: str) -> Iterator[tuple[str, str]]:
    for name, *values in ATTRIBUTE.findall(text):
        yield name.lower(), html.unescape("".join(values))


def inline_scripts(of: Iterable[Tag]) -> list[str]:
    """What a page runs that stands in it."""
    return [
        tag.raw
        for tag in of
        if tag.name == "script" and "src" not in tag.attributes
        if tag.attributes.get("type") not in DATA
    ]


def digest(code: str) -> str:
    """How a policy names a script."""
    of = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    return f"'sha256-{of}'"


def problems(site: Path, address: str, any_inline: bool = False) -> list[str]:
    """'page: what' for all pages of a built site, which is published at an address.

    any_inline  the policy may let inline scripts run, as of files without a server
    """
    files = {path.relative_to(site).as_posix() for path in site.rglob("*")}
    pages = {
        name: list(tags((site / name).read_text(encoding="utf-8")))
        for name in sorted(files)
        if name.endswith(".html")
    }
    ids = {name: {tag.attributes.get("id") for tag in of} for name, of in pages.items()}
    found = []
    for name, of in pages.items():
        said = [problem for tag in of for problem in problems_of(tag, address)]
        said += [] if any_inline else _not_in_policy(of)
        for link in dict.fromkeys(_links(of)):
            if problem := _dead(link, name, address, files, ids):
                said.append(problem)
        found += [f"{name}: {problem}" for problem in said]
    return found


def _not_in_policy(of: list[Tag]) -> Iterator[str]:
    """Inline scripts that the page's policy does not name, and pages without one."""
    policies = [
        tag.attributes.get("content", "")
        for tag in of
        if tag.attributes.get("http-equiv", "").lower() == POLICY
    ]
    if len(policies) != 1 or not SCRIPTS.search(policies[0]):
        yield "not one policy for scripts"
    elif "unsafe-inline" in policies[0].partition("script-src")[2].partition(";")[0]:
        yield "a policy that lets any inline script run"
    for code in inline_scripts(of):
        if not any(digest(code) in policy for policy in policies):
            yield f"an inline script that its policy does not name: {code[:60]!r}"


def problems_of(tag: Tag, address: str) -> list[str]:
    """What a page must not hold, of one tag."""
    found, given = [], tag.attributes
    if tag.name == "!":
        found.append(f"a tag out of form: {tag.raw!r}")
    if tag.name in REFUSED:
        found.append(f"<{tag.name}>")
    if tag.name == "meta" and given.get("http-equiv", POLICY).lower() != POLICY:
        found.append(f"<meta http-equiv={given['http-equiv']}>")
    for attribute, value in given.items():
        if attribute.startswith("on"):
            found.append(f"{attribute}={value[:60]!r}")
        link = tag.name == "a" and attribute in ("href", "xlink:href")
        several = value.split(",") if attribute == "srcset" else [value]
        if attribute in ADDRESSES and any(
            _is_foreign(one, address, link) for one in several
        ):
            found.append(f"<{tag.name} {attribute}={value[:60]!r}>")
        if attribute == "style" and ELSEWHERE.search(value):
            found.append(f"style={value[:60]!r}")
    return found


def _is_foreign(value: str, address: str, link: bool) -> bool:
    """An address of another host that is no plain link, or no address at all."""
    value = UNSEEN.sub("", value)
    scheme = SCHEME.match(value)
    if not scheme or value.startswith(address):
        return False
    return not (value.startswith("data:image/") or (link and scheme[0] in LINKED))


def _links(of: list[Tag]) -> Iterator[str]:
    for tag in of:
        for attribute in ("href", "src"):
            if (link := tag.attributes.get(attribute)) is not None:
                yield link


def _dead(link: str, page: str, address: str, files, ids) -> str | None:
    """What is wrong with a link within the site, None if it leads somewhere."""
    if link.startswith(address):
        link = "/" + link.removeprefix(address)
    elif SCHEME.match(link):
        return None
    elif link.startswith("/"):
        base = urlsplit(address).path
        if not link.startswith(base):
            return f"a link out of the site: {link!r}"
        link = "/" + link.removeprefix(base)
    parts = urlsplit(link)
    path = unquote(parts.path)
    target = normpath(join(dirname(page), path)) if path else page
    target = target.lstrip("/") or "."
    if path and not target.endswith(".html") and f"{target}/index.html" in files:
        target = f"{target}/index.html"
    if target == ".":
        target = "index.html"
    if target not in files:
        return f"a link that leads nowhere: {link!r}"
    anchor = unquote(parts.fragment).partition("=")[0]  # after it a script's state
    if anchor and target in ids and anchor not in ids[target]:
        return f"an anchor that leads nowhere: {link!r}"
    return None
