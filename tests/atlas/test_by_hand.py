"""The measured atlas says what a reader of the source files says."""

import ast
import importlib.util
import re
from collections import Counter
from functools import cache
from math import isclose
from pathlib import Path

import pytest

from scripts.experiments import model_atlas
from scripts.measure import records
from scripts.site.reading.files import read_yaml

FIXTURES = ("by_hand.yml", "by_hand_second.yml")
LEFT_OPEN = {"by_hand.yml": 0, "by_hand_second.yml": 2}  # at most, unresolved
SAMPLES = {name: read_yaml(Path(__file__).with_name(name)) for name in FIXTURES}
ROWS = [row for name in FIXTURES for row in SAMPLES[name]]


def name_of(row: dict) -> str:
    return "-".join(filter(None, (row["architecture"], row["layer"])))


NAMES = [name_of(row) for row in ROWS]
FIRST = re.compile(r"(notation|reading|record|unresolved): \S.*")
FIELDS = {
    *("architecture", "layer", "placement", "norm", "gain", "bias", "eps", "qk"),
    "source",
}
OPTIONAL = {"qk_gain", "latent", "equations", "caps", "note", "first"}
PLACEMENTS = {
    *("pre", "post", "sandwich", "branch-output", "pre-parallel"),
    *("residual-after-norm", "multi-stream", "none", "other"),
}
KINDS = {"RMSNorm", "LayerNorm"}
GAINS = {"w", "1+w", "none"}
QK_GAINS = GAINS | {"w per head"}
QK = re.compile(r"none|(RMSNorm|LayerNorm|L2) (head|projection) (before|after|none)")
LATENT = re.compile(r"RMSNorm [\d.]+e-\d+")
SOURCE = re.compile(r"(?P<file>[\w/]+\.py):(?P<first>\d+)-(?P<last>\d+) (?P<name>\S+)")
SITES = {
    *("attention-in", "attention-out", "mixer-in", "mixer-out"),
    *("ffn-in", "ffn-out", "shared-in", "other"),
}


def problem_of(row: dict) -> str | None:
    """What is out of form in a row, None if nothing is."""
    if missing := FIELDS - set(row):
        return f"no {', '.join(sorted(missing))}"
    if unknown := set(row) - FIELDS - OPTIONAL:
        return f"unknown field {', '.join(sorted(unknown))}"
    if row["placement"] not in PLACEMENTS or row["norm"] not in KINDS:
        return "placement or norm is not of the vocabulary"
    if row["gain"] not in GAINS or not isinstance(row["bias"], bool):
        return "gain or bias is not of the vocabulary"
    if not isinstance(row["eps"], float) or not 0 < row["eps"] < 1e-3:
        return "eps is no small number"
    if not QK.fullmatch(row["qk"]):
        return "qk is neither none nor kind, scope and side of RoPE"
    if not qk_gains(row) <= QK_GAINS:
        return "qk_gain is not of the vocabulary"
    if "latent" in row and not LATENT.fullmatch(row["latent"]):
        return "latent is not a kind and an eps"
    if "first" in row and not FIRST.fullmatch(row["first"]):
        return "first is not a cause and a reason"
    if set(row["source"]) != {"block", "norm", "qk"}:
        return "source is not block, norm and qk"
    if (row["source"]["qk"] is None) != (row["qk"] == "none"):
        return "qk and its source do not belong together"
    for part, text in row["source"].items():
        if text is not None and not SOURCE.fullmatch(text):
            return f"source {part} is not file:first-last name"
    return None


def qk_gains(row: dict) -> set[str]:
    gains = row.get("qk_gain", row["gain"])
    return {gains} if isinstance(gains, str) else set(gains)


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_form(row):
    assert problem_of(row) is None


def test_enough():
    assert len(set(NAMES)) == len(NAMES)
    first, second = SAMPLES.values()
    assert len({row["architecture"] for row in first}) > 80
    assert sum("equations" in row for row in first) >= 80
    assert {row["placement"] for row in first} >= PLACEMENTS - {"none", "other"}
    assert all(row.get("equations") for row in second)
    assert not any("first" in row for row in first)


