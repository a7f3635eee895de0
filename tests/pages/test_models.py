"""Released models: fields, vocabulary, order, sources, both languages."""

import importlib.util
import re
from pathlib import Path

import pytest

from scripts.experiments import model_atlas
from scripts.measure import records
from scripts.site.atlas import models
from scripts.site.atlas.words import WORDS as OF_ATLAS
from scripts.site.atlas.words import decimal
from scripts.site.data import citations
from scripts.site.reading.files import read_yaml
from scripts.site.reading.source import LANGUAGES, ROOT

FILE = ROOT / "docs" / "data" / "models.yml"
ROWS = read_yaml(FILE)
NAMES = [row["model"] for row in ROWS]
FIELDS = {
    *(
        "model",
        "family",
        "released",
        "document",
        "weights",
        "variant",
        "architecture",
        "norm",
        "gain",
        "placement",
    ),
    *("qk_norm", "qk_rope", "eps", "caps", "differs", "source"),
}
WORDS = {
    "norm": {"LayerNorm", "RMSNorm"},
    "gain": {"w", "1+w", "none"},
    "placement": {
        *("pre", "post", "sandwich", "branch-output", "pre-parallel"),
        *("residual-after-norm", "multi-stream", "none", "other"),
    },
    "qk_norm": {"none", "per head", "projection", "L2"},
    "qk_rope": {None, "before", "after", "none"},
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
            return f"{field} is none of {', '.join(sorted(map(str, words)))}"
    if row["qk_rope"] and row["qk_norm"] == "none":
        return "qk_rope is the side of a norm that is none"
    if not MONTH.fullmatch(str(row["document"])):
        return "document is not a year and a month"
    if row["released"] is not None:
        said, key = row["released"]
        if not MONTH.fullmatch(str(said)) or key not in citations.references():
            return "released is not a month and who says it"
    if row["variant"] not in (None, "base", "instruct"):
        return "variant is neither base nor instruct"
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
def test_each_source_is_in_the_bibliography(row, no_violations):
    known = citations.references()
    no_violations(
        f"{row['model']}: no {key}" for key in row["source"] if key not in known
    )


def test_each_architecture_is_one_of_the_package(no_violations):
    package = Path(importlib.util.find_spec("transformers").origin).parent
    files = package.glob("models/*/configuration_*.py")
    texts = [path.read_text(encoding="utf-8") for path in files]
    known = {name for text in texts for name in TYPE.findall(text)}
    asked = {row["architecture"] for row in ROWS} - {None}
    no_violations(f"no architecture {name}" for name in sorted(asked - known))


def test_enough_in_order_of_release():
    assert len(ROWS) >= 90
    assert len(set(NAMES)) == len(NAMES)
    months = [models.month(row) for row in ROWS]
    assert months == sorted(months)


def test_release_and_document_are_apart():
    """Falcon's weights are half a year older than its report."""
    found = {row["model"]: row for row in ROWS}
    for name, month in (
        ("Falcon-7B", "2023-06"),
        ("Falcon-40B", "2023-06"),
        ("Qwen2.5 7B", "2024-09"),
        ("BLOOM", "2022-07"),
        ("Mixtral 8x7B", "2023-12"),
    ):
        assert found[name]["released"][0] == month < found[name]["document"]
    names = [row["model"] for row in ROWS]
    assert names.index("Falcon-7B") < names.index("Llama 2 7B")
    assert all(row["released"] is None for row in ROWS if not row["weights"])


@pytest.mark.parametrize("name", ["Qwen3 8B", "Kimi K2", "Mistral 7B", "Command R+"])
def test_a_transcription_is_marked(name):
    row = next(row for row in ROWS if row["model"] == name)
    assert models.transcribed(row) and models.eps(row).endswith("†")


@pytest.mark.parametrize("name", ["Gemma 3 27B", "OLMo 2 7B", "DeepSeek-V3.2"])
def test_where_the_maker_s_code_can_be_read_it_is_the_source(name):
    row = next(row for row in ROWS if row["model"] == name)
    assert not models.transcribed(row) and row["eps"]


def test_a_class_and_its_models_agree(no_violations):
    """Norm and gain of a line whose source is the class are what the class does."""
    lines = {
        line["architecture"]: line
        for record in records.find("model_atlas")
        for line in model_atlas.summary(record)
    }
    asked = [
        row
        for row in ROWS
        if row["source"][-1] == "huggingface2026layernorms"
        and row["architecture"] in lines
        and row["model"] not in BESIDE_THE_CLASS
    ]
    assert len(asked) > 20
    for row in asked:
        line = lines[row["architecture"]]
        said = (row["norm"], row["gain"], row["placement"], row["qk_norm"] != "none")
        found = (line["kind"], line["gain"], line["placement"], bool(line["scope"]))
        if said != found:
            no_violations([f"{row['model']}: {said}, the class {found}"])


def test_the_side_of_rope_is_what_the_class_did(no_violations):
    """Where its default has the norm; layers without RoPE have no side."""
    rows = {row["model"]: row for row in ROWS if row["qk_rope"]}
    for record in records.find("model_atlas"):
        for name, row in rows.items():
            sides = {
                entry[4]
                for layer in record.rows
                if layer["architecture"] == row["architecture"]
                for entry in layer["qk"]
                if entry[0] in ("q", "k", "qk", "kv")
            }
            if sides and row["qk_rope"] not in (sides - {"none"} or sides):
                no_violations([f"{name}: {row['qk_rope']}, the class {sides}"])
    assert len(rows) == sum(row["qk_norm"] != "none" for row in ROWS)  # all were read
    after = {name for name, row in rows.items() if row["qk_rope"] == "after"}
    assert after == {"Llama 4 Scout", "Hunyuan 7B", "nanochat"}


@pytest.mark.parametrize(
    ("language", "side", "without"),
    [
        ("en", "per head, before RoPE", "L2, no RoPE"),
        ("zh", "逐头，RoPE 之前", "L2，无 RoPE"),
    ],
)
def test_the_cell_of_qk_norm_says_its_side(language, side, without):
    rows = {row["model"]: row for row in ROWS}
    words = OF_ATLAS[language]
    assert models.qk(rows["Qwen3 8B"], words) == side
    assert models.qk(rows["Kimi Linear 48B"], words) == without
    assert models.qk(rows["Llama 3 8B"], words) == words["none"]


# Checkpoints that set a switch, as their notes say.
BESIDE_THE_CLASS = {"OPT-350M", "GLM-4.5"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_ten_families_are_answered(language):
    table = models.families(language)
    lines = re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", table)
    assert len(lines) == len(models.FAMILIES) == 10
    said = {}
    for line in lines:  # family, then norm with gain and ε, placement, QK-Norm, biases
        cells = re.findall(r"<td[^>]*>(.*?)</td>", line)
        assert len(cells) == 4 and all(cells) and "–" not in "".join(cells)
        said[line.split(" ")[0]] = re.sub(r"<.*?>", "", cells[0])
    comma = OF_ATLAS[language]["comma"]
    assert said["Llama"] == f"RMSNorm w{comma}1e-5"
    assert said["Gemma"] == f"RMSNorm 1 + w{comma}1e-6"
    assert said["OLMo"] == f"RMSNorm w{comma}1e-6"
    assert said["GLM"].endswith(
        "(1e-5)"
    )  # the class's: no source that was read says it


@pytest.mark.parametrize("family", models.FAMILIES)
def test_the_biases_of_a_family_are_those_of_its_class(family):
    torch = pytest.importorskip("torch")
    tiny = pytest.importorskip("scripts.experiments.atlas.tiny")
    name, said = models.FAMILIES[family]
    row = next(row for row in ROWS if row["model"] == name)
    with torch.device("meta"):
        config = tiny.configuration(row["architecture"])
        model = tiny.model_class(row["architecture"])(config)
    found = {
        n
        for n, _ in model.named_parameters()
        if n.endswith("bias") and not re.search(r"norm|router|gate\.|correction", n)
    }
    assert bool(found) == (said == "matrices"), found


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"norm": "Layer Norm"}, "norm is none of"),
        ({"gain": 1}, "gain is none of"),
        ({"placement": "peri"}, "placement is none of"),
        ({"qk_norm": True}, "qk_norm is none of"),
        ({"qk_rope": True}, "qk_rope is none of"),
        ({"qk_rope": "before"}, "qk_rope is the side"),
        ({"document": "2024"}, "document is not"),
        ({"weights": "2024-09"}, "weights is neither"),
        ({"released": ["2024", "zeng2022glm"]}, "released is not"),
        ({"released": ["2024-09", "nobody"]}, "released is not"),
        ({"variant": "chat"}, "variant is neither"),
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


