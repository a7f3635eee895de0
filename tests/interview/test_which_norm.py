"""The answer on which model uses which norm says what the table of models says."""

import re

import pytest

from scripts.site.questions import interview
from scripts.site.reading.files import read_yaml
from scripts.site.reading.source import ROOT

MODELS = read_yaml(ROOT / "docs/data/models.yml")
ROW = next(r for _, r in interview.bank() if r["id"] == "which-model-uses-which-norm")
CALLED = {"GPT-1": "GPT"}  # in the table
PLACES = {
    "en": {"after the sum": ("post",), "in front": ("pre", "pre-parallel")},
    "zh": {"在求和之后": ("post",), "在分支之前": ("pre", "pre-parallel")},
}
GROUP = {
    "en": re.compile(r"([A-Z][^:.]*): (LayerNorm|RMSNorm) ([^.]*)\."),
    "zh": re.compile(r"([A-Z][^：。]*)：(LayerNorm|RMSNorm)，([^。]*)。"),
}


def named(name: str) -> dict:
    """The oldest released model of a name."""
    name = CALLED.get(name, name)
    exact = [row for row in MODELS if row["model"] == name]
    return (exact or [row for row in MODELS if row["model"].startswith(name)])[0]


def disagreements(text: str, language: str) -> list[str]:
    """'model: what' for each of a group that the table places elsewhere."""
    found = []
    for names, norm, place in GROUP[language].findall(text):
        places = next(v for k, v in PLACES[language].items() if k in place)
        for name in re.split(r", |、", names):
            row = named(name)
            if (row["norm"], row["placement"] in places) != (norm, True):
                found.append(f"{name}: {row['norm']}, {row['placement']}")
    return found


@pytest.mark.parametrize("language", PLACES)
def test_the_groups_agree_with_the_table(language, no_violations):
    groups = GROUP[language].findall(ROW["short"][language])
    assert sum(len(re.split(r", |、", names)) for names, _, _ in groups) >= 9
    no_violations(disagreements(ROW["short"][language], language))


@pytest.mark.parametrize(
    ("model", "placement", "qk_norm"),
    [
        ("GLM-130B", "residual-after-norm", "none"),
        ("Gemma 2", "sandwich", "none"),
        ("OLMo 2", "branch-output", "projection"),
    ],
)
def test_the_exceptions_are_exceptions(model, placement, qk_norm):
    row = named(model)
    assert (row["placement"], row["qk_norm"]) == (placement, qk_norm)
    assert all(model in ROW["short"][language] for language in PLACES)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("BERT, T5: LayerNorm after the sum.", "en"),
        ("GPT-2: RMSNorm in front.", "en"),
        ("BERT、LLaMA：RMSNorm，在分支之前。", "zh"),
    ],
)
def test_a_model_in_the_wrong_group_is_found(text, language):
    assert len(disagreements(text, language)) == 1