def test_what_the_page_says_of_the_second_sample():
    """practice/model-atlas#limits counts it by hand."""
    rows = SAMPLES["by_hand_second.yml"]
    causes = Counter(row.get("first", "same").partition(":")[0] for row in rows)
    assert causes == {
        "same": 28,
        "notation": 3,
        "reading": 1,
        "record": 4,
        "unresolved": 4,
    }
    for language, words in {
        "en": ("forty", "four", "thirty-six", "twenty-eight", "three", "one", "four"),
        "zh": ("四十", "四", "三十六", "二十八", "三", "一", "四"),
    }.items():
        page = Path(f"docs/{language}/pages/practice/model-atlas.md")
        text = page.read_text(encoding="utf-8")
        (line,) = (line for line in text.splitlines() if words[3] in line)
        assert re.search(".*".join(words), line), line


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"placement": "peri"}, "placement"),
        ({"gain": "1-w"}, "gain"),
        ({"bias": "no"}, "gain or bias"),
        ({"eps": "1e-6"}, "eps"),
        ({"qk": "RMSNorm"}, "qk"),
        ({"qk": "L2 head none"}, "qk and its source"),
        ({"qk_gain": "2w"}, "qk_gain"),
        ({"latent": "RMSNorm"}, "latent"),
        ({"first": "other words"}, "first"),
        ({"source": {"block": "x"}}, "source is not"),
        ({"source": {"block": "x", "norm": "y", "qk": None}}, "source block"),
        ({"depth": 3}, "unknown field depth"),
    ],
)
def test_bad_form(change, says):
    assert problem_of(ROWS[0] | change).startswith(says)


# The lines that were read --------------------------------------------------


def models() -> Path:
    """The package's models, found without importing it."""
    return Path(importlib.util.find_spec("transformers").origin).parent / "models"


@cache
def text_of(file: str) -> list[str]:
    return (models() / file).read_text(encoding="utf-8").splitlines()


@cache
def definitions(file: str) -> dict[str, tuple[int, int]]:
    """Lines of each function, class and method, decorators left out."""
    found = {}
    for node in ast.parse("\n".join(text_of(file))).body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = (node.lineno, node.end_lineno)
        if isinstance(node, ast.ClassDef):
            found[node.name] = (node.lineno, node.end_lineno)
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    name = f"{node.name}.{inner.name}"
                    found[name] = (inner.lineno, inner.end_lineno)
    return found


def wrong_lines(source: str) -> str | None:
    """Why the lines do not hold what the source says, None if they do."""
    parts = SOURCE.fullmatch(source)
    file, name = parts["file"], parts["name"]
    lines = (int(parts["first"]), int(parts["last"]))
    if not (models() / file).is_file():
        return f"no file {file}"
    if known := definitions(file).get(name):
        return None if known == lines else f"{name} stands in {known}, not {lines}"
    first, last = lines
    for number in lines:  # a name that is used, from the first use to the last
        if not 1 <= number <= len(text_of(file)):
            return f"{file} has no line {number}"
    if name not in "\n".join(text_of(file)[first - 1 : last]):
        return f"{file} {first}-{last} does not mention {name}"
    return None


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_lines_hold_what_they_are_read_for(row, no_violations):
    sources = [text for text in row["source"].values() if text]
    no_violations(filter(None, map(wrong_lines, sources)))


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_norms_of_the_equations_are_called_in_the_file(row, no_violations):
    file = SOURCE.fullmatch(row["source"]["block"])["file"]
    text = "\n".join(text_of(file))
    names = re.findall(r"N\[([\w.]+)\]", " ".join(row.get("equations", ())))
    no_violations(
        f"{file} never calls {name}"
        for name in names
        if not re.search(rf"self\.{name.rpartition('.')[2]}(\[i\])?\(", text)
    )


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("llama/modeling_lama.py:1-2 X", "no file"),
        ("llama/modeling_llama.py:1-2 LlamaRMSNorm", "LlamaRMSNorm stands in"),
        ("llama/modeling_llama.py:1-99999 q_norm", "llama/modeling_llama.py has no"),
        ("llama/modeling_llama.py:206-270 q_norm", "llama/modeling_llama.py 206-270"),
    ],
)
def test_bad_lines(source, says):
    assert wrong_lines(source).startswith(says)


# The measured record -------------------------------------------------------


