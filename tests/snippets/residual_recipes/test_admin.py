"""Admin's block and its profiled omega, against explicit float64 formulas."""

from math import log

import pytest
import torch

from snippets.residual_recipes import admin
from snippets.residual_recipes.admin import Admin, profile
from tests.snippets.residual_recipes.pieces import (
    SHAPES,
    Bend,
    close,
    disturb,
    layer_norm,
    same_gradients,
    tokens,
)


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


BLOCK_CHECKS = [check_values_and_gradients, check_eps, check_omega]


class omega_on_the_branch(Admin):
    def forward(self, x):
        return self.norm(x + self.omega * self.branch(x))


class omega_behind_the_norm(Admin):
    def forward(self, x):
        return self.omega * self.norm(x + self.branch(x))


class omega_reaches_the_branch(Admin):
    def forward(self, x):
        return self.norm(self.omega * x + self.branch(self.omega * x))


class omega_in_pre_norm(Admin):
    def forward(self, x):
        return self.omega * x + self.branch(self.norm(x))


class one_omega_for_all_features(Admin):
    def __init__(self, branch, d, eps=1e-5):
        super().__init__(branch, d, eps)
        self.omega = torch.nn.Parameter(torch.ones(1))


WRONG_BLOCKS = [
    omega_on_the_branch,
    omega_behind_the_norm,
    omega_reaches_the_branch,
    omega_in_pre_norm,
    one_omega_for_all_features,
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


def _profiled(next_omega, update=lambda block, x: block.branch(x)):
    @torch.no_grad()
    def function(blocks, x):
        omega, found = 1.0, []
        for block in blocks:
            block.omega.fill_(omega)
            found.append(omega)
            branch = update(block, x)
            stream = omega * x
            omega = float(next_omega(omega, x, stream, branch))
            x = block.norm(stream + branch)
        return found

    return function


def _var(x):
    return x.var(correction=0)


profiled_on_the_branch_alone = _profiled(lambda o, x, s, f: _var(f) ** 0.5)
profiled_on_the_sum = _profiled(lambda o, x, s, f: _var(s + f) ** 0.5)
root_forgotten = _profiled(lambda o, x, s, f: _var(s) + _var(f))
standard_deviations_added = _profiled(
    lambda o, x, s, f: _var(s) ** 0.5 + _var(f) ** 0.5
)
omega_left_out_of_the_stream = _profiled(lambda o, x, s, f: (_var(x) + _var(f)) ** 0.5)
unbiased_variance = _profiled(lambda o, x, s, f: (s.var() + f.var()) ** 0.5)
mean_square_for_variance = _profiled(
    lambda o, x, s, f: (s.square().mean() + f.square().mean()) ** 0.5
)


@torch.no_grad()
def omega_of_the_next_block(blocks, x):
    """Writes each block the variance that includes its own update."""
    wanted = expected([*blocks, blocks[-1]], x)[1:]
    for block, omega in zip(blocks, wanted, strict=True):
        block.omega.fill_(omega)
    return wanted


@torch.no_grad()
def profiled_without_the_norm(blocks, x):
    omega, found = 1.0, []
    for block in blocks:
        block.omega.fill_(omega)
        found.append(omega)
        stream, update = omega * x, block.branch(x)
        omega = float((_var(stream) + _var(update)) ** 0.5)
        x = stream + update
    return found


WRONG_PROFILES = [
    profiled_on_the_branch_alone,
    profiled_on_the_sum,
    root_forgotten,
    standard_deviations_added,
    omega_left_out_of_the_stream,
    unbiased_variance,
    mean_square_for_variance,
    omega_of_the_next_block,
    profiled_without_the_norm,
]
for _name, _variant in list(globals().items()):
    if any(_variant is each for each in WRONG_PROFILES):
        _variant.__name__ = _name


@pytest.mark.parametrize("check", BLOCK_CHECKS, ids=lambda f: f.__name__)
def test_right(check):
    check(Admin)


@pytest.mark.parametrize("check", PROFILE_CHECKS, ids=lambda f: f.__name__)
def test_right_profile(check):
    check(profile)


@pytest.mark.parametrize("variant", WRONG_BLOCKS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(BLOCK_CHECKS, variant)


@pytest.mark.parametrize("variant", WRONG_PROFILES, ids=lambda v: v.__name__)
def test_known_wrong_profile(variant, known_wrong):
    known_wrong.rejected_by(PROFILE_CHECKS, variant)


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
