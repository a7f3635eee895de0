"""Sub-LN and its gains, against an explicit formula and torchscale's code."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from snippets.deepnorm.block import Attention, FeedForward, initialize
from snippets.residual_recipes.magneto import NormedLinear, magneto_gains, sub_ln
from tests.snippets.residual_recipes.pieces import (
    close,
    disturb,
    layer_norm,
    same_gradients,
    tokens,
)

STACKS = [(1, 0), (6, 0), (0, 1), (0, 7), (0, 1000), (1, 1), (6, 18), (18, 6)]


def built(function, kind, *args):
    branch = function(kind(*args))
    assert branch is not None
    with torch.no_grad():
        generator = torch.Generator().manual_seed(3)
        for parameter in branch.parameters():
            if parameter.dim() == 2:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) / 3)
    return disturb(branch)


def normed(layer, fan_in):
    assert isinstance(layer, NormedLinear), layer
    assert layer.norm.weight.shape == (fan_in,)
    return layer


def network(branch, x):
    normed(branch.down, branch.down.in_features)
    hidden = torch.relu(x @ branch.up.weight.T)
    return layer_norm(hidden, branch.down.norm) @ branch.down.weight.T


def attention(branch, x):
    q, k, v = (
        (x @ layer.weight.T).unflatten(-1, (branch.heads, -1)).transpose(1, 2)
        for layer in (branch.query, branch.key, branch.value)
    )
    normed(branch.output, branch.output.in_features)
    logits = q @ k.mT / q.shape[-1] ** 0.5
    later = torch.ones(logits.shape[-2:]).triu(1).bool()
    weights = logits.masked_fill(later, -torch.inf).softmax(-1)
    y = (weights @ v).transpose(1, 2).flatten(start_dim=2)
    return layer_norm(y, branch.output.norm) @ branch.output.weight.T


def check_network(function):
    for shape in ((2, 3, 5), (1, 1, 7), (3, 4, 9)):
        branch = built(function, FeedForward, shape[-1])
        x = tokens(shape, 1.3, 0.2).requires_grad_()
        close(branch(x), network(branch, x))
        same_gradients(branch(x), network(branch, x), [x, *branch.parameters()])


def check_attention(function):
    for shape, heads in (((2, 3, 6), 2), ((1, 5, 9), 3), ((2, 1, 4), 1)):
        branch = built(function, Attention, shape[-1], heads)
        x = tokens(shape, 1.3, 0.2).requires_grad_()
        close(branch(x), attention(branch, x), 1e-8)
        same_gradients(branch(x), attention(branch, x), [x, *branch.parameters()])


def check_names_that_are_drawn(function):
    for branch in (function(FeedForward(64)), function(Attention(64, 4))):
        torch.manual_seed(0)
        initialize(branch, 3.0)
        for name, layer in branch.named_children():
            wanted = 3.0 * (2 / sum(layer.weight.shape)) ** 0.5
            if name in ("query", "key"):
                wanted /= 3
            std = float(layer.weight.detach().std())
            assert abs(std / wanted - 1) < 0.05, (name, std, wanted)


CHECKS = [check_network, check_attention, check_names_that_are_drawn]


def _replaced(make, names=("output", "down")):
    def function(branch):
        for name, layer in list(branch.named_children()):
            if name in names:
                setattr(branch, name, make(layer.in_features, layer.out_features))
        return branch

    return function


class _Behind(NormedLinear):
    def __init__(self, fan_in, fan_out):
        super().__init__(fan_in, fan_out)
        self.norm = nn.LayerNorm(fan_out)

    def forward(self, x):
        return self.norm(F.linear(x, self.weight))


class _Detached(NormedLinear):
    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        std = (x.var(-1, correction=0, keepdim=True) + 1e-5).sqrt().detach()
        return F.linear(self.norm.weight * centred / std + self.norm.bias, self.weight)


class _Root(NormedLinear):
    def __init__(self, fan_in, fan_out):
        super().__init__(fan_in, fan_out)
        self.norm = nn.LayerNorm(fan_in)
        self.rms = nn.RMSNorm(fan_in)

    def forward(self, x):
        return F.linear(self.norm.weight * self.rms(x), self.weight)


norm_behind_the_last_matrix = _replaced(_Behind)
statistics_detached = _replaced(_Detached)
rms_norm_inside = _replaced(_Root)
norm_in_front_of_the_first_matrix = _replaced(NormedLinear, ("value", "up"))
attention_forgotten = _replaced(NormedLinear, ("down",))
network_forgotten = _replaced(NormedLinear, ("output",))


def inner_norm_missing(branch):
    return branch


def norm_on_queries_and_keys_too(branch):
    return _replaced(NormedLinear, ("output", "down", "query", "key"))(branch)


WRONG = [
    norm_behind_the_last_matrix,
    statistics_detached,
    rms_norm_inside,
    norm_in_front_of_the_first_matrix,
    attention_forgotten,
    network_forgotten,
    inner_norm_missing,
    norm_on_queries_and_keys_too,
]


def torchscale(n, m):
    """As torchscale's encoder.py and decoder.py write it."""
    if n and m:
        encoder = math.sqrt(math.log(3 * m) * math.log(2 * n) / 3)
        return {"encoder": encoder, "decoder": math.sqrt(math.log(m * 3))}
    return {"encoder" if n else "decoder": math.sqrt(math.log((n or m) * 2))}


