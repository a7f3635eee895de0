"""The experiment measures what its page says, and says it in both languages."""

from math import isclose

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from scripts.experiments import recipe_growth as experiment
from tests.experiment_checks import draw, select

TINY = experiment.SIZES["tiny"]


def of(rows, recipe, layers=4, d=16, seed=3):
    (row,) = select(rows, recipe=recipe, layers=layers, d=d, seed=seed)
    return row


def test_rows(rows):
    cells = len(TINY["widths"]) * len(TINY["depths"]) * len(experiment.SEEDS)
    for recipe in experiment.RECIPES:
        found = select(rows, recipe=recipe)
        assert len(found) == cells
        for row in found:
            assert len(row["stream"]) == row["layers"] + 1
            first = (9 * row["layers"]) ** -0.25 if recipe == "t_fixup" else 1
            assert isclose(row["stream"][0], first, rel_tol=1e-3)
            assert -1 <= row["cosine"] <= 1


@pytest.mark.parametrize("recipe", ["post", "deepnorm", "admin"])
def test_a_normalized_stream_has_size_one(rows, recipe):
    assert all(isclose(s, 1, rel_tol=1e-2) for s in of(rows, recipe)["stream"])


def test_recipes_that_start_as_pre_norm(rows):
    pre = of(rows, "pre", layers=2)
    for recipe in ("gpas", "depth_mup", "complete_p"):
        for key in ("stream", "gradients", "cosine"):
            assert of(rows, recipe, layers=2)[key] == pytest.approx(pre[key])
    for seed in experiment.SEEDS:
        assert of(rows, "gpas", seed=seed)["stream"] == pytest.approx(
            of(rows, "pre", seed=seed)["stream"]
        )


def test_rezero_starts_as_the_identity(rows):
    row = of(rows, "rezero")
    assert row["share"] == 0 and row["gradients"] == [0, 0]
    assert row["changes"][:2] == [0, 0] and min(row["changes"][2:]) > 0


def test_t_fixup_scales_its_embeddings_alone():
    """Without a norm the stream is another one; the branches are the same draws."""
    arms = ("t_fixup", "t_fixup_unscaled")
    models = [experiment.fresh(arm, 2, 16, TINY, 3) for arm in arms]
    (scaled, x, _), (whole, wide, _) = models
    assert torch.allclose(x, wide * (9 * 2) ** -0.25)
    for a, b in zip(scaled.parameters(), whole.parameters(), strict=True):
        assert torch.equal(a, b)


def test_residual_sums_what_post_norm_updates(rows):
    """The same first layer as Post-Norm's, whose stream is normalized away."""
    model, x, _ = experiment.fresh("residual", 2, 16, TINY, 3)
    block = model["blocks"][0]
    wanted = x + block.branch(x)
    _, total = block((x, x))
    assert torch.allclose(total, wanted)


@pytest.mark.parametrize("recipe", experiment.RECIPES)
def test_changes_are_the_derivative_along_the_step(recipe):
    """The derivative is linear in the upstream gradient: differentiate that."""
    model, x, target = experiment.fresh(recipe, 2, 8, TINY, 1)
    row = experiment.run(recipe, 2, 8, TINY, 1)
    learned = [p for p in model.parameters() if p.requires_grad]
    with sdpa_kernel(SDPBackend.MATH):
        y = experiment.output(model, recipe, x)
        loss = (y * target).sum(dim=-1).mean()
        slopes = torch.autograd.grad(loss, learned, retain_graph=True)
        upstream = torch.ones_like(y).requires_grad_()
        pulled = torch.autograd.grad(y, learned, upstream, create_graph=True)
        for at, steps in ((2, slopes), (3, [slope.sign() for slope in slopes])):
            product = sum((a * b).sum() for a, b in zip(pulled, steps, strict=True))
            (change,) = torch.autograd.grad(product, upstream, retain_graph=True)
            assert row["changes"][at] == pytest.approx(experiment.rms(change), rel=1e-3)


def test_token_cosine():
    x = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]])
    assert isclose(experiment.token_cosine(x), 1 / 3, rel_tol=1e-6)


def test_exponent():
    sizes = [1.0] + [3 * layer**0.5 for layer in range(1, 65)]
    assert isclose(experiment._exponent(sizes), 0.5)


def test_factors_read_well():
    found = [experiment._factor(v) for v in (0, 1e-9, 0.04, 1.284, 12.34, 345.6)]
    assert found == ["0", "1e-09", "0.04", "1.28", "12.3", "346"]


@pytest.mark.parametrize("language", ["zh", "en"])
def test_plot(record, language):
    figure = draw(experiment, record, language)
    (axis,) = figure.axes
    assert len(axis.get_yticks()) == len(experiment.RECIPES)
