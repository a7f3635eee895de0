"""Every exhibit is rejected, by independent checks and by the habits it is under."""

from itertools import combinations

import pytest
import torch
from torch import nn

from snippets.bugs.axis import AXIS, across_heads, per_head, statistic_over_time
from snippets.bugs.formula import FORMULA, eps_hard_coded, one_plus
from snippets.bugs.gradient import GRADIENT
from snippets.bugs.habits import HABITS, Habit, show
from snippets.bugs.placement import (
    PLACEMENT,
    alpha_on_the_branch,
    deepnorm,
    pre_norm,
    residual_after_norm,
)
from snippets.bugs.precision import PRECISION, centred_first, two_moments
from snippets.bugs.soft_cap import SOFT_CAP, cap_never_applied, capped
from snippets.rms_norm.reference import rms_norm
from tests.same_results import on_views
from tests.snippets.bugs.references import REFERENCES

MUSEUM = FORMULA | AXIS | PRECISION | GRADIENT | PLACEMENT | SOFT_CAP
RIGHT = list(dict.fromkeys(right for right, _ in MUSEUM.values()))
SHAPES = ((1, 4), (7, 12), (2, 5, 20), (2, 1, 3, 32))  # heads divide d
ROUNDING = {
    torch.float64: 1e-12,
    torch.float32: 1e-5,
    torch.bfloat16: 2**-8 * 1.01,
    torch.float16: 2**-11 * 1.01,
}


