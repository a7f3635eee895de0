"""Which norms do published architectures use, where, and in what form?

Read off running code. Every causal and encoder-decoder architecture that the
installed transformers knows, text decoders that it lists under image and text
alone, and some encoders are made tiny, with random weights and the class's
default switches, and run once on random tokens. Norms are recognised by what
they do (snippets/norm_probe/behaviour.py), placement by writing the tensors
of a block as exact combinations of earlier ones (matching.py), and a branch by
running it again with one token changed (atlas/branches.py). Class defaults are
not checkpoints: released models may set other switches.

A row is one architecture and one distinct kind of layer; its columns:
architecture, model_class, layer (the configuration's word for the kind),
layers (indices in the tiny instance), status (resolved, partial, unresolved)
and reason, placement, equations, norms, qk, functional, caps, multipliers,
source and notes. An entry of `norms` is [site, name, class, kind, gain, bias,
eps, cast, fp16, line, within]; sites beside attention and feed-forward:
cross-in, cross-out (cross-attention), mixer-in, mixer-out (any other token
mixer), head (behind a matrix of the LM head); within is the branch it stands
in; a class "function" is a norm without a module. An
entry of `qk` is [tensor, kind, gain, scope, rope]; scope is head, projection
or latent. `fp16` says whether elements of size 300 come out right in float16.
An equation's L is the number of layers; a factor with a name is a parameter or
a stored buffer.
`notes` holds what the class's own initialisation does unexpectedly.
"""

from functools import partial

from scripts.measure.design import Design
from scripts.measure.experiment_words import design_words, figure_words
from scripts.measure.records import Step

INSTALLED = ("transformers",)
DEVICE = "cpu"
SEEDS = ()
METHOD = (
    "tiny random instances of the class defaults, one process each, CPU, float32, "
    "eager attention; norms by scale and shift probes, placement by exact "
    "decomposition of tensors, branches by moving a token; seeds are the CRC-32 of "
    "the model type"
)
SAMPLE = (
    "bloom",
    "cohere",
    "deepseek_v3",
    "deepseek_v4",
    "gemma2",
    "gemma3_text",
    "gpt_neox",
    "jamba",
    "llama",
    "minimax",
    "nemotron",
    "olmo2",
    "qwen3",
    "qwen3_next",
    "t5",
)
SECONDS, MEBIBYTES = 600, 4096  # for one architecture


def run(architecture: str) -> list[dict]:
    """The rows of one architecture; one that fails is a row with its reason."""
    from scripts.experiments.atlas.examine import examine, row
    from scripts.experiments.atlas.isolate import isolated

    task = f"{examine.__module__}:{examine.__name__}"
    answer = isolated(task, architecture, SECONDS, MEBIBYTES)
    if "problem" in answer:
        return [row(architecture, reason=answer["problem"])]
    return answer["value"]


def measure(size: str) -> list[Step]:
    """One step is one architecture: 15 in size tiny, else all."""
    from scripts.experiments.atlas.tiny import architectures

    names = SAMPLE if size == "tiny" else architectures()
    return [Step({"architecture": name}, partial(run, name)) for name in names]


# What was asked, and how it was held equal ---------------------------------

DESIGN = Design(
    says=("none",),
    arms=("architectures",),
    **design_words(__file__),
)


# What the page says -------------------------------------------------------

SITE, NAME, CLASS, KIND, GAIN, BIAS, EPS, CAST, FP16, LINE, WITHIN = range(11)
PLACEMENTS = (
    "pre",
    "post",
    "sandwich",
    "branch-output",
    "pre-parallel",
    "residual-after-norm",
    "multi-stream",
    "mixed",
)
KINDS = ("RMSNorm", "LayerNorm", "mixed")


def by_architecture(record) -> dict[str, list[dict]]:
    """The rows of each architecture; of encoder-decoders the decoder's."""
    found: dict[str, list[dict]] = {}
    for row in record.rows:
        found.setdefault(row["architecture"], []).append(row)
    for name, rows in found.items():
        decoder = [r for r in rows if r["layer"].startswith("decoder")]
        found[name] = decoder or rows
    return found


def status(rows: list[dict]) -> str:
    """resolved or unresolved if all rows are, else partial."""
    found = {row["status"] for row in rows}
    return found.pop() if len(found) == 1 else "partial"


def blocks(rows: list[dict]) -> tuple:
    """Files and lines of the blocks' code: what architectures of one block share."""
    found = {tuple(place) for row in rows for place in row["source"]}
    return tuple(sorted(place for place in found if place[0] == "block"))


def stream_norms(rows: list[dict]) -> list[list]:
    """The norms that stand on the residual stream or on what is added to it.

    The final one speaks for them where the block's were not placed.
    """
    found = [norm for row in rows for norm in row["norms"]]
    placed = [norm for norm in found if norm[SITE].endswith(("-in", "-out"))]
    return placed or [norm for norm in found if norm[SITE] == "final"]


def common(values) -> str | None:
    """The one value of all, "mixed" if there are several, None if there is none."""
    found = set(values)
    return None if not found else found.pop() if len(found) == 1 else "mixed"


def placement(rows: list[dict]) -> str | None:
    found = common(row["placement"] for row in rows if row["placement"])
    return "mixed" if found == "other" else found


