"""Sub-LN and its gains, against an explicit formula and torchscale's code."""

import math

import pytest
import torch

from snippets.deepnorm.block import Attention, FeedForward, initialize
from snippets.residual_recipes.magneto import NormedLinear, magneto_gains, sub_ln
from tests.snippets.residual_recipes.pieces import (
    close,
    disturb,
    layer_norm,
    same_gradients,
    tokens,
)
from tests.wrong import suite

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


def torchscale(n, m):
    """As torchscale's encoder.py and decoder.py write it."""
    if n and m:
        encoder = math.sqrt(math.log(3 * m) * math.log(2 * n) / 3)
        return {"encoder": encoder, "decoder": math.sqrt(math.log(m * 3))}
    return {"encoder" if n else "decoder": math.sqrt(math.log((n or m) * 2))}


def check_gains(function):
    for n, m in STACKS:
        assert function(n, m) == pytest.approx(torchscale(n, m)), (n, m)


test_right, test_known_wrong = suite(sub_ln, CHECKS)
test_right_gains, test_known_wrong_gains = suite(magneto_gains, [check_gains])


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
