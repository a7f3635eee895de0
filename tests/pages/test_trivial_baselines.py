"""A verdict on a mechanism has its trivial rival beside it.

'Consistent' in a table's cell says that a run speaks for an explanation. A lower rate,
a longer run or blocks that were never trained may do the same: a page that shows such
an experiment, or quotes much of it, prints that comparison, and it is named here.
"""

import re

import pytest

from scripts.site.reading.source import ROOT

VERDICTS = {
    "en": {"consistent", "confirmed", "refuted", "as predicted", "not as predicted"},
    "zh": {"相符", "证实", "被推翻", "与预测相同", "与预测不同"},
}
RIVALS = {  # experiment: the facts that hold a mechanism against the trivial rival
    "warmup_causes": ("lower_rate_less_warm_up",),  # a lower rate
    "running_maximum_loss": ("post_6_16_003", "pre_6_16_003"),  # the same
    "qk_update_loss": ("frozen_scores_gap_e", "held_over_frozen_e"),  # no training
    "attention_control": ("frozen_minus_plain_tenfold",),
    "layer_worth": ("frozen_pre_upper_at_c", "half_depth_gap_c"),
    "norm_free_control": ("skip_init_minus_rms_norm_small",),  # small branches alone
    "shared_shift_loss": ("mean_beyond_zero_mean_paired",),  # a vector without a mean
}
MUCH = 9  # different facts of an experiment on a page


def violations(text: str, lang: str) -> list[str]:
    """'line: cell' or 'experiment: fact' for each verdict without its rival."""
    facts = set(re.findall(r"\[\[ facts\.(\w+)\.(\w+) \]\]", text))
    told = {
        name
        for name in RIVALS
        if f"[[ figures.{name} ]]" in text or sum(e == name for e, _ in facts) >= MUCH
    }
    found = [
        f"{name}: {fact}"
        for name in sorted(told)
        for fact in RIVALS[name]
        if (name, fact) not in facts
    ]
    if told and not found:
        return []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("|"):
            cells = {cell.strip().lower() for cell in re.split(r"(?<!\\)\|", line)}
            found += [f"{number}: {cell}" for cell in cells & VERDICTS[lang]]
    return found


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_pages(lang, no_violations):
    folder = ROOT / "docs" / lang / "pages"
    told = ""
    for path in sorted(folder.rglob("*.md")):
        name = path.relative_to(folder).with_suffix("").as_posix()
        text = path.read_text(encoding="utf-8")
        no_violations(f"{lang} {name}: {each}" for each in violations(text, lang))
        told += text
    for name in RIVALS:
        assert f"[[ figures.{name} ]]" in told, name


def test_bad():
    row = "| Curvature | the Hessian | measure | not as predicted |"
    assert violations(row, "en") == ["1: not as predicted"]
    assert violations("| 曲率 | 相符 |", "zh") == ["1: 相符"]


@pytest.mark.parametrize(
    ("shown", "lacks"),
    [
        ("[[ figures.qk_update_loss ]]", RIVALS["qk_update_loss"]),
        (
            " ".join(f"[[ facts.layer_worth.{each} ]]" for each in "abcdefghi"),
            RIVALS["layer_worth"],
        ),
    ],
)
def test_a_page_that_tells_of_parts_without_the_trivial_one(shown, lacks):
    """As one was that said of QK-Norm: each part was tried alone."""
    assert [each.partition(": ")[2] for each in violations(shown, "en")] == [*lacks]


def test_good():
    row = "| Curvature | consistent |\n[[ figures.warmup_causes ]]\n"
    row += "[[ facts.warmup_causes.lower_rate_less_warm_up ]]"
    assert violations(row, "en") == []
    assert violations("This is consistent with it.", "en") == []
    assert violations("[[ facts.qk_update_loss.plain_gap_e ]]", "en") == []