NAMES_COME_SECOND = re.compile(
    r"without (reading|trusting) a|single name|believes no name|不看名字，只看|都不信"
)


def test_the_pages_claim_no_more_than_names_come_second(no_violations):
    """What a branch is called, and which tensor is the query, is read."""
    for page in ROOT.glob("docs/*/pages/practice/*.md"):
        said = NAMES_COME_SECOND.findall(page.read_text(encoding="utf-8"))
        no_violations(f"{page.name}: {words}" for words in said)


def test_what_was_never_published_is_not_called_released():
    closed = {row["model"] for row in ROWS if not row["weights"]}
    assert {"GPT-3", "PaLM", "ViT-22B", "Nemotron-4 15B"} <= closed


BRANCH = re.compile(r"/(blob|tree)/(main|master)/")


def unpinned(bibliography: str) -> list[str]:
    """Entries whose address follows a branch and that give no reason."""
    entries = re.split(r"\n(?=@)", bibliography)
    return [
        entry.splitlines()[0]
        for entry in entries
        if BRANCH.search(entry) and "\n  unpinned = {" not in entry
    ]


def test_files_are_cited_at_a_commit_or_say_why_not(no_violations):
    """nanochat's cap changed on its main branch after the model was out."""
    text = citations.BIBLIOGRAPHY.read_text(encoding="utf-8")
    no_violations(unpinned(text))
    reasons = [entry for entry in re.split(r"\n(?=@)", text) if "unpinned" in entry]
    assert len(reasons) <= 5  # files of one hub, whose history no tool here reads
    assert all("https://huggingface.co/" in entry for entry in reasons)
    address = "@misc{a,\n  url = {https://github.com/a/b/blob/main/c.py},\n"
    assert unpinned(address) and not unpinned(f"{address}  unpinned = {{x}},\n")


