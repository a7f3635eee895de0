"""An entry per architecture: its block drawn, its norms, what is unusual."""

import html
import re

from scripts.site.atlas import drawing
from scripts.site.atlas import rows as atlas
from scripts.site.atlas.table import placement_words
from scripts.site.atlas.words import (
    ODD,
    WORDS,
    cast_words,
    decimal,
    gain_words,
    reason_words,
)

LINES = "https://github.com/{repository}/blob/v{version}/{path}#L{first}-L{last}"
FOLDERS = {"data2vec_text": "data2vec"}  # where it is not the file's own name
DETAILED = ("eps", "rare_eps")  # said with the block alone
LATENTS = ("latent-q", "latent-kv", "indexer-k")


def blocks(part: str, language: str) -> str:
    """An entry for each architecture whose name begins with the part's letters."""
    return "\n\n".join(
        entry(name, found, language)
        for name, found in atlas.groups().items()
        if atlas.part_of(name) == part
    )


def entry(name: str, found: list[dict], language: str) -> str:
    """One architecture: drawing, equations, norms, what is unusual, source."""
    words = WORDS[language]
    parts, drawn = [f"### `{name}` {{ #{atlas.slug(name)} }}", ""], []
    for row in found:
        if row["layer"] or len(found) > 1:
            layers = row["layers"] or ()
            said = words["layers" if len(layers) > 1 else "layer"]
            shown = words["brackets"].format(
                said.format(words["comma"].join(map(str, layers)))
            )
            parts += [f"**{row['layer']}**{shown}", ""]
        if row["status"] == "unresolved":
            parts += [_reason(row, language) + words["stop"], ""]
            continue
        equations = row["equations"] or []
        within = atlas.within(row)
        if equations and (equations, within) not in drawn:
            drawn.append((equations, within))
            inside = [f"{b}: {', '.join(x + y)}" for b, (x, y) in within.items()]
            said = "; ".join([*equations, *inside])
            label = words["block"].format(name=name, equations=said)
            parts += [_picture(equations, label, within), ""]
            lines = (f"<code>{html.escape(line)}</code>" for line in equations)
            parts += [f'<p class="equations">{"<br>".join(lines)}</p>', ""]
        parts += [f"- {line}" for line in details(row, language)] + [""]
    return "\n".join(parts)


def _picture(equations: list[str], label: str, within: dict) -> str:
    try:
        return f"<div>{drawing.draw(equations, label, within)}</div>"
    except drawing.EquationError:
        return ""  # the equations stand below in any case


def details(row: dict, language: str, without: tuple = ()) -> list[str]:
    """What there is to say of a row, a line each; oddities ``without`` some."""
    words = WORDS[language]
    comma, colon = words["comma"], words["colon"]
    where = placement_words(row, words)
    if row["placement"] == "other" and row["reason"]:
        where = reason_words(row["reason"], language)
    lines = [f"{words['placement']}{colon}{where}"]
    if row["status"] == "partial":
        lines.append(_reason(row, language))
    for same, names in _alike(atlas.norms(row), words).items():
        kind, gain, bias, eps, cast, fp16 = same
        said = [kind, gain_words(gain, words)]
        if gain != "none":
            said[1] = f"{words['gain'].lower()} {said[1]}"
        if kind == "LayerNorm":
            said.append(words["bias"] if bias else words["no-bias"])
        if eps is not None:
            said.append(f"ε {decimal(eps)}")
        if cast:
            said.append(cast_words(cast, language))
        if not fp16:
            said.append(words["overflow"])
        listed = comma.join(names)
        lines.append(f"{listed}{colon}{words['and'].join(said)}")
    groups = (("qk", ("q", "k", "kv")), ("values", ("v",)), ("latents", LATENTS))
    for name, tensors in groups:
        said: dict[str, dict] = {}
        for tensor, *found in row["qk"] or ():
            if tensor in tensors:
                of = said.setdefault(_qk(found, words), {})
                of[words.get(tensor, tensor)] = None
        if said:
            listed = (
                what if name == "values" else f"{comma.join(of)}{colon}{what}"
                for what, of in said.items()
            )
            lines.append(f"{words[name]}{colon}{words['semicolon'].join(listed)}")
    for field in ("caps", "multipliers"):
        said = [f"`{k}` = {v:g}" for k, v in row[field] or () if v is not None]
        if said:
            lines.append(f"{words[field]}{colon}{comma.join(said)}")
    if row["functional"]:
        said = comma.join(f"`{what}`" for what in row["functional"])
        lines.append(f"{words['functional']}{colon}{said}")
    if odd := unusual(row, language, without):
        lines.append(f"{words['unusual']}{colon}{words['semicolon'].join(odd)}")
    links = comma.join(
        source_link([words["lines"] if what == "block" else what, *place])
        for what, *place in row["source"] or ()
    )
    if links:
        lines.append(f"{words['source']}{colon}{links}")
    return [line + words["stop"] for line in lines]


