"""Centring, LayerNorm as centring + RMSNorm, and the folding of a whole model."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from snippets.rms_norm.centring import centre, mean_share
from snippets.rms_norm.folding import centre_stream, swap_norms, to_rms_norm
from snippets.rms_norm.layer_norm import layer_norm
from snippets.rms_norm.reference import RMSNorm
from snippets.rms_norm.small_decoder import SmallDecoder
from tests.snippets.rms_norm.float64 import SHAPES, assert_close, gains, tokens

# The whole folding -----------------------------------------------------------


def decoder(seed=0, d=12, layers=2, heads=3, context=9, **kinds):
    """A decoder in float64 whose every parameter is far from its start."""
    torch.manual_seed(seed)
    model = SmallDecoder(d, layers, heads, context, **kinds).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
        for table in (model.token, model.position):
            table.weight.add_(1.0)  # a mean that no norm may see
    for index, branch in enumerate(model.branches):
        branch.norm.eps = 1e-3 * (1 + index)
    return model


def gradients(model, text):
    """Gradients that both forms of a model share: those of every reader's bias."""
    model.zero_grad()
    F.cross_entropy(model(text).flatten(0, 1), text.flatten()).backward()
    readers = [branch.body.reader for branch in model.branches] + [model.head]
    return [reader.bias.grad for reader in readers]


def check_same_model(fold):
    for seed, sizes in enumerate(
        ({}, {"d": 7, "heads": 1}, {"d": 8, "heads": 2, "layers": 3, "context": 1})
    ):
        model = decoder(seed, **sizes)
        text = torch.randint(256, (3, model.position.num_embeddings))
        folded = copy.deepcopy(model)
        fold(folded)
        assert_close(folded(text), model(text).detach(), 1e-9, 1e-9, "logits")
        pairs = zip(gradients(folded, text), gradients(model, text), strict=True)
        for ours, expected in pairs:
            assert_close(ours, expected, 1e-8, 1e-10, "gradient")


def check_only_rms_norms_are_left(fold):
    model = decoder()
    fold(model)
    norms = [branch.norm for branch in model.branches] + [model.norm]
    assert all(isinstance(norm, RMSNorm) for norm in norms)
    assert not any(isinstance(part, nn.LayerNorm) for part in model.modules())


def check_stream_is_centred(fold):
    model = decoder()
    fold(model)
    seen = []
    for branch in model.branches:
        branch.norm.register_forward_pre_hook(lambda _, x: seen.append(x[0]))
    model.norm.register_forward_pre_hook(lambda _, x: seen.append(x[0]))
    model(torch.randint(256, (2, 9)))
    for x in seen:
        mean = x.detach().mean(-1)
        assert float(mean.abs().max()) < 1e-12, "the stream has a mean"


CHECKS = [check_same_model, check_only_rms_norms_are_left, check_stream_is_centred]


def fold(model):
    centre_stream(model)
    swap_norms(model)


def swapped_without_centring(model):
    swap_norms(model)


def centred_without_swapping(model):
    """The same function, but not the model that was promised: still LayerNorm."""
    centre_stream(model)


def _undoing(select):
    """Fold, but put the selected tensors back to what they were."""

    def wrong(model):
        before = [tensor.detach().clone() for tensor in select(model)]
        centre_stream(model)
        with torch.no_grad():
            for tensor, old in zip(select(model), before, strict=True):
                tensor.copy_(old)
        swap_norms(model)

    return wrong


def forgets_the_token_embedding(model):
    _undoing(lambda m: [m.token.weight])(model)


def forgets_the_position_embedding(model):
    _undoing(lambda m: [m.position.weight])(model)


def forgets_a_branch_weight(model):
    _undoing(lambda m: [m.branches[1].body.writer.weight])(model)


def forgets_a_branch_bias(model):
    _undoing(lambda m: [m.branches[0].body.writer.bias])(model)


def forgets_attention(model):
    _undoing(
        lambda m: [p for b in m.branches[::2] for p in b.body.writer.parameters()]
    )(model)


@torch.no_grad()
def centres_the_wrong_side(model):
    for table in (model.token, model.position):
        table.weight.copy_(centre(table.weight))
    for branch in model.branches:
        writer = branch.body.writer
        writer.weight.copy_(centre(writer.weight))  # W P, not P W
        writer.bias.copy_(centre(writer.bias))
    swap_norms(model)