def test_an_eps_of_base_models_is_said_of_them_alone():
    (row,) = (row for row in ROWS if row["model"].startswith("Qwen2.5 72B"))
    assert row["model"].endswith("(base)") and "Instruct" in row["differs"]["en"]


def test_the_time_line_claims_no_end_and_one_lane_for_post_norm():
    from scripts.site.pictures.diagrams import norm_timeline

    assert "ends in" not in norm_timeline.WORDS["en"]["alt"]
    layer_norm = [row for row in ROWS if norm_timeline.lane(row) == "pre_layer"]
    late = [row for row in layer_norm if models.month(row) >= "2025"]
    assert (
        0 < len(late) <= 4 and "few dots after 2024" in norm_timeline.WORDS["en"]["alt"]
    )
    modern = [row for row in ROWS if norm_timeline.lane(row) == "pre_rms"]
    recent = [row for row in modern if models.month(row) >= "2025"]
    filled = sum(row["qk_norm"] != "none" for row in recent)
    assert 0.4 < filled / len(recent) < 0.6  # "about half"
    lanes = {norm_timeline.lane(row) for row in ROWS if "Post-Norm" in str(row)}
    shifted = [row for row in ROWS if row["placement"] == "residual-after-norm"]
    assert {norm_timeline.lane(row) for row in shifted} == {"post"} <= lanes


def test_the_glossary_keeps_methods_and_their_numbers_apart():
    known = read_yaml(ROOT / "docs" / "data" / "glossary.yml")
    assert "spectral norm" not in known  # that is the singular value itself
    assert "singular value" in known["spectral normalization"]["en"]
    assert "n + F(n)" in known["HybridNorm"]["en"]
    assert "every row" not in known["nGPT"]["en"]  # writers are normed by columns


PAGES = {code: ROOT / "docs" / code / "pages" for code in LANGUAGES}


def test_rounds_of_row_and_column_normalization_are_the_class_s_default():
    """Twenty are not 'a few'."""
    from transformers import DeepseekV4Config

    rounds = DeepseekV4Config().hc_sinkhorn_iters
    words = {"en": f"normalization, {rounds} by default", "zh": f"（默认 {rounds} 轮）"}
    for code, folder in PAGES.items():
        text = (folder / "frontier/zero-centred-and-mixed.md").read_text("utf-8")
        assert words[code] in text


def test_notes_on_models_correct_no_table_that_nobody_cites():
    titles = {"en": "## Notes { #differences }", "zh": "## 备注 { #differences }"}
    for code, folder in PAGES.items():
        text = (folder / "practice/released-models.md").read_text(encoding="utf-8")
        assert titles[code] in text
        assert not re.search("usual tables?|tables get wrong|常见的?表", text)