def _qk(found: list, words: dict) -> str:
    """What norm a tensor of attention has."""
    kind, gain, scope, rope = found
    parts = [kind, *([words["no-gain"]] if gain == "none" else [])]
    if scope != "latent":
        where = words["no-rope"] if rope == "none" else words.get(rope, rope)
        parts += [words.get(scope, scope), where]
    return words["and"].join(parts)


def _reason(row: dict, language: str) -> str:
    words = WORDS[language]
    why = reason_words(row["reason"], language)
    return f"{words[row['status']]}{words['colon']}{why}"


def _alike(norms, words: dict) -> dict[tuple, list[str]]:
    """Names of norms, and places of those outside the equations, by what they share."""
    found: dict[tuple, list[str]] = {}
    for norm in norms:
        fields = ("kind", "gain", "bias", "eps", "cast", "fp16")
        names = found.setdefault(tuple(norm[field] for field in fields), [])
        name = f"`{norm['name']}`"
        if place := words["sites"].get(norm["site"]):
            name += words["brackets"].format(place)
        if name not in names:
            names.append(name)
    return found


def unusual(row: dict, language: str, without: tuple = ()) -> list[str]:
    """What sets a row apart from a plain Pre-Norm block, in words."""
    words, odd = ODD[language], atlas.oddities(row)
    return [words[key].format(odd[key]) for key in odd if key not in without]


def source_path(file: str) -> tuple[str, str]:
    """(package, path in its repository) of a file that the record names."""
    if found := re.fullmatch(r"(?:modeling|configuration)_(\w+)\.py", file):
        folder = FOLDERS.get(found[1], found[1])
        return "transformers", f"src/transformers/models/{folder}/{file}"
    return "torch", f"torch/nn/modules/{file}"  # a norm of torch's own


REPOSITORIES = {"transformers": "huggingface/transformers", "torch": "pytorch/pytorch"}


def source_link(place: list) -> str:
    """A link to the lines of a block or of a norm."""
    what, file, first, last = place
    package, path = source_path(file)
    url = LINES.format(
        repository=REPOSITORIES[package],
        version=atlas.version(package),
        path=path,
        first=first,
        last=last,
    )
    return f"[{what}, {first}–{last}]({url})"


def oddities(language: str) -> str:
    """A list item for each oddity: what it is, and who has it."""
    words, found = ODD[language], {}
    for row in atlas.rows():
        for key in atlas.oddities(row):
            if key not in DETAILED:
                found.setdefault(key, {})[row["architecture"]] = _link(row)
    comma, colon = WORDS[language]["comma"], WORDS[language]["colon"]
    return "\n".join(
        f"- **{words[key]}** ({len(who)}){colon}{comma.join(who.values())}"
        for key, who in sorted(found.items(), key=lambda item: len(item[1]))
    )


def _link(row: dict) -> str:
    name = row["architecture"]
    part = atlas.part_of(name).replace("_", "-")
    return f"[`{name}`](blocks-{part}.md#{atlas.slug(name)})"


def unresolved(language: str) -> str:
    """A list item for each architecture that was not resolved, with the reason."""
    words, lines = WORDS[language], {}
    for row in atlas.rows():
        if row["status"] != "resolved":
            lines.setdefault(row["architecture"], _reason(row, language))
    links = {row["architecture"]: _link(row) for row in atlas.rows()}
    return "\n".join(f"- {links[n]}{words['colon']}{why}" for n, why in lines.items())