def summary(record) -> list[dict]:
    """One line an architecture that is not unresolved: its main norm and QK-norms."""
    lines = []
    for name, rows in by_architecture(record).items():
        if status(rows) == "unresolved":
            continue
        norms = stream_norms(rows)
        qk = [entry for row in rows for entry in row["qk"]]
        direct = [entry for entry in qk if entry[0] in ("q", "k", "qk", "kv")]
        lines.append(
            {
                "architecture": name,
                "placement": placement(rows),
                "kind": common(norm[KIND].split()[0] for norm in norms),
                "gain": common(norm[GAIN] for norm in norms),
                "bias": common(norm[BIAS] for norm in norms),
                "eps": common(norm[EPS] for norm in norms),
                "cast": common(norm[CAST].partition(" →")[0] for norm in norms),
                "scope": common(entry[3] for entry in direct),
                "rope": common(entry[4] for entry in direct),
                "qk_kind": common(entry[1].split()[0] for entry in direct),
                "qk_gain": common(entry[2] for entry in direct),
                "l2": any(entry[1] == "L2" for entry in direct),
                "v_norm": any(entry[0] == "v" for entry in qk),
                "latent": any(entry[3] == "latent" for entry in qk),
                "gated": any(n[SITE] == "gated" for r in rows for n in r["norms"]),
                "fp16": all(n[FP16] for r in rows for n in r["norms"]),
                "cap": any(value for row in rows for _, value in row["caps"]),
                "start": any(row["notes"] for row in rows),
            }
        )
    return lines


def _key(value) -> str:
    """A fact's name for a value: 1+w -> one_plus_w, 1e-06 -> 1e_06."""
    text = str(value).replace("1+w", "one_plus_w").lower()
    return "".join(c if c.isalnum() else "_" for c in text)


def facts(record) -> dict[str, str]:
    from collections import Counter

    every: dict[str, list[dict]] = {}
    for row in record.rows:
        every.setdefault(row["architecture"], []).append(row)
    counts = Counter(map(status, every.values()))
    lines = summary(record)

    def number(**wanted) -> str:
        return str(sum(all(li[k] == v for k, v in wanted.items()) for li in lines))

    found = {
        "total": str(sum(counts.values())),
        "resolved": str(counts["resolved"]),
        "partial": str(counts["partial"]),
        "unresolved": str(counts["unresolved"]),
        "blocks": str(len(set(map(blocks, every.values())) - {()})),
        "version": record.provenance.get("versions", {}).get("transformers", ""),
        "rms_norm": number(kind="RMSNorm"),
        "layer_norm": number(kind="LayerNorm"),
        "qk_norm": str(sum(line["scope"] is not None for line in lines)),
        "qk_head": number(scope="head"),
        "qk_l2": number(l2=True),
        "fp16_unsafe": str(
            sum(  # unresolved ones too: their norms were probed
                any(norm[FP16] is False for row in rows for norm in row["norms"])
                for rows in every.values()
            )
        ),
    }
    for place in PLACEMENTS:
        found[f"placement_{_key(place)}"] = number(placement=place)
    for gain in ("w", "1+w"):
        found[f"rms_norm_gain_{_key(gain)}"] = number(kind="RMSNorm", gain=gain)
    for cast, name in (
        ("cast, then gain", "cast_first"),
        ("gain in fp32, then cast", "gain_first"),
    ):
        found[f"rms_norm_{name}"] = number(kind="RMSNorm", cast=cast)
    for eps in sorted({line["eps"] for line in lines} - {None, "mixed"}):
        found[f"eps_{_key(eps)}"] = number(eps=eps)
    return found


WORDS = figure_words(__file__)


def plot(record, words):
    from scripts.measure import figures

    lines = summary(record)
    figure, (top, bottom) = figures.new_figure(words, record, rows=2, height=6.4)

    def bars(axis, names, select):
        """Stacked by kind of norm; the number of all stands at the end."""
        left = [0] * len(names)
        for series, kind in enumerate(KINDS):
            if all(line["kind"] != kind for line in lines):
                continue
            counts = [
                sum(line["kind"] == kind and select(line, name) for line in lines)
                for name in names
            ]
            label = words["kind_mixed"] if kind == "mixed" else words[kind]
            colour = figures.SERIES[series]
            fill = (colour, figures.PANEL, colour)[series]  # told apart without colours
            axis.barh(
                range(len(names)),
                counts,
                left=left,
                color=fill,
                edgecolor=colour,
                linewidth=1.2,
                height=0.66,
                label=label,
            )
            left = [a + b for a, b in zip(left, counts, strict=True)]
        for place, count in enumerate(left):
            axis.text(count, place, f"  {count}", va="center", color=figures.INK)
        axis.set_yticks(range(len(names)), [words[name] for name in names])
        axis.invert_yaxis()
        axis.grid(False, axis="y")
        axis.set_xlim(0, max(left) * 1.12 + 1)
        axis.set_xlabel(words["count"])

    bars(top, PLACEMENTS, lambda line, name: line["placement"] == name)
    bars(
        bottom,
        ("w", "1+w", "none", "head", "projection"),
        lambda line, name: (
            name == (line["scope"] if name in ("head", "projection") else line["gain"])
        ),
    )
    top.set_title(words["placement"], pad=40)
    figures.legend(top)
    bottom.set_title(words["form"])
    figures.footer(figure, record, words, words["band"])
    return figure
