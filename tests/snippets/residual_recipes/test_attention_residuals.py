"""Attention over depth, by loops over tokens and sources in float64."""

import pytest
import torch
from torch import nn

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


def _mix(logits_of=None, dim=0, values_of=None, weights_of=None):
    class Changed(DepthAttention):
        def forward(self, sources):
            values = torch.stack(sources)
            normed = self.norm(values)
            logits = logits_of(self, values) if logits_of else normed @ self.query
            weights = weights_of(logits) if weights_of else logits.softmax(dim)
            if values_of:
                values = values_of(self, values)
            return (weights.unsqueeze(-1) * values).sum(0)

    return Changed


softmax_over_tokens = _mix(dim=-1)
softmax_over_the_batch = _mix(dim=1)
softmax_over_all_entries = _mix(
    weights_of=lambda logits: logits.flatten().softmax(0).view_as(logits)
)
values_normalized = _mix(values_of=lambda s, v: s.norm(v))
keys_not_normalized = _mix(logits_of=lambda s, v: v @ s.query)
sigmoid_for_softmax = _mix(weights_of=torch.sigmoid)
logits_over_root_d = _mix(
    logits_of=lambda s, v: s.norm(v) @ s.query / v.shape[-1] ** 0.5
)
sum_for_mean = _mix(weights_of=lambda logits: logits.softmax(0) * len(logits))
weights_detached = _mix(weights_of=lambda logits: logits.softmax(0).detach())


class random_query(DepthAttention):
    def __init__(self, d):
        super().__init__(d)
        nn.init.normal_(self.query)


WRONG = [
    softmax_over_tokens,
    softmax_over_the_batch,
    softmax_over_all_entries,
    values_normalized,
    keys_not_normalized,
    sigmoid_for_softmax,
    logits_over_root_d,
    sum_for_mean,
    weights_detached,
    random_query,
]


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


def _block(change):
    class Changed(AttentionResidual):
        def forward(self, sources):
            return change(self, sources)

    return Changed


running_sums_for_updates = _block(lambda s, v: (*v, v[-1] + s.branch(s.norm(s.mix(v)))))
mean_added_to_the_update = _block(
    lambda s, v: (*v, s.mix(v) + s.branch(s.norm(s.mix(v))))
)
embedding_left_out = _block(
    lambda s, v: (*v, s.branch(s.norm(s.mix(v[1:] if len(v) > 1 else v))))
)
pre_norm_missing = _block(lambda s, v: (*v, s.branch(s.mix(v))))
last_source_only = _block(lambda s, v: (*v, s.branch(s.norm(s.mix(v[-1:])))))

WRONG_BLOCKS = [
    running_sums_for_updates,
    mean_added_to_the_update,
    embedding_left_out,
    pre_norm_missing,
    last_source_only,
]
for _name, _variant in list(globals().items()):
    if any(_variant is each for each in WRONG + WRONG_BLOCKS):
        _variant.__name__ = _name


@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__)
def test_right(check):
    check(DepthAttention)


def test_right_block():
    check_block(AttentionResidual)


@pytest.mark.parametrize("variant", WRONG, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


@pytest.mark.parametrize("variant", WRONG_BLOCKS, ids=lambda v: v.__name__)
def test_known_wrong_block(variant, known_wrong):
    known_wrong.rejected_by([check_block], variant)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_dtypes(dtype):
    mix = disturb(DepthAttention(31), dtype=dtype)
    values = tuple(tokens((2, 5, 31), seed=i, dtype=dtype) for i in range(3))
    assert mix(values).dtype == dtype
    wide = DepthAttention(31).double()
    wide.load_state_dict({k: v.double() for k, v in mix.state_dict().items()})
    wanted = wide(tuple(value.double() for value in values))
    close(mix(values), wanted, 0.05, 128 * torch.finfo(dtype).eps)
