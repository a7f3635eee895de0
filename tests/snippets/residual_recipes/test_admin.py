"""Admin's block and its profiled omega, against explicit float64 formulas."""

from math import log

import pytest
import torch

from snippets.residual_recipes import admin
from snippets.residual_recipes.admin import Admin, profile
from tests.same_results import of_module
from tests.snippets.residual_recipes.pieces import (
    SHAPES,
    Bend,
    close,
    disturb,
    layer_norm,
    same_gradients,
    tokens,
)
from tests.wrong import suite


def check_values_and_gradients(make):
    for shape in SHAPES:
        for scale, offset in ((1, 0), (0.1, 2), (3, -1)):
            made = disturb(make(Bend(shape[-1]), shape[-1]))
            x = tokens(shape, scale, offset).requires_grad_()
            wanted = layer_norm(made.omega * x + made.branch(x), made.norm)
            close(made(x.clone()), wanted)
            same_gradients(made(x), wanted, [x, made.omega, made.norm.weight])


def check_eps(make):
    made, x = disturb(make(Bend(9), 9, 0.5)), tokens((4, 9), 0.1)
    wanted = layer_norm(made.omega * x + made.branch(x), made.norm, 0.5)
    close(made(x), wanted)


def check_omega(make):
    made = make(Bend(5), 5)
    names = {name for name, _ in made.named_parameters()}
    assert names == {"branch.matrix", "norm.weight", "norm.bias", "omega"}, names
    assert made.omega.shape == (5,)
    assert torch.equal(made.omega.detach(), torch.ones(5))


BLOCK_CHECKS = [
    check_values_and_gradients,
    check_eps,
    check_omega,
    *of_module(lambda make: disturb(make(Bend(7), 7)), tokens((2, 3, 7))),
]


def stack(d=6, count=5):
    blocks = [disturb(Admin(Bend(d, seed), d), seed) for seed in range(count)]
    return blocks, tokens((3, 4, d), 1.7, 0.4)


@torch.no_grad()
def expected(blocks, x):
    """The root of Var(ω x) + Var(f) of the block before, population variance."""
    omegas = [1.0]
    for block in blocks:
        stream, update = omegas[-1] * x, block.branch(x)
        total = 0.0
        for part in (stream, update):
            total += float(((part - part.mean()) ** 2).mean())
        omegas.append(total**0.5)
        x = layer_norm(stream + update, block.norm)
    return omegas[:-1]


def check_profile(function):
    blocks, x = stack()
    wanted = expected(blocks, x)
    before = x.clone()
    found = function(blocks, x)
    assert found == pytest.approx(wanted, rel=1e-9), (found, wanted)
    assert torch.equal(x, before)
    for block, omega in zip(blocks, wanted, strict=True):
        assert isinstance(block.omega, torch.nn.Parameter)
        assert block.omega.requires_grad
        close(block.omega, torch.full_like(block.omega, omega), 1e-9)


def check_only_omega_changes(function):
    blocks, x = stack()
    held = [{k: v.clone() for k, v in block.state_dict().items()} for block in blocks]
    function(blocks, x)
    for block, before in zip(blocks, held, strict=True):
        for name, value in block.state_dict().items():
            assert name == "omega" or torch.equal(value, before[name]), name


PROFILE_CHECKS = [check_profile, check_only_omega_changes]


test_right, test_known_wrong = suite(Admin, BLOCK_CHECKS)


test_right_profile, test_known_wrong_profile = suite(profile, PROFILE_CHECKS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_dtypes(dtype):
    made = disturb(Admin(Bend(31), 31), dtype=dtype)
    x = tokens((2, 5, 31), dtype=dtype)
    assert made(x).dtype == dtype
    wide = Admin(Bend(31), 31).double()
    wide.load_state_dict({k: v.double() for k, v in made.state_dict().items()})
    close(made(x), wide(x.double()), 0.05, 32 * torch.finfo(dtype).eps)
    omegas = profile([made], x)
    assert omegas == [1.0] and made.omega.dtype == dtype


def test_branches_of_one_variance_make_the_root():
    """Var f = v and a normalized stream: ω² = 1 + v (i - 1)."""

    class Fixed(torch.nn.Module):
        def forward(self, x):
            y = torch.randn(x.shape, dtype=x.dtype)
            return 0.5 * (y - y.mean()) / y.std(correction=0)

    torch.manual_seed(0)
    blocks = [Admin(Fixed(), 64).double() for _ in range(20)]
    x = torch.nn.functional.layer_norm(tokens((4, 64)), (64,), eps=0.0)
    found = profile(blocks, x)
    assert found == pytest.approx([(1 + 0.25 * i) ** 0.5 for i in range(20)], rel=1e-4)


def test_constant_of_admin_torch():
    """The page's constant is `calculate_init` of admin-torch, default scale."""
    n = 192
    assert ((n + 1) / log(n + 1) - 1) ** 0.5 == pytest.approx(5.97, abs=0.01)
    assert admin.Admin is Admin
