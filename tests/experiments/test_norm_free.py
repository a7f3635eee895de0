"""The experiment measures what its page says, and says it in both languages."""

from math import log

import pytest
import torch

from scripts.experiments import norm_free
from scripts.measure.corpus import corpus, loss_of
from scripts.measure.together import Together
from snippets.normalized_transformer.model import normalize_weights
from snippets.rms_norm.reference import RMSNorm
from snippets.without_normalization.reference import DynamicTanh
from snippets.without_normalization.residual import ScaledResidual
from tests.experiment_checks import check_facts, draw, plain_step, select, with_values

TINY = norm_free.SIZES["tiny"]
SEEDS = list(norm_free.SEEDS)
LENGTHS = [1, 2, 4, 8]


def test_rows(rows):
    for arm in norm_free.ARMS:
        for steps in LENGTHS if arm in norm_free.LENGTHS else LENGTHS[-1:]:
            for rate in TINY["rates"]:
                found = select(rows, arm=arm, steps=steps, rate=rate)
                assert [row["seed"] for row in found] == SEEDS
                for row in found:
                    assert row["at"] == norm_free.moments(steps)
                    assert row["at"][0] == 0 and row["at"][-1] == steps
                    assert len(row["values"]) == len(row["at"])
                    assert all(value > 1 for value in row["values"])
    (guess,) = select(rows, quantity="frequencies")
    assert 2 < guess["values"][0] < log(256)
    assert len(rows) == len(TINY["rates"]) * len(SEEDS) * (8 + 3 + 3) + 1


def test_the_start_of_a_run_does_not_depend_on_rate_or_length(rows):
    for arm in norm_free.ARMS:
        for seed in SEEDS:
            found = select(rows, arm=arm, seed=seed, quantity="held_out")
            assert len({round(row["values"][0], 4) for row in found}) == 1


@pytest.mark.parametrize("arm", norm_free.ARMS)
def test_a_run_is_that_of_a_plain_loop(arm):
    """torch's AdamW, clipping and schedule, and the snippet's own projection."""
    steps, rates = 6, [3e-2, 1e-2]
    alone = [norm_free.fresh(arm, TINY, seed).double() for seed in (0, 1)]
    generator = torch.Generator().manual_seed(5)
    texts = torch.randint(256, (steps, 2, 2, 9), generator=generator)
    stacked = Together(alone)
    seen = []
    norm_free.train(arm, stacked, texts.__getitem__, steps, rates, seen.append)
    assert seen == [1, 2, 3, 4, 5, 6]
    for run, model in enumerate(alone):
        decay = 0.0 if arm == "ngpt" else 0.1
        weights = [each for each in model.parameters() if each.ndim > 1]
        others = [each for each in model.parameters() if each.ndim < 2]
        optimizer = torch.optim.AdamW(
            [
                {"params": weights, "weight_decay": decay},
                {"params": others, "weight_decay": 0.0},
            ],
            betas=(0.9, 0.95),
        )
        for step in range(steps):
            warm = 0 if arm == "ngpt" else 1  # a tenth of six steps
            factor = 1.0 if step < warm else (steps - step) / (steps - warm)
            loss = loss_of(model, texts[step, run])
            plain_step(optimizer, loss, rates[run] * factor, clip=1.0)
            if arm == "ngpt":
                normalize_weights(model)
        for name, parameter in model.named_parameters():
            gap = (stacked.parameters[name][run] - parameter).abs().max()
            assert gap < 1e-9, name


def test_the_sphere_of_a_stack_is_that_of_each_model():
    models = [norm_free.bare("ngpt", TINY) for _ in range(3)]
    stacked = Together(models)
    norm_free.to_sphere(stacked.parameters)
    changed = 0
    for run, model in enumerate(models):
        before = {name: each.clone() for name, each in model.named_parameters()}
        normalize_weights(model)
        for name, each in model.named_parameters():
            assert torch.allclose(stacked.parameters[name][run], each, atol=1e-6)
            changed += not torch.equal(before[name], each)
    assert changed == 3 * (2 + 7 * TINY["layers"])


