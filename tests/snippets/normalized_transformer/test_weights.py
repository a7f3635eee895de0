"""normalize_weights, Scale, the model, and the geometry that the page states."""

from math import exp, log

import pytest
import torch

from snippets.normalized_transformer.model import (
    NormalizedTransformer,
    normalize_weights,
)
from snippets.normalized_transformer.scale import Scale
from snippets.normalized_transformer.sphere import slerp, step_towards, unit
from tests.snippets.normalized_transformer.float64 import (
    assert_close,
    direction,
    layer,
    states,
    values,
)
from tests.wrong import suite

WRITING = ("attention_out", "feed_forward_out")


def model(seed=0):
    torch.manual_seed(seed)
    made = NormalizedTransformer(11, d=6, layers=2, heads=3, inner=7).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(1 + torch.rand_like(parameter))
    return made


# The weights -----------------------------------------------------------------


def check_vectors(normalize):
    made = model()
    before = {n: p.detach().clone() for n, p in made.named_parameters()}
    normalize(made)
    after = dict(made.named_parameters())
    for name, old in before.items():
        short = name.split(".")[-2]
        if old.ndim == 1:
            assert torch.equal(after[name], old), f"{name} has changed"
        elif short in WRITING:
            assert_close(after[name], direction(old.T).T, 1e-12, what=name)
        else:
            assert_close(after[name], direction(old), 1e-12, what=name)


def check_in_place(normalize):
    made = model()
    kept = [(p, p.data_ptr()) for p in made.parameters()]
    normalize(made)
    for (old, place), new in zip(kept, made.parameters(), strict=True):
        assert new is old and new.data_ptr() == place, "a parameter was replaced"
        assert new.requires_grad and new.grad_fn is None, "in the graph"


def check_twice_is_once(normalize):
    made = model()
    normalize(made)
    before = [p.detach().clone() for p in made.parameters()]
    normalize(made)
    for old, new in zip(before, made.parameters(), strict=True):
        assert_close(new, old, 1e-13)


CHECKS = [check_vectors, check_in_place, check_twice_is_once]


test_right, test_known_wrong = suite(normalize_weights, CHECKS)


# The model -------------------------------------------------------------------


def test_model_is_layers_between_unit_embeddings():
    made = model()
    normalize_weights(made)
    tokens = torch.tensor([[1, 10, 3, 3, 0], [7, 7, 2, 5, 4]])
    h = made.token.weight[tokens]
    for block in made.blocks:
        h = layer(h, values(block))
    s = made.s_z.stored * made.s_z.factor
    logits = made(tokens)
    assert_close(logits, s * (h @ made.head.weight.T), 1e-9, 1e-12)
    assert bool((logits.abs() <= s.abs() + 1e-12).all())


def test_loss_floor():
    """No logits within ± s give the right token more than the page says."""
    for vocabulary, s in ((256, 1.0), (17, 2.5)):
        logits = torch.full((vocabulary,), -s, dtype=torch.float64)
        logits[3] = s
        best = -logits.log_softmax(-1)[3]
        assert abs(float(best) - log(1 + (vocabulary - 1) * exp(-2 * s))) < 1e-12
        noise = torch.Generator().manual_seed(0)
        others = s * (2 * torch.rand(200, vocabulary, generator=noise) - 1).double()
        assert bool((-others.log_softmax(-1)[:, 3] >= best).all())


def test_scale():
    vector = Scale(5, init=0.05, scale=0.25)
    assert_close(vector(), torch.full((5,), 0.05), 1e-6)
    assert_close(vector.stored, torch.full((5,), 0.25), 1e-6)
    vector().sum().backward()
    assert_close(vector.stored.grad, torch.full((5,), 0.2), 1e-6)


# The sphere ------------------------------------------------------------------


def angle(a, b):
    return 2 * torch.asin((a - b).norm(dim=-1) / 2)


@pytest.mark.parametrize("d", (2, 3, 31))
def test_step_stays_on_the_arc_and_slerp_divides_it(d):
    h, target = states((5, d)), states((5, d), seed=2)
    whole = angle(h, target)
    for share in (0.05, 0.3, 0.9):
        step, exact = step_towards(h, target, share), slerp(h, target, share)
        assert_close(step.norm(dim=-1), torch.ones(5).double(), 1e-12)
        assert_close(exact.norm(dim=-1), torch.ones(5).double(), 1e-9)
        assert_close(angle(h, step) + angle(step, target), whole, 1e-7)
        assert_close(angle(h, exact), share * whole, 1e-7)


def test_small_steps_move_by_alpha_sine():
    h, target = states((5, 31)), states((5, 31), seed=2)
    sine = torch.sin(angle(h, target))
    for alpha in (1e-3, 1e-4):
        moved = angle(h, step_towards(h, target, alpha))
        assert_close(moved, alpha * sine, 2 * alpha)


def test_uneven_alpha_leaves_the_arc():
    h, target = states((31,)), states((31,), seed=2)
    alpha = torch.linspace(0, 1, 31).double()
    step = step_towards(h, target, alpha)
    assert float(angle(h, step) + angle(step, target) - angle(h, target)) > 0.05


def test_unit_takes_any_dimension():
    x = states((3, 4, 5)) * 7
    for dim in (0, 1, 2, -1):
        y = unit(x, dim)
        assert_close(y.norm(dim=dim), torch.ones_like(y.norm(dim=dim)), 1e-12)
