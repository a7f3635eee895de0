"""What pages say of a published record in words alone, without its numbers."""

import re
from statistics import median

from scripts.experiments import (
    attention_control,
    depth_limit,
    init_gradients,
    norm_free,
    norm_free_control,
    normformer_speed,
    qk_norm_stability,
    residual_growth,
    warmup_sensitivity,
)
from scripts.measure import records
from scripts.measure.design import chosen
from scripts.measure.fact_formatting import gap
from scripts.measure.spread import paired, student

NUMBER = re.compile(r"[−-]?\d+(?:\.\d+)?")


def facts_of(module, name: str) -> dict[str, str]:
    return module.facts(records.find(name)[0])  # the record that leads the pages


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


def test_attention_at_rising_rates():
    """Who learns how far up, who ends above which control; one best rate for all."""
    found = facts_of(attention_control, "attention_control")
    arms = attention_control.ARMS
    assert len({found[f"{arm}_best_rate"] for arm in arms}) == 1
    assert float(found["rate_tenfold"]) == 10 * float(found["plain_best_rate"])
    learned = {arm: float(found[f"{arm}_greatest_learned"]) for arm in arms}
    assert learned["plain"] < learned["soft_cap"] < learned["qk_clip"]
    assert learned["qk_norm"] == float(found["rate_highest"]) > learned["qk_clip"]
    frozen = numbers(found["frozen_best_loss_range"])
    plain = numbers(found["plain_loss_tenfold_range"])
    assert plain[0] < frozen[0] and plain[1] > frozen[1]
    without = numbers(found["no_layers_best_loss_range"])
    assert numbers(found["plain_loss_thirtyfold_range"])[0] > without[1]
    assert float(found["frozen_scores_greatest_learned"]) == float(
        found["rate_thirtyfold"]
    )
    assert {found[f"{arm}_not_finite"] for arm in arms} == {"0"}
    assert numbers(found["clipped_best"]) == [0]
    entropies = [float(found[f"{arm}_entropy_tenfold"]) for arm in ("qk_clip", "plain")]
    assert entropies == sorted(entropies)
    for word in ("tenfold", "thirtyfold"):
        losses = {arm: numbers(found[f"{arm}_loss_{word}"])[0] for arm in arms}
        assert min(losses, key=losses.get) == "qk_norm"


def test_one_of_three_differences_at_the_best_rate_is_resolved():
    record = records.find("attention_control")[0]
    best = float(attention_control.facts(record)["plain_best_rate"])

    def ends(arm):
        rows = record.select(quantity="loss", arm=arm, rate=best)
        return [row["values"][-1] for row in rows]

    gaps = {arm: paired(ends(arm), ends("plain")) for arm in attention_control.ARMS}
    assert [arm for arm, gap in gaps.items() if gap.resolved] == ["qk_norm"]
    assert gaps["qk_norm"].mean < 0


def test_at_the_highest_rate_every_run_is_worse_than_guessing_on_its_way():
    record = records.find("attention_control")[0]
    guessing = float(attention_control.facts(record)["frequency_loss"])
    for arm in attention_control.ARMS:
        for row in record.select(quantity="loss", arm=arm, rate=1.0):
            least = min(range(len(row["values"])), key=row["values"].__getitem__)
            below = next(i for i, v in enumerate(row["values"]) if v < guessing)
            assert max(row["values"][below:least]) > guessing, (arm, row["seed"])
            assert row["values"][-1] < guessing


def verdicts(name: str, module, arm: str, other: str) -> dict:
    """{(cell, rate): the paired difference of arm less other} of a record."""
    runs = module.DESIGN.read(records.find(name)[0])
    losses: dict[tuple, dict] = {}
    for run in runs:
        losses.setdefault((run.arm, run.cell, run.rate), {})[run.seed] = run.loss
    return {
        (cell, rate): gap(
            [mine[seed] for seed in sorted(mine)],
            [losses[other, cell, rate][seed] for seed in sorted(mine)],
        )
        for (each, cell, rate), mine in losses.items()
        if each == arm and None not in mine.values()
    }


def test_of_small_branches_without_norms_re_zero_alone_is_resolved_above():
    """without-normalization.md: and not if one allows for the five comparisons."""
    level = 1 - 0.05 / 5
    at_best = {}
    for arm in ("skip_init", "re_zero", "dyt_half", "rms_norm_small"):
        found = verdicts("norm_free_control", norm_free_control, arm, "rms_norm")
        at_best[arm] = found[(), 0.01]
    above = {arm for arm, g in at_best.items() if g.resolved and g.mean > 0}
    assert above == {"re_zero", "dyt_half"}
    assert at_best["skip_init"].mean > 0  # it does not end below, either
    surely = {
        arm
        for arm, g in at_best.items()
        if abs(g.mean) > student(g.n - 1, level) * g.error
    }
    assert surely == {"dyt_half"}


def test_post_norm_with_few_layers_is_not_resolved_from_pre_norm():
    """curse-of-depth.md: each at its best rate, which is the same."""
    found = verdicts("residual_growth", residual_growth, "post", "pre")
    assert not found[(4,), 0.01].resolved


