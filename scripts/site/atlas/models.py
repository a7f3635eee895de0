"""Released models from docs/data/models.yml: what checkpoints and reports say."""

import html

from scripts.site import citations
from scripts.site.atlas.words import WORDS, decimal, gain_words
from scripts.site.source import ROOT, SourceError, read_yaml

FILE = ROOT / "docs" / "data" / "models.yml"


def models() -> list[dict]:
    """All models in the order of their documents. SourceError, one line, if damaged."""
    return read_yaml(FILE) or []


def table(language: str) -> str:
    """One line a model: date, norm, epsilon, placement, QK-Norm and caps."""
    words = WORDS[language]
    heads = ("released", "norm", "placement", "qk")
    lines = [
        '<table class="models">',
        f"<caption>{words['models']}</caption>",
        "<thead><tr>"
        + "".join(f'<th scope="col">{words[head]}</th>' for head in heads)
        + "</tr></thead>",
        "<tbody>",
    ]
    for model in models():
        cells = (placement(model, words), qk(model, words))
        lines.append(
            f'<tr><th scope="row">{_name(model)} '
            f"<small>{_said(model, words)}</small></th>"
            f"<td>{html.escape(norm(model, words))} <small>{eps(model)}</small></td>"
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
            + "</tr>"
        )
    return "\n".join([*lines, "</tbody>", "</table>"])


def _said(model: dict, words: dict) -> str:
    """The document's month, and that no weights were published."""
    return model["document"] + ("" if model["weights"] else f" {words['no-weights']}")


def _name(model: dict) -> str:
    known = citations.references()
    for key in model["source"]:
        if key not in known:
            raise SourceError(
                f"{FILE.name}: {model['model']}: unknown citation {key!r}"
            )
    url = html.escape(known[model["source"][0]].url)
    return f'<a href="{url}">{html.escape(model["model"])}</a>'


def norm(model: dict, words: dict) -> str:
    """Kind and gain; a dash where no source says it."""
    kind, gain = model["norm"], model["gain"]
    if gain in (None, "w"):
        return kind or "–"
    return (kind or "–") + words["brackets"].format(gain_words(gain, words))


def eps(model: dict) -> str:
    """The released weights' epsilon; a dash where no source says it."""
    return "ε " + (decimal(model["eps"]) if model["eps"] else "–")


def placement(model: dict, words: dict) -> str:
    return words.get(model["placement"], model["placement"] or "–")


def qk(model: dict, words: dict) -> str:
    """QK-Norm and caps together: both hold the logits of attention down."""
    said = {"per head": words["head"], "none": words["none"]}
    said["projection"] = words["projection"]
    own = said.get(model["qk_norm"], model["qk_norm"] or "–")
    caps = f"{words['caps']} {model['caps']}" if model["caps"] else None
    for word, shown in words["capped"].items():
        caps = caps and caps.replace(word, shown)
    if caps and model["qk_norm"] == "none":
        return caps
    return words["semicolon"].join(filter(None, [own, caps]))


def differences(language: str) -> str:
    """A list item for each model that differs from its class or the usual table."""
    words, known = WORDS[language], citations.references()
    lines = []
    for model in models():
        if not model["differs"]:
            continue
        chosen = [known[key] for key in model["source"]]
        cited = words["comma"].join(f"[{r.authors}, {r.year}]({r.url})" for r in chosen)
        said = model["differs"][language]
        lines.append(f"- **{model['model']}**{words['colon']}{said} ({cited})")
    return "\n".join(lines)


def count(language: str) -> str:
    return str(len(models()))
