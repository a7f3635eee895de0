"""What pages say of a published record in words alone, without its numbers."""

import re

from scripts.experiments import init_gradients, qk_norm_stability
from scripts.measure import records

NUMBER = re.compile(r"[−-]?\d+(?:\.\d+)?")


def facts_of(module, name: str) -> dict[str, str]:
    path = records.RECORDS / "amd-epyc" / f"{name}.json"
    return module.facts(records.load(path))


def numbers(text: str) -> list[float]:
    return [float(n.replace("−", "-")) for n in NUMBER.findall(text)]


def test_post_norms_last_gradient_is_about_level():
    """Above 0 in every seed of the wide decoder; on both sides of 0 elsewhere."""
    found = facts_of(init_gradients, "init_gradients")
    least, most = numbers(found["post_wide_last_slope_range"])
    assert 0 < least < most < 0.25
    for name in ("post", "post_theorem", "post_theorem_wide"):
        least, most = numbers(found[f"{name}_last_slope_range"])
        assert least < 0 < most, name


def test_wide_first_gradients_are_larger_in_our_set_up_alone():
    found = facts_of(init_gradients, "init_gradients")
    assert found["post_wide_larger_most"] == found["seeds"]
    assert int(found["post_theorem_wide_larger_most"]) < int(found["seeds"]) / 2


def test_best_rates_of_attention():
    """QK-Norm not resolved; the cap just behind in every seed; QK-Clip equal."""
    found = facts_of(qk_norm_stability, "qk_norm_stability")
    gap = numbers(found["qk_norm_best_minus_plain_paired"])[0]
    assert abs(gap) < numbers(found["qk_norm_best_minus_plain_bound"])[0]
    least, most = numbers(found["soft_cap_best_minus_plain_range"])
    assert 0 < least <= most < 0.002
    assert numbers(found["qk_clip_best_minus_plain_range"]) == [0, 0]
    assert found["qk_clip_best_rate"] == found["plain_best_rate"]