def test_an_upper_half_of_twelve_layers_costs_more_than_its_layers_one_by_one():
    """placement-and-depth: in every run; not so in all with four Post-Norm layers."""
    record = records.find("residual_growth")[0]

    def more(layers: int, arm: str) -> list[bool]:
        found = []
        for row in record.select(
            quantity="loss", stage="after", layers=layers, arm=arm
        ):
            same = {name: row[name] for name in ("arm", "layers", "rate", "seed")}
            (half,), (single,) = (
                record.select(quantity=name, stage="after", **same)
                for name in ("without_upper_half", "without_layer")
            )
            costs = [loss - row["values"][0] for loss in single["values"]]
            at_once = half["values"][0] - row["values"][0]
            found.append(at_once > sum(costs[layers // 2 :]))
        return found

    for arm in residual_growth.ARMS:
        runs = more(12, arm)
        assert len(runs) == 20 and all(runs), arm
    assert not all(more(4, "post"))


def test_differences_of_scaling_that_are_only_just_resolved():
    just = {("scaling", 0.0025), ("small_writers", 0.04)}
    for arm in ("scaling", "small_writers"):
        found = verdicts("residual_growth", residual_growth, arm, "pre")
        for (cell, rate), each in found.items():
            sure = abs(each.mean) > 1.5 * student(each.n - 1) * each.error
            if cell == (12,) and each.resolved:
                assert sure == ((arm, rate) not in just), (arm, rate)


def test_the_inner_norm_alone_ends_below_pre_ln_at_the_lowest_rate():
    found = verdicts("normformer_speed", normformer_speed, "inner_norm", "pre")
    below = {rate for (_, rate), g in found.items() if g.resolved and g.mean < 0}
    assert below == {0.002}


def test_verdicts_of_depth_that_hold_together():
    """deepnorm.md: DeepNorm's below the deepest that trains, and the sandwich's."""
    record = records.find("depth_limit")[0]
    runs = depth_limit.DESIGN.read(record)
    losses: dict[tuple, dict] = {}
    for run in runs:
        losses.setdefault((run.arm, run.cell), {}).setdefault(run.rate, []).append(
            run.loss
        )
    best = {at: by[rate] for at, by in losses.items() if (rate := chosen(runs)[at])}
    stacks = [(arm, cell) for arm, cell in best if arm in depth_limit.ARMS]
    level = 1 - 0.05 / len(stacks)
    hold = set()
    for arm, cell in stacks:
        controls = (best[f"frozen_{arm}", cell], best["normed", None])
        gaps = [gap(best[arm, cell], control) for control in controls]
        if all(g.mean < -student(g.n - 1, level) * g.error for g in gaps):
            hold.add((arm, *cell))
    found = depth_limit.facts(record)
    most = int(found["deepnorm_trains_up_to"])
    below = [int(n) for n in found["depths"].split(", ") if int(n) < most]
    assert hold == {("deepnorm", n) for n in below} | {
        ("sandwich", int(found["sandwich_trains_at"]))
    }


def test_plain_attention_is_near_three_after_a_third_of_the_steps():
    """qk-clip.md: at a rate of 0.3 it hardly moves from there until near the end."""
    record = records.find("qk_norm_stability")[0]
    for row in record.select(quantity="loss", arm="plain", rate=0.3):
        looks = row["values"]
        after = looks[len(looks) // 3 : -1]
        assert looks[1] > 3.5 and 2.9 <= min(after) <= max(after) < 3.3


def test_post_norms_first_and_last_gradients_of_fresh_decoders():
    """placement-and-depth: similar up to 12 layers; from 24 on narrow ones scatter."""
    record = records.find("init_gradients")[0]

    def ratios(layers: int, d: int) -> list[float]:
        rows = record.select(
            variant="post",
            setting="decoder",
            layers=layers,
            d=d,
            quantity="ffn_out",
            dtype="float64",
        )
        return [row["values"][0] / row["values"][-1] for row in rows]

    for layers in (6, 12):
        for d in (64, 256):
            assert all(0.67 < ratio < 1.5 for ratio in ratios(layers, d))
    for layers in (24, 48, 96):
        narrow, wide = ratios(layers, 64), ratios(layers, 256)
        assert max(narrow) > 2.5 * min(narrow) and min(narrow) < 1
        assert sum(ratio > 1 for ratio in wide) > len(wide) / 2


def test_skip_init_is_lowest_in_the_second_half():
    """The alternative text of norm_free: by median, each at its best rate."""
    record = records.find("norm_free")[0]
    runs = norm_free.DESIGN.read(record)
    steps = max(row["steps"] for row in record.rows if row["steps"])
    medians = {}
    for (arm, cell), rate in chosen(runs).items():
        if cell == (steps,):
            rows = record.select(quantity="held_out", arm=arm, rate=rate, steps=steps)
            looks = zip(*(row["values"] for row in rows), strict=True)
            medians[arm] = [median(look) for look in looks]
    late = [at * 2 >= steps for at in rows[0]["at"]]
    lowest = [min(medians, key=lambda arm: medians[arm][i]) for i in range(len(late))]
    assert {arm for arm, is_late in zip(lowest, late, strict=True) if is_late} == {
        "skip_init"
    }


def test_warm_up_frees_deep_post_norm_at_low_rates_too():
    """warm-up.md: fewer are stuck with it at the two least rates of twelve layers."""
    record = records.find("warmup_sensitivity")[0]
    found = warmup_sensitivity.facts(record)
    losses: dict[tuple, list] = {}
    for run in warmup_sensitivity.DESIGN.read(record):
        if run.arm == "post":
            losses.setdefault((run.cell, run.rate), []).append(run.loss)
    mark = numbers(found["frequencies"])[0] - numbers(found["margin"])[0]

    def stuck(warm: float, rate: float) -> int:
        return sum(loss > mark for loss in losses[(12, warm), rate])

    least, next_least, *_, most = sorted({rate for _, rate in losses})
    for rate in (least, next_least):
        assert stuck(0.0, rate) > stuck(0.5, rate) == 0
    assert stuck(0.0, most) == stuck(0.5, most) == len(losses[(12, 0.5), most])
