"""Attention over depth, by loops over tokens and sources in float64."""

import pytest
import torch

from snippets.residual_recipes.attention_residuals import (
    AttentionResidual,
    AttentionResidualEnd,
    DepthAttention,
)
from tests.snippets.residual_recipes.pieces import (
    Bend,
    close,
    disturb,
    rms,
    same_gradients,
    tokens,
)
from tests.wrong import suite

SHAPES = ((3, 7), (2, 3, 31), (4, 4, 4), (1, 2, 3, 9))


def sources(shape, count):
    sizes = (1.0, 5.0, 0.2, 2.0, 1.5)
    return tuple(
        tokens(shape, sizes[i], 0.1 * i, seed=i).requires_grad_() for i in range(count)
    )


def by_hand(mix, values):
    keys = [(rms(value) * mix.norm.gain * mix.query).sum(-1) for value in values]
    weights = [key.exp() for key in keys]
    total = sum(weights)
    mean = torch.zeros_like(values[0])
    for weight, value in zip(weights, values, strict=True):
        mean = mean + (weight / total).unsqueeze(-1) * value
    return mean


def check_values_and_gradients(make):
    for shape in SHAPES:
        for count in (1, 2, 4, 5):
            mix, values = disturb(make(shape[-1])), sources(shape, count)
            wanted = by_hand(mix, values)
            close(mix(values), wanted, 1e-9)
            same_gradients(
                mix(values), wanted, [*values, mix.query, mix.norm.gain], 1e-7
            )


def check_start(make):
    """With the query at zero the mean is the plain one, whatever the sizes."""
    values = sources((2, 3, 7), 4)
    mix = make(7).double()
    assert mix.query.shape == (7,)
    close(mix(values), sum(values) / 4)


def check_tokens_do_not_mix(make):
    mix, values = disturb(make(7)), sources((2, 5, 7), 3)
    changed = [value.detach().clone() for value in values]
    for value in changed:
        value[:, 3] += 2
    kept = [0, 1, 2, 4]
    close(mix(tuple(changed))[:, kept], mix(values)[:, kept])


CHECKS = [check_values_and_gradients, check_start, check_tokens_do_not_mix]


def check_block(make):
    for shape in SHAPES:
        d = shape[-1]
        blocks = [disturb(make(Bend(d, i), d), i) for i in range(3)]
        end = disturb(AttentionResidualEnd(d), 7)
        x = tokens(shape, 1.3, 0.2).requires_grad_()
        state, values = (x,), [x]
        for block in blocks:
            state = block(state)
            read = rms(by_hand(block.mix, values)) * block.norm.gain
            values.append(block.branch(read))
        assert len(state) == 4
        wanted = rms(by_hand(end.mix, values)) * end.norm.gain
        close(end(state), wanted, 1e-8)
        matrices = [block.branch.matrix for block in blocks]
        same_gradients(end(state), wanted, [x, *matrices], 1e-6)


test_right, test_known_wrong = suite(DepthAttention, CHECKS)


test_right_block, test_known_wrong_block = suite(AttentionResidual, [check_block])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_dtypes(dtype):
    mix = disturb(DepthAttention(31), dtype=dtype)
    values = tuple(tokens((2, 5, 31), seed=i, dtype=dtype) for i in range(3))
    assert mix(values).dtype == dtype
    wide = DepthAttention(31).double()
    wide.load_state_dict({k: v.double() for k, v in mix.state_dict().items()})
    wanted = wide(tuple(value.double() for value in values))
    close(mix(values), wanted, 0.05, 128 * torch.finfo(dtype).eps)