def draw(shape, seed=0, dtype=torch.float64, scale=1.0, offset=0.0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(*shape, generator=generator, dtype=torch.float64)
    return (scale * x + offset).to(dtype)


def gain(d, dtype=torch.float64):
    return (0.5 + torch.rand(d, generator=torch.Generator().manual_seed(9))).to(dtype)


def close(actual, wanted, rtol, atol, what):
    gap = (actual.double() - wanted).abs() - rtol * wanted.abs() - atol
    assert not actual.isnan().any(), f"{what}: NaN"
    assert (gap <= 0).all(), f"{what}: {gap.max():.1e} too far"


def slopes(norm, x, g, eps, weights):
    x, g = x.clone().requires_grad_(), g.clone().requires_grad_()
    y = norm(x.clone(), g, eps)
    loss = (y * weights).sum() + 0 * (x.sum() + g.sum())
    return torch.autograd.grad(loss, (x, g))


def checks(reference):
    """Checks of one method, against its definition in float64."""

    def check_values(norm):
        for shape in SHAPES:
            g = gain(shape[-1])
            for scale, offset in ((1.0, 0.0), (1e-4, 0.0), (30.0, 0.0), (1.0, 5.0)):
                x = draw(shape, scale=scale, offset=offset)
                for eps in (1e-5, 1e-6, 1e-2):
                    exact = reference(x, g, eps)
                    close(norm(x.clone(), g, eps), exact, 1e-11, 1e-11, "value")

    def check_large_mean(norm):
        x, g = draw((3, 12), dtype=torch.float32, offset=3000.0), gain(12).float()
        exact = reference(x.double(), g.double(), 1e-5)
        close(norm(x.clone(), g, 1e-5), exact, 1e-3, 1e-2, "large mean")

    def check_dtypes(norm):
        for dtype, rtol in ROUNDING.items():
            for scale in (1.0, 300.0):
                x = draw((3, 5, 20), dtype=dtype, scale=scale)
                g = gain(20, dtype)
                y = norm(x.clone(), g, 1e-5)
                assert y.dtype == dtype
                # sums of two terms cancel: relative to the largest as well
                atol = 1e-6 * scale if dtype != torch.float64 else 1e-12
                exact = reference(x.double(), g.double(), 1e-5)
                close(y, exact, rtol, atol, dtype)

    def check_output_dtype(norm):
        x = draw((3, 12), dtype=torch.bfloat16)
        assert norm(x, gain(12).float(), 1e-5).dtype == torch.bfloat16

    def check_inputs_unchanged(norm):
        for dtype in ROUNDING:
            x, g = draw((3, 12), dtype=dtype), gain(12, dtype)
            before = x.clone(), g.clone()
            norm(x, g, 1e-5)
            assert torch.equal(x, before[0]), "x was overwritten"
            assert torch.equal(g, before[1]), "the gain was overwritten"

    def check_gradients(norm):
        for shape in ((2, 4), (8, 12), (2, 4, 20)):  # a power of two of tokens
            x, g, weights = draw(shape, offset=0.5), gain(shape[-1]), draw(shape, 1)
            exact = slopes(reference, x, g, 1e-3, weights)
            for ours, wanted in zip(
                slopes(norm, x, g, 1e-3, weights), exact, strict=True
            ):
                close(ours, wanted, 1e-9, 1e-9, "gradient")

    def check_gain_gradient(norm):
        low = [
            each.bfloat16() for each in (draw((256, 12)), gain(12), draw((256, 12), 1))
        ]
        ours = slopes(norm, low[0], low[1], 1e-5, low[2])[1]
        x, g, weights = (each.double() for each in low)
        exact = slopes(reference, x, g, 1e-5, weights)[1]
        close(ours, exact, ROUNDING[torch.bfloat16], 1e-3, "gain's gradient")

    check_views = on_views(draw((2, 5, 12)), gain(12), 1e-3)

    return [check for name, check in locals().items() if name.startswith("check_")]


def _each(habit: Habit, right):
    """The habit as a check: an assertion, so that a crash counts as nothing."""

    def check(norm):
        assert habit(norm, right), habit.__name__

    return check


@pytest.mark.parametrize("right", RIGHT, ids=lambda r: r.__name__)
def test_right(right):
    for check in checks(REFERENCES[right]):
        check(right)


@pytest.mark.parametrize("variant", MUSEUM, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    right, _ = MUSEUM[variant]
    suite = checks(REFERENCES[right])
    if variant.__name__ == "overwrites_input":  # autograd refuses to run it
        suite = [check for check in suite if "gradient" not in check.__name__]
    known_wrong.rejected_by(suite, variant)


@pytest.mark.parametrize("variant", MUSEUM, ids=lambda v: v.__name__)
def test_the_habit_on_the_label_rejects_it(variant):
    right, habit = MUSEUM[variant]
    check = _each(habit, right)
    check(right)
    with pytest.raises(AssertionError, match=habit.__name__):
        check(variant)


@pytest.fixture(scope="module")
def catches():
    return {
        habit.__name__: {
            wrong.__name__
            for wrong, (right, _) in MUSEUM.items()
            if not habit(wrong, right)
        }
        for habit in HABITS
    }


def test_right_versions_pass_every_habit():
    for right in RIGHT:
        for habit in HABITS:
            assert habit(right, right), (right.__name__, habit.__name__)


def test_a_smoke_test_sees_nothing_and_randn_misses_more_than_half(catches):
    assert catches["smoke"] == set()
    assert len(catches["randn"]) < len(MUSEUM) / 2


@pytest.mark.parametrize(
    ("wrong", "habit"),
    [
        ("two_moments", "large_mean"),
        ("one_plus_rounds", "one_rounding"),
        ("cast_back_forgotten", "output_dtype"),
        ("gradient_rounds", "bfloat16_gain_gradient"),
        ("strides_ignored", "views"),
    ],
)
def test_seen_by_one_habit_alone(catches, wrong, habit):
    assert [name for name in catches if wrong in catches[name]] == [habit]


def test_six_habits_are_enough_and_five_are_not(catches):
    everything = {wrong.__name__ for wrong in MUSEUM}

    def covers(size):
        groups = combinations(catches, size)
        return [g for g in groups if set().union(*map(catches.get, g)) == everything]

    assert not covers(5)
    sixth = {(set(a) - set(b)).pop() for a in covers(6) for b in covers(6) if a != b}
    assert sixth == {"faint_rows", "float64_gradients"}


def test_the_starred_lines_of_the_checklist_catch_all(catches):
    starred = {"faint_rows", "large_mean", "one_rounding", "output_dtype", "views"}
    starred.add("bfloat16_gain_gradient")
    assert set().union(*map(catches.get, starred)) == {w.__name__ for w in MUSEUM}


def test_float64_sees_epsilon_by_its_tight_tolerance():
    inputs = draw((2, 64, 32)), gain(32), draw((2, 64, 32), 1)
    for ours, right in zip(
        slopes(eps_hard_coded, *inputs[:2], 1e-5, inputs[2]),
        slopes(rms_norm, *inputs[:2], 1e-5, inputs[2]),
        strict=True,
    ):
        assert not torch.allclose(ours, right)
        assert torch.allclose(ours, right, rtol=1e-3, atol=1e-3)


def test_no_forward_habit_sees_the_two_gradient_bugs(catches):
    backward = {"float64_gradients", "bfloat16_gain_gradient"}
    for wrong in ("fast_path_only", "gradient_rounds"):
        assert {name for name in catches if wrong in catches[name]} <= backward


def test_show_prints_both_verdicts(capsys):
    show(SOFT_CAP)
    said = capsys.readouterr().out.splitlines()
    assert said == ["cap_never_applied -> capped", "  large_mean: caught -> passes"]


def test_a_later_token_moves_an_earlier_output():
    x = draw((2, 6, 8))
    changed = x.clone()
    changed[:, -1] *= 10
    g = gain(8)
    moved = statistic_over_time(changed, g, 1e-6) - statistic_over_time(x, g, 1e-6)
    assert moved[:, :-1].abs().max() > 0.5


def test_two_moments_return_nan_where_the_thread_says():
    row = torch.tensor([[40000.0, 40001.0, 40002.0, 40003.0]])
    assert two_moments(row, torch.ones(4), 1e-5).isnan().any()
    expected = nn.functional.layer_norm(row, (4,))
    torch.testing.assert_close(centred_first(row, torch.ones(4), 1e-5), expected)


def test_one_plus_rounds_where_the_thread_says():
    stored = torch.tensor([15.8125], dtype=torch.bfloat16)
    assert (1 + stored).item() == 16.75
    assert (1 + stored.float()).item() == 16.8125


def test_alpha_on_the_branch_loses_the_stream():
    x = draw((64, 32))
    ones = torch.ones(32, dtype=torch.float64)
    cosine = torch.nn.functional.cosine_similarity
    right = cosine(deepnorm(x, ones, 1e-6), x, dim=-1).mean()
    wrong = cosine(alpha_on_the_branch(x, ones, 1e-6), x, dim=-1).mean()
    assert right > wrong


def test_a_silent_branch_leaves_the_stream_alone():
    x = draw((3, 8))
    assert torch.equal(pre_norm(x, torch.zeros(8), 1e-6), x)
    assert not torch.equal(residual_after_norm(x, torch.zeros(8), 1e-6), x)


def test_cap_bounds_what_is_beyond_it():
    x = torch.tensor([[-1e4, -50.0, 0.5, 1e4]])
    assert capped(x, torch.ones(4), 0.0).abs().max() <= 50
    assert cap_never_applied(x, torch.ones(4), 0.0).abs().max() == 1e4
    close = capped(x, torch.ones(4), 0.0)[0, 2]
    assert abs(close - 0.5) < 1e-4  # small scores hide the bug


def same_as_public(norm, layer, g, x, tolerance):
    """Values and gradients of norm(x, gain) and of a public layer with that gain."""
    upstream = draw(x.shape, seed=1, dtype=x.dtype)
    ours, theirs = (x.clone().requires_grad_() for _ in range(2))
    learned = [] if g is None else [g.clone().requires_grad_()]
    y = norm(ours, *(learned or [torch.ones(x.shape[-1])]), 1e-5)
    wanted = layer(theirs)
    found = (y, *torch.autograd.grad(y, (ours, *learned), upstream))
    grads = torch.autograd.grad(wanted, (theirs, *layer.parameters()), upstream)
    for a, b in zip(found, (wanted, *grads), strict=True):
        torch.testing.assert_close(a, b, **tolerance)


def test_transformers_gemma_is_one_plus():
    from transformers.models.gemma.modeling_gemma import GemmaRMSNorm

    layer = GemmaRMSNorm(12, eps=1e-5)
    layer.weight.data = gain(12, torch.float32)
    for dtype in (torch.float32, torch.bfloat16):
        x = draw((3, 12), dtype=dtype)
        unit = 1e-6 if dtype == torch.float32 else 2**-8
        tolerance = {"rtol": unit, "atol": unit}
        same_as_public(one_plus, layer, layer.weight.detach(), x, tolerance)
        ours = one_plus(x, layer.weight.detach(), 1e-5)
        torch.testing.assert_close(ours, layer(x).detach(), rtol=1e-6, atol=1e-6)


def test_transformers_llama4_normalizes_each_head():
    from transformers.models.llama4.modeling_llama4 import Llama4TextL2Norm

    class PerHead(Llama4TextL2Norm):
        def forward(self, x):
            return super().forward(x.unflatten(-1, (4, 8))).flatten(-2)

    layer, x = PerHead(1e-5), draw((2, 5, 32), dtype=torch.float32)
    same_as_public(per_head, layer, None, x, {})
    wrong = across_heads(x, torch.ones(32), 1e-5)
    assert not torch.allclose(wrong, layer(x), atol=1e-2)


def test_transformers_minimax_normalizes_the_whole_width():
    from transformers.models.minimax_m2.modeling_minimax_m2 import MiniMaxM2RMSNorm

    layer = MiniMaxM2RMSNorm(32, eps=1e-5)
    layer.weight.data = gain(32, torch.float32)
    x = draw((2, 5, 32), dtype=torch.float32)
    same_as_public(across_heads, layer, layer.weight.detach(), x, {})


def test_transformers_llama_is_rms_norm():
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    layer = LlamaRMSNorm(12, eps=1e-5)
    layer.weight.data = gain(12, torch.float32)
    x = draw((3, 12), dtype=torch.float32)
    same_as_public(rms_norm, layer, layer.weight.detach(), x, {})
