"""Released models from docs/data/models.yml: what checkpoints and reports say."""

import html

from scripts.site.atlas import rows
from scripts.site.atlas.words import WORDS, decimal, gain_words
from scripts.site.data import citations
from scripts.site.reading.files import ROOT, SourceError, read_yaml, where

FILE = ROOT / "docs" / "data" / "models.yml"
# Ten families and the model that answers for each; whether a matrix has a bias in the
# class, beside those of routers.
FAMILIES = {
    "Llama": ("Llama 3 8B", "none"),
    "Qwen": ("Qwen3 8B", "none"),
    "Gemma": ("Gemma 3 27B", "none"),
    "DeepSeek": ("DeepSeek-V3", "none"),
    "Mistral": ("Mistral 7B", "none"),
    "GPT": ("gpt-oss-120b", "matrices"),
    "GLM": ("GLM-4.5", "q, k, v"),  # the checkpoint's, not the class default
    "Phi": ("Phi-4", "none"),
    "Kimi": ("Kimi K2", "none"),
    "OLMo": ("OLMo 3 7B", "none"),
}
FIELDS = {
    *("model", "family", "released", "document", "weights", "variant", "source"),
    *("architecture", "norm", "gain", "placement", "qk_norm", "qk_rope"),
    *("eps", "caps", "differs"),
}
FAMILY_HEADS = ("family", "norm", "placement", "qk", "biases")


def models() -> list[dict]:
    """All models in order of release. SourceError, one line, if damaged."""
    found = read_yaml(FILE)
    if not isinstance(found, list) or not found:
        raise SourceError(f"{where(FILE)}: is no list of models")
    for number, row in enumerate(found, 1):
        if not isinstance(row, dict) or set(row) != FIELDS:
            apart = set(row) ^ FIELDS if isinstance(row, dict) else FIELDS
            name = row.get("model", number) if isinstance(row, dict) else number
            said = f"its fields differ by {', '.join(map(str, sorted(apart, key=str)))}"
            raise SourceError(f"{where(FILE)}: {name}: {said}")
        if not isinstance(row["source"], list) or not row["source"]:
            raise SourceError(f"{where(FILE)}: {row['model']}: no source")
    return found


def month(model: dict) -> str:
    """When weights came out, or the document's month where no source says it."""
    return model["released"][0] if model["released"] else model["document"]


def transcribed(model: dict) -> bool:
    """Whether a source writes down another's configuration."""
    known = citations.references()
    return any("Transcribes" in known[key].note for key in model["source"])


def table(language: str) -> str:
    """One line a model: dates, norm, epsilon, placement, QK-Norm and caps."""
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
    """Months of release and document; which weights are meant, if not all."""
    parts = [words["cited"].format(model["document"])]
    if model["released"]:
        url = html.escape(citations.references()[model["released"][1]].url)
        parts.insert(0, f'<a href="{url}">{model["released"][0]}</a>')
    if model["variant"] or not model["weights"]:
        parts.append(words[model["variant"] or "no-weights"])
    return words["semicolon"].join(parts)


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
    mark = " †" if transcribed(model) else ""
    return "ε " + (decimal(model["eps"]) if model["eps"] else "–") + mark


def placement(model: dict, words: dict) -> str:
    return words.get(model["placement"], model["placement"] or "–")


def qk(model: dict, words: dict) -> str:
    """QK-Norm, its side of RoPE, and caps: what holds the logits of attention down."""
    said = {"per head": words["head"], "none": words["none"]}
    said["projection"] = words["projection"]
    own = said.get(model["qk_norm"], model["qk_norm"] or "–")
    if model["qk_rope"]:
        side = words["no-rope" if model["qk_rope"] == "none" else model["qk_rope"]]
        own = words["side"].format(own, side)
    caps = f"{words['caps']} {model['caps']}" if model["caps"] else None
    for word, shown in words["capped"].items():
        caps = caps and caps.replace(word, shown)
    if caps and model["qk_norm"] == "none":
        return caps
    return words["semicolon"].join(filter(None, [own, caps]))


def families(language: str) -> str:
    """A line for each of ten families: norm, gain, ε, placement, QK-Norm, biases."""
    words, known = WORDS[language], {model["model"]: model for model in models()}
    heads = [words[head] for head in FAMILY_HEADS]
    heads[1] += f" <small>{words['gain']}{words['comma']}ε</small>"
    lines = [
        '<table class="models cards">',
        f"<caption>{words['families']}</caption>",
        "<thead><tr>"
        + "".join(f'<th scope="col">{head}</th>' for head in heads)
        + "</tr></thead>",
        "<tbody>",
    ]
    for family, (name, matrices) in FAMILIES.items():
        model = known[name]
        norm_of_class = rows.main_norm(rows.groups()[model["architecture"]][0])
        where = "norms" if norm_of_class["bias"] else matrices
        epsilon = decimal(model["eps"] or norm_of_class["eps"])
        form = (
            gain_words(model["gain"], words),
            epsilon if model["eps"] else f"({epsilon})",
        )
        cells = [
            f"{model['norm']} <small>{words['comma'].join(form)}</small>",
            html.escape(placement(model, words)),
            html.escape(qk(model, words)),
            words[where],
        ]
        labels = [words[head] for head in FAMILY_HEADS[1:]]
        lines.append(
            f'<tr><th scope="row">{family} <small>{_name(model)}</small></th>'
            + "".join(
                f'<td data-label="{label}">{cell}</td>'
                for label, cell in zip(labels, cells, strict=True)
            )
            + "</tr>"
        )
    return "\n".join([*lines, "</tbody>", "</table>"])


def differences(language: str) -> str:
    """A folded list of the models that differ from their class or the usual table."""
    words, known = WORDS[language], citations.references()
    lines = []
    for model in models():
        if not model["differs"]:
            continue
        chosen = [known[key] for key in model["source"]]
        cited = words["comma"].join(f"[{r.authors}, {r.year}]({r.url})" for r in chosen)
        said = model["differs"][language]
        lines.append(f"    - **{model['model']}**{words['colon']}{said} ({cited})")
    return "\n".join([f'??? note "{words["notes"]}"', "", *lines])


def count(language: str) -> str:
    return str(len(models()))


def recent(language: str) -> str:
    return str(len(_recent()))


def recent_rms_norm(language: str) -> str:
    return str(sum(model["norm"] == "RMSNorm" for model in _recent()))


def recent_pre(language: str) -> str:
    return str(sum(model["placement"] == "pre" for model in _recent()))


def recent_qk(language: str) -> str:
    return str(sum(model["qk_norm"] != "none" for model in _recent()))


def _recent() -> list[dict]:
    """Models of 2025 and later: what is chosen now."""
    return [model for model in models() if month(model) >= "2025"]
