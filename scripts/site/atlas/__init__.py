"""The model atlas: the record of `model_atlas` in; table, blocks, JSON, CSV out."""

import html
import re
from functools import partial

from scripts.site.atlas import compare, entries, models, table
from scripts.site.atlas.rows import PARTS
from scripts.site.reading.source import SourceError

NAMES = {
    "table": table.table,
    "compare": compare.picker,
    "pairs": compare.pairs,
    "oddities": entries.oddities,
    "unresolved": entries.unresolved,
    "models": models.table,
    "models_count": models.count,
    "recent": models.recent,
    "recent_rms_norm": models.recent_rms_norm,
    "recent_pre": models.recent_pre,
    "recent_qk": models.recent_qk,
    "families": models.families,
    "differences": models.differences,
    **{f"blocks_{part}": partial(entries.blocks, part) for part in PARTS},
}


def make(name: str, language: str) -> str:
    """``atlas.table``, ``atlas.blocks_a_d`` ..."""
    if name not in NAMES:
        known = ", ".join(NAMES)
        raise SourceError(f"unknown part of the atlas {name!r}; known: {known}")
    return NAMES[name](language)


PICTURE = re.compile(r"<div><svg.*?</svg></div>\n*", re.DOTALL)
ROW = re.compile(r"<tr[^>]*>(.*?)</tr>\n?", re.DOTALL)
TAG = re.compile(r"<[^>]+>")


def make_plain(name: str, language: str) -> str:
    """The same for programs: no drawings, a table's row as cells between bars."""
    text = PICTURE.sub("", make(name, language)).replace("<br>", "\n")
    text = text.replace("<li>", "\n").replace("<details>", "\n")
    text = ROW.sub(lambda row: row[1].replace("</td>", " | ") + "\n", text)
    text = text.replace("</th>", " | ").replace("<code>", "`").replace("</code>", "`")
    return html.unescape(TAG.sub("", text)).strip()
