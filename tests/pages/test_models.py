"""Released models: fields, vocabulary, order, sources, both languages."""

import importlib.util
import re
from pathlib import Path

import pytest
import yaml

from scripts.site import citations
from scripts.site.atlas.words import decimal
from scripts.site.source import LANGUAGES, ROOT
from tests.pages import test_terms, test_typography

FILE = ROOT / "docs" / "data" / "models.yml"
ROWS = yaml.safe_load(FILE.read_text(encoding="utf-8"))
NAMES = [row["model"] for row in ROWS]
FIELDS = {
    *(
        "model",
        "family",
        "document",
        "weights",
        "architecture",
        "norm",
        "gain",
        "placement",
    ),
    *("qk_norm", "eps", "caps", "differs", "source"),
}
WORDS = {
    "norm": {"LayerNorm", "RMSNorm"},
    "gain": {"w", "1+w", "none"},
    "placement": {
        *("pre", "post", "sandwich", "branch-output", "pre-parallel"),
        *("residual-after-norm", "multi-stream", "none", "other"),
    },
    "qk_norm": {"none", "per head", "projection", "L2"},
}
MONTH = re.compile(r"20\d\d-(0[1-9]|1[0-2])")
TYPE = re.compile(r"model_type = \"([\w-]+)\"")
CAPS = re.compile(r"(attention|final) \d+(, final \d+)?")


def problem_of(row: dict) -> str | None:
    """What is out of form in a row, None if nothing is."""
    if set(row) != FIELDS:
        return f"its fields differ by {', '.join(sorted(set(row) ^ FIELDS))}"
    for field, words in WORDS.items():
        if row[field] not in words:
            return f"{field} is none of {', '.join(sorted(words))}"
    if not MONTH.fullmatch(str(row["document"])):
        return "document is not a year and a month"
    if not isinstance(row["weights"], bool):
        return "weights is neither true nor false"
    if row["eps"] is not None and not (
        isinstance(row["eps"], float) and 0 < row["eps"] < 1e-3
    ):
        return "eps is neither null nor a small number"
    if row["caps"] is not None and not CAPS.fullmatch(row["caps"]):
        return "caps is neither null nor like attention 50, final 30"
    if row["differs"] is not None and set(row["differs"]) != set(LANGUAGES):
        return "differs is not one text a language"
    said = (row["differs"] or {}).values()
    if any("1e-" in text and decimal(row["eps"]) not in text for text in said):
        return "differs names an eps and not the model's own"
    if not row["source"]:
        return "no source"
    return None


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_form(row):
    assert problem_of(row) is None


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_each_source_is_in_the_bibliography(row, obeyed):
    known = citations.references()
    obeyed(f"{row['model']}: no {key}" for key in row["source"] if key not in known)


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_reads_well(row, obeyed):
    if row["differs"]:
        text = row["differs"]["zh"]
        found = test_typography.violations(text)
        found += test_terms.refused(text, test_terms.TERMS)
        obeyed(f"{row['model']}: {v.partition(': ')[2]}" for v in found)
        assert not set(row["differs"]["en"]) & set("，。；：（）“”")
        assert "[[" not in text + row["differs"]["en"]  # pages read it as a fact


def test_each_architecture_is_one_of_the_package(obeyed):
    package = Path(importlib.util.find_spec("transformers").origin).parent
    files = package.glob("models/*/configuration_*.py")
    texts = [path.read_text(encoding="utf-8") for path in files]
    known = {name for text in texts for name in TYPE.findall(text)}
    asked = {row["architecture"] for row in ROWS} - {None}
    obeyed(f"no architecture {name}" for name in sorted(asked - known))


def test_enough_in_order_of_the_documents():
    assert len(ROWS) >= 70
    assert len(set(NAMES)) == len(NAMES)
    months = [row["document"] for row in ROWS]
    assert months == sorted(months)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"norm": "Layer Norm"}, "norm is none of"),
        ({"gain": 1}, "gain is none of"),
        ({"placement": "peri"}, "placement is none of"),
        ({"qk_norm": True}, "qk_norm is none of"),
        ({"document": "2024"}, "document is not"),
        ({"weights": "2024-09"}, "weights is neither"),
        ({"eps": "1e-6"}, "eps is neither"),
        ({"eps": 1.0}, "eps is neither"),
        ({"caps": "50"}, "caps is neither"),
        (
            {"eps": 1e-6, "differs": {"en": "The default is 1e-5.", "zh": "默认值。"}},
            "differs names an eps",
        ),
        ({"differs": {"en": "A."}}, "differs is not"),
        ({"source": []}, "no source"),
        ({"layers": 3}, "its fields differ by layers"),
    ],
)
def test_bad(change, says):
    assert problem_of(ROWS[0] | change).startswith(says)


@pytest.mark.parametrize("names", [("GLM-130B", "MiniMax-Text-01")])
def test_one_structure_has_one_placement(names):
    """Both codes take the residual behind the norm."""
    found = {row["placement"] for row in ROWS if row["model"] in names}
    assert found == {"residual-after-norm"}


def test_what_was_never_published_is_not_called_released():
    closed = {row["model"] for row in ROWS if not row["weights"]}
    assert {"GPT-3", "PaLM", "ViT-22B", "Nemotron-4 15B"} <= closed


def test_sources_of_one_repository_s_code_are_pinned():
    """nanochat's cap changed on its main branch after the model was out."""
    known = citations.references()
    assert "/blob/master/" not in known["karpathy2025nanochat"].url


def test_an_eps_of_base_models_is_said_of_them_alone():
    (row,) = (row for row in ROWS if row["model"].startswith("Qwen2.5 72B"))
    assert row["model"].endswith("(base)") and "Instruct" in row["differs"]["en"]


def test_the_time_line_claims_no_end_and_one_lane_for_post_norm():
    from scripts.site.diagrams import norm_timeline

    assert "ends in" not in norm_timeline.WORDS["en"]["alt"]
    lanes = {norm_timeline.lane(row) for row in ROWS if "Post-Norm" in str(row)}
    shifted = [row for row in ROWS if row["placement"] == "residual-after-norm"]
    assert {norm_timeline.lane(row) for row in shifted} == {"post"} <= lanes


def test_the_glossary_keeps_methods_and_their_numbers_apart():
    text = (ROOT / "docs" / "data" / "glossary.yml").read_text(encoding="utf-8")
    known = yaml.safe_load(text)
    assert "spectral norm" not in known  # that is the singular value itself
    assert "singular value" in known["spectral normalization"]["en"]
    assert "n + F(n)" in known["HybridNorm"]["en"]
    assert "every row" not in known["nGPT"]["en"]  # writers are normed by columns