def disagreements(rows: list[dict], measured: list[dict]) -> list[str]:
    """One line for each fact of ours that the measured rows contradict."""
    found = []
    for row in rows:
        of_model = [m for m in measured if m["architecture"] == row["architecture"]]
        chosen = [m for m in of_model if row["layer"] in ("", *m["layer"].split("/"))]
        if not chosen and len(of_model) == 1 and not of_model[0]["layer"]:
            continue  # the measured default has one kind of layer, not named
        name = f"{row['architecture']} {row['layer']}".strip()
        if not chosen:
            found.append(f"{name}: not measured")
        for m in chosen:
            if m["status"] != "unresolved":  # which contradicts nothing
                where = name if row["layer"] else f"{name} {m['layer']}".strip()
                found += [f"{where}: {said}" for said in differences(row, m)]
    return found


def differences(row: dict, m: dict) -> list[str]:
    found = []
    if m["placement"] != row["placement"]:
        found.append(f"placement {m['placement']}, by hand {row['placement']}")
    block = [norm for norm in m["norms"] if norm[0] in SITES]
    if not block:
        found.append("no norm in the block")
    for site, norm, _, kind, gain, bias, eps, *_ in block:
        if site == "other" and len({n[0] for n in block}) > 1:
            continue  # a norm inside a branch
        said = [
            f"{what} {measured}, by hand {ours}"
            for what, measured, ours in (
                ("kind", kind, row["norm"]),
                ("gain", gain, row["gain"]),
                ("bias", bias, row["bias"]),
            )
            if measured != ours
        ]
        if eps is None or not isclose(eps, row["eps"], rel_tol=0.02):
            said.append(f"eps {eps}, by hand {row['eps']}")
        found += [f"{norm}: {s}" for s in said]
    found += latent_differences(row, m)
    found += equation_differences(row, m)
    return found + qk_differences(row, m) + cap_differences(row, m)


def qk_differences(row: dict, m: dict) -> list[str]:
    measured = [q for q in m["qk"] if q[0] in ("q", "k", "kv")]
    shown = {f"{kind} {scope} {rope}" for _, kind, _, scope, rope in measured}
    if shown != ({row["qk"]} - {"none"}):
        return [f"QK-norm {', '.join(sorted(shown)) or 'none'}, by hand {row['qk']}"]
    gains = {gain for _, _, gain, *_ in measured}
    if measured and gains != qk_gains(row):
        return [f"gain of the QK-norm {gains}, by hand {qk_gains(row)}"]
    return []


# What the source calls a branch, and what the atlas calls its kind.
KIND_OF = {
    "DeltaNet": "LinearAttention",
    "DeltaAttention": "LinearAttention",
    "ShortConv": "Convolution",
    "PerLayer": "PerLayerInput",
}


def canonical(equations: list[str]) -> str:
    """What a block returns as one expression, norms by the end of their path."""
    known: dict[str, str] = {}
    for line in equations:
        name, _, text = line.partition(" = ")
        for ours, kind in KIND_OF.items():
            text = re.sub(rf"\b{ours}\(", f"{kind}(", text)
        text = re.sub(r"N\[[\w.]*?(\w+)\]", r"N[\1]", text).replace(")·1", ")")
        for letter, value in known.items():
            alone = rf"(?<![\w\[.]){re.escape(letter)}(?![\w(\].⊙])"
            text = re.sub(alone, lambda _, value=value: value, text)
        known[name] = text
    if "y" in known:
        return known["y"]
    return "; ".join(f"{name} = {text}" for name, text in known.items())  # streams


def equation_differences(row: dict, m: dict) -> list[str]:
    """Ours may say Mixer, for whatever branch a kind of layer has."""
    ours = row.get("equations")
    if ours and m["layer"].startswith("encoder"):
        ours = [line for line in ours if "CrossAttention" not in line]
        if len(ours) < len(row["equations"]):  # the line after goes on with a
            ours[-1] = re.sub(r"(?<![\w\[.])b(?![\w(\]])", "a", ours[-1])
    if not ours:
        return []
    pattern = re.escape(canonical(ours)).replace("Mixer\\(", r"\w+\(")
    if re.fullmatch(pattern, canonical(m["equations"])):
        return []
    return [f"equations {m['equations']}, by hand {row['equations']}"]