def test_arms_are_what_they_say():
    def modules(arm, kind):
        model = norm_free.fresh(arm, TINY, 0)
        return [each for each in model.modules() if isinstance(each, kind)]

    places = 2 * TINY["layers"]
    assert len(modules("rms_norm", RMSNorm)) == places + 1
    for arm, start in (("dyt_half", 0.5), ("dyt_one", 1.0)):
        found = modules(arm, DynamicTanh)
        assert [each.alpha.item() for each in found] == [start] * (places + 1)
    assert len(modules("rms_norm_small", RMSNorm)) == places + 1
    starts = {"skip_init": 0.5, "re_zero": 0.0, "rms_norm_small": 0.5}
    for arm, start in starts.items():
        found = modules(arm, ScaledResidual)
        assert [each.alpha.item() for each in found] == [start] * places
    for arm in norm_free.ARMS:
        norms = (len(modules(arm, kind)) for kind in (RMSNorm, DynamicTanh))
        assert any(norms) == (arm in (*norm_free.NORMED, *norm_free.DYT))

    def shapes(arm):
        model = norm_free.fresh(arm, TINY, 0)
        return sorted(tuple(p.shape) for p in model.parameters() if p.ndim > 1)

    assert all(shapes(arm) == shapes("rms_norm") for arm in norm_free.ARMS)
    one, other = (norm_free.fresh(arm, TINY, 3) for arm in ("plain", "rms_norm"))
    for name, each in one.named_parameters():  # the same matrices at the start
        assert torch.equal(each, dict(other.named_parameters())[name])
    text = torch.randint(256, (2, 9))
    silent = norm_free.fresh("re_zero", TINY, 3)
    bare = silent.head(silent.embedding(text))  # no branch is heard yet
    assert torch.allclose(silent(text), bare, atol=1e-5)


def test_data_are_the_same_for_all_arms_and_never_held_out():
    one, other = norm_free.stream("tiny", 2), norm_free.stream("tiny", 2)
    for _ in range(3):
        assert torch.equal(one(), other())
    assert not torch.equal(norm_free.stream("tiny", 1)(), norm_free.stream("tiny", 2)())
    held_out = bytes(corpus()[1].tolist())
    for text in norm_free.held_out_pieces("small").flatten(0, 1)[:5]:
        assert bytes(text.tolist()) in held_out


def made(record, value):
    """The record with held-out losses value(row), one for each moment."""
    return with_values(record, value, quantity="held_out")


def test_facts_say_what_the_rows_say(record):
    """Rows made up so that every number can be told by eye."""

    def value(row):
        end = 2.0 + 0.01 * row["seed"]
        if row["rate"] == TINY["rates"][0]:
            end += 0.5
        if row["arm"] == "dyt_one":
            end += 0.25
        if row["arm"] == "plain":
            end = None if row["seed"] == 0 else 9.0
        if row["arm"] == "re_zero" and row["rate"] == TINY["rates"][1]:
            end = None if row["seed"] < 2 else end
        halvings = {8: 0, 4: 1, 2: 2, 1: 3}[row["steps"]]
        if row["arm"] == "rms_norm":
            end += 0.1 * halvings
        if row["arm"] == "ngpt":
            end += 0.05 + 0.1 * halvings
        return [5.0] * (len(row["at"]) - 1) + [end]

    expected = {
        "seeds": "5",
        "lengths": "1, 2, 4, 8",
        "runs_per_arm": "10",
        "bytes": "128",
        "rms_norm_end": "2.02",
        "rms_norm_end_range": "[2.00, 2.04]",
        "rms_norm_gap_paired": "0.000 ± 0.000",
        "dyt_one_gap_paired": "0.250 ± 0.000",
        "dyt_one_diverged": "0",
        "plain_diverged": "10",
        "re_zero_diverged": "2",
        "first": "1",
        "half": "4",
        "ngpt_start": "5.00",
        "ngpt_after_half": "5.00",
        "shortest": "1",
        "ngpt_long_rate": "0.03",
        "ngpt_gap_long_paired": "0.050 ± 0.000",
        # 0.05 nats are half of a doubling: 8 steps do what 8 / sqrt(2) did.
        "rms_norm_steps_for_longest": "6",
        "norms_less_gap_paired": "0.000 ± 0.000",
        "at_edge": "8",
    }
    check_facts(norm_free, made(record, value), expected)


def curves(axis):
    """The lines of a panel that are no single mark."""
    return [line for line in axis.lines if len(line.get_xdata()) > 1]


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_plot(record, lang):
    figure = draw(norm_free, record, lang)
    top, middle, _ = figure.axes
    assert [len(curves(axis)) for axis in figure.axes] == [8 + 1, 8 + 1, 2]
    assert top.get_ylim() == middle.get_ylim()


def test_the_plot_marks_what_diverged(record):
    def value(row):
        end = None if row["arm"] == "plain" else 2.0
        return [5.0] * (len(row["at"]) - 1) + [end]

    figure = draw(norm_free, made(record, value), "en")
    top, middle, _ = figure.axes
    assert len(top.lines) - len(curves(top)) == len(TINY["rates"])
    assert len(middle.lines) == len(curves(middle))
