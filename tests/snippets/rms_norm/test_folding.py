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
from tests.same_results import on_views
from tests.snippets.rms_norm.float64 import SHAPES, assert_close, gains, tokens
from tests.wrong import suite

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


def folding(swap_norms):
    """Both steps, of the module that is judged."""
    centre_stream = swap_norms.__globals__["centre_stream"]

    def fold(model):
        centre_stream(model)
        swap_norms(model)

    return fold


test_right, test_rejects = suite(swap_norms, CHECKS, folding)


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
    folding(swap_norms)(model)
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


test_centre, test_centre_rejects = suite(
    centre, [check_centre, on_views(tokens((3, 4, 7)))]
)


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


test_mean_share, test_mean_share_rejects = suite(
    mean_share, [check_mean_share, on_views(tokens((3, 4, 7), offset=0.5))]
)


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


test_layer_norm, test_layer_norm_rejects = suite(
    layer_norm,
    [check_layer_norm, on_views(tokens((3, 4, 7)), gains(7), gains(7, seed=1), 1e-3)],
)