@torch.no_grad()
def centres_readers_alone(model):
    """W P in every reader removes the mean after the division, not before."""
    for part in [branch.body for branch in model.branches]:
        part.reader.weight.copy_(centre(part.reader.weight))
    swap_norms(model)


@torch.no_grad()
def centres_the_columns_of_the_tables(model):
    for table in (model.token, model.position):
        table.weight.copy_(centre(table.weight.T).T)
    for branch in model.branches:
        writer = branch.body.writer
        writer.weight.copy_(centre(writer.weight.T).T)
        writer.bias.copy_(centre(writer.bias))
    swap_norms(model)


def _swapping(change):
    def wrong(model):
        centre_stream(model)
        with torch.no_grad():
            change(model)
        swap_norms(model)

    return wrong


def drops_beta(model):
    _swapping(lambda m: [b.norm.bias.zero_() for b in m.branches])(model)


def drops_beta_of_the_final_norm(model):
    _swapping(lambda m: m.norm.bias.zero_())(model)


def drops_gamma(model):
    _swapping(lambda m: [b.norm.weight.fill_(1) for b in m.branches])(model)


def drops_eps(model):
    _swapping(lambda m: [setattr(b.norm, "eps", 1e-6) for b in m.branches])(model)


@torch.no_grad()
def adds_beta_without_the_matrix(model):
    centre_stream(model)
    for branch in model.branches:
        reader, bias = branch.body.reader, branch.norm.bias.clone()
        width = min(reader.bias.numel(), bias.numel())
        branch.norm.bias.zero_()
        reader.bias[:width] += bias[:width]
    swap_norms(model)


@torch.no_grad()
def beta_through_gamma(model):
    """Scales beta by gamma, as if the bias came before the gain."""
    centre_stream(model)
    for branch in model.branches:
        branch.norm.bias.mul_(branch.norm.weight)
    swap_norms(model)


def leaves_the_final_norm(model):
    final = model.norm
    fold(model)
    model.norm = final


WRONG = [
    swapped_without_centring,
    centred_without_swapping,
    forgets_the_token_embedding,
    forgets_the_position_embedding,
    forgets_a_branch_weight,
    forgets_a_branch_bias,
    forgets_attention,
    centres_the_wrong_side,
    centres_readers_alone,
    centres_the_columns_of_the_tables,
    drops_beta,
    drops_beta_of_the_final_norm,
    drops_gamma,
    drops_eps,
    adds_beta_without_the_matrix,
    beta_through_gamma,
    leaves_the_final_norm,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__)
def test_right(check):
    check(fold)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda f: f.__name__)
def test_rejects(wrong, known_wrong):
    known_wrong.rejected_by(CHECKS, wrong)


def test_centring_the_stream_leaves_a_layer_norm_model_alone():
    model = decoder()
    text = torch.randint(256, (2, 9))
    before = model(text).detach()
    centre_stream(model)
    assert_close(model(text), before, 1e-9, 1e-9)


def test_swapping_alone_changes_the_model():
    model = decoder()
    text = torch.randint(256, (2, 9))
    before = model(text).detach()
    swap_norms(model)
    assert float((model(text).detach() - before).abs().max()) > 0.1


@pytest.mark.parametrize("tied", [True, False])
def test_folding_needs_a_head_of_its_own(tied):
    model = decoder()
    table = model.token.weight
    model.head.weight = table if tied else nn.Parameter(table.detach().clone())
    text = torch.randint(256, (2, 9))
    before = model(text).detach()
    fold(model)
    moved = float((model(text).detach() - before).abs().max())
    assert moved > 0.1 if tied else moved < 1e-9


def test_to_rms_norm_keeps_gain_and_eps():
    norm, reader = nn.LayerNorm(5, eps=1e-3), nn.Linear(5, 3)
    with torch.no_grad():
        norm.weight.copy_(torch.arange(5.0))
    replacement = to_rms_norm(norm, reader)
    assert torch.equal(replacement.gain, norm.weight)
    assert replacement.eps == 1e-3
    assert replacement.gain.data_ptr() != norm.weight.data_ptr()


# Its parts -------------------------------------------------------------------


def check_centre(function):
    for shape in SHAPES:
        x = tokens(shape, offset=5.0)
        d = shape[-1]
        projection = torch.eye(d, dtype=x.dtype) - torch.ones(d, d, dtype=x.dtype) / d
        before = x.clone()
        size = float(x.abs().max())
        assert_close(function(x), x @ projection, 1e-12, 1e-13 * size)
        assert torch.equal(x, before), "x was modified"


