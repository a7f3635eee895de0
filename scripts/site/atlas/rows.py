"""The rows of the record of `model_atlas`, and what the pages read out of them.

One row per architecture and kind of layer; the columns are described in
scripts/experiments/model_atlas.py.
"""

import re
from functools import cache

from scripts.measure import records
from scripts.site.atlas.words import decimal
from scripts.site.reading.source import SourceError

NORM = (
    *("site", "name", "class", "kind", "gain", "bias", "eps", "cast", "fp16"),
    *("line", "within"),
)
# Where the norm of a block's branches stands, the most telling place first.
MAIN = (
    *("shared-in", "attention-in", "mixer-in", "ffn-in"),
    *("attention-out", "mixer-out", "ffn-out"),
)
PARTS = {  # pages of blocks, by first letter
    "a_d": "abcd",
    "e_g": "efg",
    "h_m": "hijklm",
    "n_q": "nopq",
    "r_z": "rstuvwxyz",
}
COMMON_EPS = {"1e-5", "1e-6"}


def record():
    """The atlas's record. SourceError if there is none."""
    for path in sorted(records.RECORDS.glob("*/model_atlas.json")):
        return _read(path, path.stat().st_mtime_ns)
    raise SourceError("no record of model_atlas; run: make measure")


@cache
def _read(path, stamp: int):
    return records.load(path)


def rows() -> list[dict]:
    return record().rows


def version(package: str = "transformers") -> str:
    """The version of a package that the record was read off: 2.13.0."""
    return record().provenance["versions"][package].partition("+")[0]


def groups() -> dict[str, list[dict]]:
    """The rows of each architecture, in the order of the record."""
    found: dict[str, list[dict]] = {}
    for row in rows():
        found.setdefault(row["architecture"], []).append(row)
    return found


def norms(row: dict) -> list[dict]:
    """The norms of a row with their fields' names."""
    return [dict(zip(NORM, norm, strict=True)) for norm in row["norms"] or ()]


def main_norm(row: dict) -> dict:
    """The norm that a block's branches read or return through; {} if none."""
    found = norms(row)
    places = (norm for site in MAIN for norm in found if norm["site"] == site)
    return next(places, {})


def within(row: dict) -> dict[str, tuple[list, list]]:
    """{branch: (norms of what goes in, norms behind)}, for those that have any."""
    found: dict[str, tuple[list, list]] = {}
    for norm in norms(row):
        if norm["within"]:
            below, above = found.setdefault(norm["within"], ([], []))
            side = above if norm["site"] == "gated" else below
            side += [norm["name"]] if norm["name"] not in side else []
    return found


def qk_norms(row: dict) -> list[list]:
    """The norms on queries and keys proper, without latents and indexers."""
    return [entry for entry in row["qk"] or () if entry[0] in ("q", "k")]


def family(architecture: str) -> str:
    """The name that architectures of one maker share: gemma3n_text -> gemma."""
    return re.match(r"[a-z]+", architecture)[0]


def slug(architecture: str) -> str:
    """The heading's id: lower-case words joined by hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", architecture.lower()).strip("-")


def part_of(architecture: str) -> str:
    """The page of blocks on which an architecture stands: a_d, ..."""
    first = architecture[0].lower()
    return next(part for part, letters in PARTS.items() if first in letters)


def oddities(row: dict) -> dict[str, str]:
    """What sets a row apart from a plain Pre-Norm block: key -> detail."""
    found = norms(row)
    sites = {norm["site"] for norm in found}
    epsilons = sorted({decimal(n["eps"]) for n in found if n["eps"] is not None})
    qk = qk_norms(row)
    tensors = {entry[0] for entry in row["qk"] or ()}
    signs = {
        "one_plus": any(n["gain"] == "1+w" for n in found),
        "no_gain": any(n["gain"] == "none" for n in found),
        "groups": any("group" in n["kind"].lower() for n in found),
        "kinds": len({n["kind"] for n in found if n["kind"].endswith("Norm")}) > 1,
        "eps": len(epsilons) > 1 and ", ".join(epsilons),
        "rare_eps": len(epsilons) == 1 and set(epsilons) - COMMON_EPS and epsilons[0],
        "after_rope": any(entry[4] == "after" for entry in qk),
        "projection": any(entry[3] == "projection" for entry in qk),
        "v": "v" in sites | tensors,
        "latent": any("latent" in where for where in sites | tensors),
        "indexer": any("indexer" in where for where in sites | tensors),
        "gated": "gated" in sites,
        "factors": any(
            re.search(r"[\w)]·|⊙", line) and row["placement"] != "multi-stream"
            for line in row["equations"] or ()
        ),
        # A Post-Norm block ends with one.
        "no_final": bool(main_norm(row))
        and row["placement"] != "post"
        and "final" not in sites,
        "embedding": "embedding" in sites,
        "overflow": any(n["fp16"] is False for n in found),
    }
    return {key: str(value) for key, value in signs.items() if value}
