"""What pages say in words of an order or a sign stands in the record that leads them.

Each row holds to a sentence without a number of its own, and falls when two labels of
the record are exchanged: a record edited or drawn anew cannot turn the sentence round.
"""

import re
from dataclasses import replace

import pytest

from scripts.measure import records

NUMBER = re.compile(r"[−-]?\d+(?:\.\d+)?")


def number(text: str) -> float:
    """The first number of a fact; None for the dash of one that there is not."""
    found = NUMBER.search(text)
    return float(found[0].replace("−", "-")) if found else None


def resolved(found: dict, name: str) -> bool:
    """Whether a paired difference is larger than what would have been seen."""
    return abs(number(found[name])) > number(found[f"{name}_bound"])


def warmup_sensitivity(found):
    """warm-up.md#runs: Post-Norm gets stuck, less with warm-up; two others never."""
    warm = ("none", "short", "long")
    for depth in ("least", "most"):
        stuck = [number(found[f"post_{depth}_{w}_failed"]) for w in warm]
        assert stuck == sorted(stuck, reverse=True) and stuck[0] > stuck[-1] > 0
        for never in ("pre", "sandwich"):
            assert {found[f"{never}_{depth}_{w}_failed"] for w in warm} == {"0"}
    assert number(found["post_most_none_reach"]) is None
    assert number(found["post_most_long_reach"]) < number(found["rate_most"])
    assert number(found["pre_most_gain"]) > 0 > number(found["pre_most_gain_at_least"])
    assert not resolved(found, "post_most_gain")
    assert number(found["post_most_behind_pre"]) > 0


def init_gradients(found):
    """pre-norm-vs-post-norm.md: 1/sqrt(L) in Pre-Norm, about level in Post-Norm."""
    for width in ("", "_wide", "_theorem", "_theorem_wide"):
        assert abs(number(found[f"pre{width}_last_slope"]) + 0.5) < 0.1
        assert 0 <= number(found[f"post{width}_last_slope"]) < 0.25
        for depth in ("least", "most"):
            assert found[f"pre{width}_larger_{depth}"] == found["seeds"]


def depth_limit(found):
    """deepnorm.md: trained blocks beat both controls, in Post-Norm at no depth."""
    assert number(found["post_trains_at"]) == 0
    depths = {
        arm: [int(n) for n in re.findall(r"\d+", found[f"{arm}_trains_at"])]
        for arm in ("pre", "sandwich", "deepnorm")
    }
    assert max(depths["deepnorm"]) > max(depths["pre"] + depths["sandwich"])
    ends = {arm: number(found[f"{arm}_least"]) for arm in depths}
    assert max(ends, key=ends.get) == "deepnorm"
    for arm in depths:
        assert number(found[f"{arm}_least_less_frozen"]) < 0


def token_similarity(found):
    """signal-propagation.md: one vector in Post-Norm alone; DeepNorm's unrelated."""
    for width in ("narrow", "wide"):
        cosine = {
            arm: number(found[f"{arm}_cosine_{width}"])
            for arm in ("post", "pre", "sandwich", "deepnorm")
        }
        assert cosine["post"] > 0.99 > cosine["pre"] > 0.5 > abs(cosine["deepnorm"])
        assert 0.5 < cosine["sandwich"] < 0.99 and abs(cosine["deepnorm"]) < 0.05
        assert number(found[f"post_alike_{width}"]) is not None
        assert number(found[f"pre_alike_{width}"]) is None


def norm_free(found):
    """without-normalization.md: small branches ahead; large rates end plain ones."""
    assert number(found["skip_init_gap_paired"]) < 0
    assert abs(number(found["skip_init_gap_paired"])) > number(
        found["skip_init_gap_bound"]
    )
    for calm in ("rms_norm", "rms_norm_small", "skip_init", "ngpt"):
        assert found[f"{calm}_diverged"] == "0"
    assert number(found["plain_diverged"]) > 0 < number(found["dyt_one_diverged"])


def normformer_speed(found):
    """normformer.md: not sooner, at this size."""
    assert number(found["normformer_ratio_most"]) > 1
    assert found["normformer_sooner_most"] == "0"


def recipe_growth(found):
    """residual-recipes.md: which step moves a deep output as far as a shallow one."""
    for width in ("", "_narrow"):
        for arm in ("deepnorm", "pangu"):
            assert abs(number(found[f"{arm}_sgd{width}"]) - 1) < 0.1
            assert number(found[f"{arm}_signs{width}"]) > 3
        assert abs(number(found[f"complete_p_signs{width}"]) - 1) < 0.1
        assert number(found[f"complete_p_sgd{width}"]) < 0.2
        assert number(found[f"pre_sgd{width}"]) > 3
        assert number(found[f"post_sgd{width}"]) > number(found[f"pre_sgd{width}"])


def warmup_causes(found):
    """warm-up.md: a lower rate does what warm-up does; RAdam's lags at low rates."""
    assert resolved(found, "warm_up_gain_highest")
    assert number(found["warm_up_gain_highest"]) > 0.2
    assert not resolved(found, "lower_rate_less_warm_up")
    assert resolved(found, "lower_rate_gain") and number(found["lower_rate_gain"]) > 0.2
    assert abs(number(found["radam_less_lower"])) < 0.02
    assert found["post_radam_least_above"] == found["seeds"]
    assert found["post_radam_highest_below"] == found["seeds"]
    best = number(found["post_admin_best"])
    assert number(found["post_no_layers_best"]) < best < number(found["post_adam_best"])


SAID = [  # what says it, a column, two labels whose exchange it forbids
    (warmup_sensitivity, "variant", "post", "pre"),
    (warmup_sensitivity, "variant", "post", "sandwich"),
    (warmup_sensitivity, "variant", "deepnorm", "pre"),
    (init_gradients, "variant", "post", "pre"),
    (depth_limit, "placement", "post", "deepnorm"),
    (depth_limit, "placement", "pre", "deepnorm"),
    (depth_limit, "blocks", "trained", "frozen"),
    (token_similarity, "arm", "post", "pre"),
    (token_similarity, "arm", "pre", "deepnorm"),
    (norm_free, "arm", "plain", "rms_norm"),
    (norm_free, "arm", "skip_init", "dyt_one"),
    (normformer_speed, "arm", "normformer", "pre"),
    (recipe_growth, "recipe", "deepnorm", "complete_p"),
    (recipe_growth, "recipe", "post", "pre"),
    (warmup_causes, "arm", "warm_up", "adam"),
    (warmup_causes, "arm", "admin", "adam"),
    (warmup_causes, "arm", "radam", "capped"),
]
# Also a dash where a number was, or rows that give no facts: the site stops at those.
SEEN = (AssertionError, LookupError, TypeError, ValueError)
CHECKS = list(dict.fromkeys(check for check, *_ in SAID))


def facts(record: records.Record) -> dict[str, str]:
    return records.load_experiment(record.experiment).facts(record)


def exchanged(record, column: str, one: str, other: str) -> records.Record:
    label = {one: other, other: one}
    rows = [row | {column: label.get(row[column], row[column])} for row in record.rows]
    assert rows != record.rows
    return replace(record, rows=rows)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_said_in_order(check):
    check(facts(records.find(check.__name__)[0]))


@pytest.mark.parametrize(("check", "column", "one", "other"), SAID)
def test_exchanged_labels_are_seen(check, column, one, other):
    record = exchanged(records.find(check.__name__)[0], column, one, other)
    with pytest.raises(SEEN):
        check(facts(record))