def check_gains(function):
    for n, m in STACKS:
        assert function(n, m) == pytest.approx(torchscale(n, m)), (n, m)


def _each(change):
    def function(encoder_layers=0, decoder_layers=0):
        gains = magneto_gains(encoder_layers, decoder_layers)
        return {
            k: change(gain, encoder_layers, decoder_layers) for k, gain in gains.items()
        }

    return function


root_of_log_n = _each(lambda g, n, m: g if n and m else math.log(n or m) ** 0.5)
log_without_the_root = _each(lambda g, n, m: g**2)
one_over_the_gain = _each(lambda g, n, m: 1 / g)
log_of_sublayers = _each(
    lambda g, n, m: g if n and m else math.log(4 * (n or m)) ** 0.5
)
log_to_base_two = _each(lambda g, n, m: g / math.log(2) ** 0.5)
deepnorm_beta = _each(lambda g, n, m: (8 * (n or m)) ** -0.25)


def cross_attention_forgotten(encoder_layers=0, decoder_layers=0):
    n, m = encoder_layers, decoder_layers
    return {
        k: math.log(2 * v) ** 0.5 for k, v in {"encoder": n, "decoder": m}.items() if v
    }


WRONG_GAINS = [
    root_of_log_n,
    log_without_the_root,
    one_over_the_gain,
    log_of_sublayers,
    log_to_base_two,
    deepnorm_beta,
    cross_attention_forgotten,
]
for _name, _variant in list(globals().items()):
    if any(_variant is each for each in WRONG + WRONG_GAINS):
        _variant.__name__ = _name


@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__)
def test_right(check):
    check(sub_ln)


def test_right_gains():
    check_gains(magneto_gains)


@pytest.mark.parametrize("variant", WRONG, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


@pytest.mark.parametrize("variant", WRONG_GAINS, ids=lambda v: v.__name__)
def test_known_wrong_gains(variant, known_wrong):
    known_wrong.rejected_by([check_gains], variant)


@pytest.mark.parametrize("layers", [(0, 0), (-1, 0), (3, -1)])
def test_no_layers(layers):
    with pytest.raises(ValueError, match="layers"):
        magneto_gains(*layers)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_dtypes(dtype):
    layer = disturb(NormedLinear(31, 7), dtype=dtype)
    x = tokens((2, 5, 31), dtype=dtype)
    assert layer(x).dtype == dtype
    wide = NormedLinear(31, 7).double()
    wide.load_state_dict({k: v.double() for k, v in layer.state_dict().items()})
    close(layer(x), wide(x.double()), 0.05, 64 * torch.finfo(dtype).eps)


def test_the_gain_of_the_last_matrix_is_all_that_sets_an_update_at_first():
    """The inner norm divides the first matrix's gain out again (ReLU)."""
    x = tokens((2, 5, 16))
    outs = []
    for gain in (1.0, 3.0):
        torch.manual_seed(0)
        branch = sub_ln(FeedForward(16)).double()
        initialize(branch, gain)
        outs.append(branch(x))
    close(outs[1], 3 * outs[0], 1e-3)