def latent_differences(row: dict, m: dict) -> list[str]:
    measured = [norm for norm in m["norms"] if norm[0].startswith("latent")]
    if "latent" not in row:
        return [f"{n[1]}: latent norm {n[3]}, by hand none" for n in measured]
    kind, eps = row["latent"].split()
    if not measured:
        return [f"no latent norm, by hand {row['latent']}"]
    return [
        f"{n[1]}: latent norm {n[3]} {n[6]}, by hand {row['latent']}"
        for n in measured
        if n[3] != kind or n[6] is None or not isclose(n[6], float(eps), rel_tol=0.02)
    ]


def cap_differences(row: dict, m: dict) -> list[str]:
    measured = {name: cap for name, cap in m["caps"] if cap is not None}
    if measured == row.get("caps", {}):
        return []
    return [f"caps {measured}, by hand {row.get('caps', {})}"]


@pytest.mark.parametrize("fixture", FIXTURES)
def test_the_record_says_the_same(fixture, no_violations):
    found = records.find("model_atlas")
    if not found:
        pytest.skip("docs/records holds no model_atlas.json yet")
    rows = SAMPLES[fixture]
    for record in found:
        no_violations(
            f"{record.machine}: {d}" for d in disagreements(rows, record.rows)
        )
        lost = unresolved(rows, record.rows)
        assert len(lost) <= LEFT_OPEN[fixture], lost


def test_what_the_pages_say_of_caps():
    """attention/soft-capping names these by hand."""
    for record in records.find("model_atlas"):
        caps: dict = {}
        for row in record.rows:
            for name, cap in row["caps"]:
                if cap is not None:
                    caps.setdefault(row["architecture"], {})[name] = cap
        final = "final_logit_softcapping"
        assert caps["vaultgemma"] == caps["t5gemma"] == caps["gemma2"]
        assert {caps[n][final] for n in ("muse_spark_text", "muse_glimmer_text")} == {
            20
        }
        assert {caps[n][final] for n in ("beam", "inkling2_text")} == {30}
        assert caps["recurrent_gemma"] == {"logits_soft_cap": 30}
        assert caps["xlstm"] == {"gate_soft_cap": 15, "output_logit_soft_cap": 30}
        assert caps["inkling2_text"]["mlp_gate_softcap"] == 4
        assert caps["inkling2_text"]["mlp_up_softcap"] == 25


def test_what_the_pages_say_of_float16():
    for record in records.find("model_atlas"):
        wrong = {r["architecture"] for r in record.rows for n in r["norms"] if not n[8]}
        assert wrong == {"reformer"}
        assert model_atlas.facts(record)["fp16_unsafe"] == "1"


def test_numbers_in_equations_follow_from_no_size():
    """The four layers and the widths of the tiny instance must not show."""
    for record in records.find("model_atlas"):
        found = {
            row["architecture"]
            for row in record.rows
            for line in row["equations"]
            if re.search(r"(?<![\w.(])\d+(\.\d+)?·", line)
        }
        # Factors of the index of the layer, and a constant of the configuration.
        assert found <= {"beam", "granite_docling_text"}


def unresolved(rows: list[dict], measured: list[dict]) -> list[str]:
    """Our architectures that the record could not make out."""
    ours = {row["architecture"] for row in rows}
    lost = {m["architecture"] for m in measured if m["status"] == "unresolved"}
    return sorted(ours & lost)


def measured_as(row: dict) -> dict:
    """A row of the record that agrees with one of ours."""
    norm = ["n", "Class", row["norm"], row["gain"], row["bias"], row["eps"], "", True]
    kind, _, eps = row.get("latent", "").partition(" ")
    latent = ["latent-kv", "n", "Class", kind, "w", False, float(eps or 0), "", True]
    sides = () if row["qk"] == "none" else ("q", "k")
    gains = sorted(qk_gains(row))
    return {
        "architecture": row["architecture"],
        "layer": row["layer"],
        "status": "resolved",
        "reason": None,
        "placement": row["placement"],
        "norms": [
            ["attention-in", *norm, "f.py:1"],
            ["ffn-in", *norm, "f.py:1"],
            *([[*latent, "f.py:1"]] if kind else []),
        ],
        "qk": [
            [side, kind, gains[i % len(gains)], scope, rope]
            for i, side in enumerate(sides)
            for kind, scope, rope in [row["qk"].split()]
        ],
        "functional": [],
        "equations": list(row.get("equations", [])),
        "caps": [[name, cap] for name, cap in row.get("caps", {}).items()],
    }