def centres_over_time(x):
    return x - x.mean(dim=max(-2, -x.ndim), keepdim=True)


def centres_all_tokens_together(x):
    return x - x.mean()


def divides_by_d_minus_one(x):
    return x - x.sum(-1, keepdim=True) / max(x.shape[-1] - 1, 1)


def subtracts_the_median(x):
    return x - x.median(dim=-1, keepdim=True).values


def test_centre():
    check_centre(centre)


@pytest.mark.parametrize(
    "wrong",
    [
        centres_over_time,
        centres_all_tokens_together,
        divides_by_d_minus_one,
        subtracts_the_median,
    ],
    ids=lambda f: f.__name__,
)
def test_centre_rejects(wrong, known_wrong):
    known_wrong.rejected_by([check_centre], wrong)


def check_mean_share(function):
    for shape in SHAPES:
        x = tokens(shape, offset=0.5)
        ones = torch.ones(shape[-1], dtype=x.dtype)
        cosine = torch.cosine_similarity(x, ones, dim=-1)
        assert_close(function(x), cosine.square(), 1e-10)
    assert_close(
        function(torch.tensor([[2.0, 2.0], [3.0, -3.0], [1.0, 0.0]])),
        torch.tensor([1.0, 0.0, 0.5]).double(),
        1e-6,
    )


def share_without_square(x):
    return x.mean(-1).abs() / x.square().mean(-1).sqrt()


def share_of_the_variance(x):
    return x.mean(-1).square() / x.var(-1, correction=0)


def share_of_all_tokens(x):
    share = x.mean(-1).square().mean() / x.square().mean()
    return share.expand(x.shape[:-1])


def share_with_the_sum(x):
    return x.sum(-1).square() / x.square().sum(-1)


def test_mean_share():
    check_mean_share(mean_share)


@pytest.mark.parametrize(
    "wrong",
    [
        share_without_square,
        share_of_the_variance,
        share_of_all_tokens,
        share_with_the_sum,
    ],
    ids=lambda f: f.__name__,
)
def test_mean_share_rejects(wrong, known_wrong):
    known_wrong.rejected_by([check_mean_share], wrong)


def test_mean_share_of_random_directions_is_one_over_d():
    x = torch.randn(20000, 32, generator=torch.Generator().manual_seed(0))
    assert abs(float(mean_share(x).mean()) * 32 - 1) < 0.05


def check_layer_norm(function):
    for shape in SHAPES:
        for offset in (0.0, 100.0):
            d = shape[-1]
            x = tokens(shape, offset=offset).requires_grad_()
            gain, bias = gains(d).requires_grad_(), gains(d, seed=1).requires_grad_()
            grad_y = tokens(shape, seed=1)
            inputs = (x, gain, bias)
            y, expected = (
                function(x, gain, bias, 1e-3),
                F.layer_norm(x, (d,), gain, bias, 1e-3),
            )
            size = float(expected.detach().abs().max())
            assert_close(y, expected.detach(), 1e-8, 1e-10 * size)
            pairs = zip(
                torch.autograd.grad(y, inputs, grad_y, materialize_grads=True),
                torch.autograd.grad(expected, inputs, grad_y),
                strict=True,
            )
            for ours, theirs in pairs:
                size = float(theirs.abs().max())
                assert_close(ours, theirs, 1e-7, 1e-8 * size + 1e-10, "gradient")


def _normalized(x, eps, correction=0):
    variance = x.var(-1, correction=correction, keepdim=True)
    return (x - x.mean(-1, keepdim=True)) * torch.rsqrt(variance + eps)


def not_centred(x, gain, bias, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * gain + bias


def centred_after_the_division(x, gain, bias, eps):
    y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    return centre(y) * gain + bias


def bias_before_the_gain(x, gain, bias, eps):
    return (_normalized(x, eps) + bias) * gain


def bias_dropped(x, gain, bias, eps):
    return _normalized(x, eps) * gain


def unbiased_variance(x, gain, bias, eps):
    correction = int(x.shape[-1] > 1)
    return _normalized(x, eps, correction) * gain + bias


def test_layer_norm():
    check_layer_norm(layer_norm)


@pytest.mark.parametrize(
    "wrong",
    [
        not_centred,
        centred_after_the_division,
        bias_before_the_gain,
        bias_dropped,
        unbiased_variance,
    ],
    ids=lambda f: f.__name__,
)
def test_layer_norm_rejects(wrong, known_wrong):
    known_wrong.rejected_by([check_layer_norm], wrong)