def test_agreement_is_silent():
    assert disagreements(ROWS, [measured_as(row) for row in ROWS]) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"placement": "post"}, "placement post, by hand pre"),
        ({"qk": []}, "QK-norm none, by hand RMSNorm head before"),
        ({"qk": [["q", "RMSNorm", "w", "head", "after"]]}, "QK-norm RMSNorm head aft"),
        ({"qk": [["q", "RMSNorm", "1+w", "head", "before"]]}, "gain of the QK-norm"),
        ({"norms": []}, "no norm in the block"),
        ({"architecture": "other"}, "not measured"),
        ({"caps": [["final_logit_softcapping", 30.0]]}, "caps {'final_logit"),
        ({"equations": ["y = x + Attention(x)"]}, "equations ['y = x + Att"),
    ],
)
def test_each_contradiction_is_named(change, says):
    row = ROWS[NAMES.index("qwen3")]
    (found,) = disagreements([row], [measured_as(row) | change])
    assert found.startswith(f"qwen3: {says}")


def test_what_is_unresolved_contradicts_nothing_and_is_counted():
    row = ROWS[NAMES.index("qwen3")]
    lost = measured_as(row) | {"status": "unresolved", "placement": None}
    assert disagreements([row], [lost]) == []
    assert unresolved([row], [lost]) == ["qwen3"]
    assert unresolved([row], [measured_as(row)]) == []


def test_latent_norms_are_compared():
    row = ROWS[NAMES.index("minicpm3")]
    measured = measured_as(row)
    (found,) = disagreements([row], [measured | {"norms": measured["norms"][:2]}])
    assert found.startswith("minicpm3: no latent norm")
    (found,) = disagreements([row | {"latent": "RMSNorm 1.0e-5"}], [measured])
    assert found.startswith("minicpm3: n: latent norm RMSNorm 1e-06")
    plain = {name: value for name, value in row.items() if name != "latent"}
    (found,) = disagreements([plain], [measured])
    assert found.endswith("by hand none")


@pytest.mark.parametrize(
    ("equations", "same"),
    [
        (["d = x + FFN(N[b.ln](x))", "y = d + Attention(d)"], True),
        (["a = x + FFN(N[ln](x))", "y = x + Attention(a)"], False),
        (["a = x + 0.7·FFN(N[ln](x))", "y = a + Attention(a)"], False),
        (["a = x + FFN(N[ln_2](x))", "y = a + Attention(a)"], False),
        (["a = x + FFN(x)", "y = a + Attention(a)"], False),
        (["a = x + FFN(N[ln](x))", "y = a + LinearAttention(a)"], False),
        (["a = x + FFN(N[ln](x))", "y = s·(a + Attention(a))"], False),
    ],
)
def test_equations_are_compared(equations, same):
    ours = ["a = x + FFN(N[ln](x))", "y = a + Attention(a)"]
    assert (canonical(equations) == canonical(ours)) is same


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("N[ln]", "N[b.ln]", True),
        ("N[ln]", "N[ln_2]", False),
        ("FFN", "Attention", False),
        ("a[i] =", "d[i] =", False),
        ("A[i,j]", "A[j,i]", False),
    ],
)
def test_equations_of_streams_are_compared(old, new, same):
    ours = ["a[i] = x[i] + b[i]·Attention(x[0])", "y[i] = Σ_j A[i,j]·FFN(N[ln](a[j]))"]
    other = [line.replace(old, new) for line in ours]
    assert other != ours
    assert (canonical(other) == canonical(ours)) is same


@pytest.mark.parametrize(
    ("position", "value", "says"),
    [
        (3, "LayerNorm", "n: kind LayerNorm"),
        (4, "1+w", "n: gain 1+w"),
        (5, True, "n: bias True"),
        (6, 1e-5, "n: eps 1e-05"),
        (6, None, "n: eps None"),
    ],
)
def test_each_wrong_norm_is_named(position, value, says):
    row = ROWS[NAMES.index("qwen3")]
    measured = measured_as(row)
    measured["norms"][1][position] = value
    (found,) = disagreements([row], [measured])
    assert found.startswith(f"qwen3: {says}")
