"""What answers of the bank say of code, tried on the code."""

import numpy
import pytest
import torch
from torch import nn
from torch.nn import functional
from transformers import T5Config, T5Model
from transformers.models.t5.modeling_t5 import T5LayerNorm

from snippets.rms_norm.reference import rms_norm

WIDE = torch.float64


def rows(*shape: int) -> torch.Tensor:
    torch.manual_seed(len(shape))
    return torch.randn(*shape, dtype=WIDE)


def test_rms_norm_is_the_l2_norm_times_the_root_of_the_width():
    """rmsnorm-and-l2-norm: and F.normalize takes the larger of length and epsilon."""
    x, gain = rows(5, 7), torch.ones(7, dtype=WIDE)
    unit = functional.normalize(x, dim=-1)
    assert torch.allclose(rms_norm(x, gain, eps=0.0), unit * 7**0.5)
    assert torch.allclose(functional.normalize(x, dim=-1, eps=100.0), x / 100)


def test_layer_norm_turns_a_token_by_its_mean():
    """geometry-of-layernorm: the cosine is deviation over root mean square."""
    x = rows(6, 9) + 3
    cosine = torch.cosine_similarity(x, functional.layer_norm(x, (9,), eps=0.0), dim=-1)
    root = x.square().mean(-1).sqrt()
    assert torch.allclose(cosine, x.std(-1, correction=0) / root)
    assert cosine.max() < 0.9
    turn = torch.linalg.qr(rows(9, 9, 1)[..., 0])[0]
    gain = torch.ones(9, dtype=WIDE)
    assert torch.allclose(rms_norm(x @ turn, gain), rms_norm(x, gain) @ turn)
    layer = functional.layer_norm
    assert not torch.allclose(layer(x @ turn, (9,)), layer(x, (9,)) @ turn, rtol=0.01)


@pytest.mark.parametrize("eps", [1e-5, 1e-6])
def test_epsilon_is_read_off_a_tiny_row(eps):
    """what-epsilon-is-for."""
    x = torch.full((8,), 1e-4, dtype=WIDE)
    y = rms_norm(x, torch.ones(8, dtype=WIDE), eps=eps)
    assert torch.allclose((x / y).square() - x.square(), torch.tensor(eps, dtype=WIDE))
    x = x * torch.tensor([1, -1] * 4)
    y = functional.layer_norm(x, (8,), eps=eps)
    assert torch.allclose((x / y).square() - x.square(), torch.tensor(eps, dtype=WIDE))


def test_gradients_of_a_block():
    """pre-and-post-norm-gradients-derived: both products, γ, β and a branch of tanh."""
    x, matrix, gain, bias = rows(5), rows(5, 5), rows(5) + 2, rows(5, 1)[:, 0]
    jacobian, eye = torch.autograd.functional.jacobian, torch.eye(5, dtype=WIDE)

    def norm(u):
        return functional.layer_norm(u, (5,), gain, bias, eps=0.0)

    def of_norm(u):
        unit = functional.layer_norm(u, (5,), eps=0.0)
        plain = eye - torch.ones_like(eye) / 5 - torch.outer(unit, unit) / 5
        return torch.diag(gain) @ plain / u.std(correction=0)

    def branch(u):
        return torch.tanh(matrix @ u)

    def of_branch(u):
        return torch.diag(1 - branch(u).square()) @ matrix

    post = jacobian(lambda u: norm(u + branch(u)), x)
    assert torch.allclose(post, of_norm(x + branch(x)) @ (eye + of_branch(x)))
    pre = jacobian(lambda u: u + branch(norm(u)), x)
    assert torch.allclose(pre, eye + of_branch(norm(x)) @ of_norm(x))

    tokens, arrived = rows(4, 5), rows(4, 5, 1)[..., 0]
    learned = [gain.clone().requires_grad_(), bias.clone().requires_grad_()]
    functional.layer_norm(tokens, (5,), *learned, eps=0.0).backward(arrived)
    unit = functional.layer_norm(tokens, (5,), eps=0.0)
    assert torch.allclose(learned[0].grad, (arrived * unit).sum(0))
    assert torch.allclose(learned[1].grad, arrived.sum(0))


def test_outliers_move_from_the_gain_into_the_next_matrix():
    """quantizing-a-model-with-norms: with a gain stored as 1 + w it is 1 + w over s."""
    x, matrix, w = rows(4, 6), rows(3, 6), rows(6)
    scale = rows(6, 1)[:, 0].abs() + 0.5
    before = rms_norm(x, 1 + w) @ matrix.T
    smooth = (1 + w) / scale - 1
    assert torch.allclose(rms_norm(x, 1 + smooth) @ (matrix * scale).T, before)
    assert not torch.allclose(rms_norm(x, 1 + w / scale) @ (matrix * scale).T, before)


def test_norms_of_an_encoder_decoder():
    """norms-in-an-encoder-decoder: 62 in a T5 of 12 + 12 layers."""
    sizes = {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_heads": 2, "vocab_size": 11}
    t5 = T5Model(T5Config(num_layers=12, num_decoder_layers=12, **sizes))
    assert sum(isinstance(m, T5LayerNorm) for m in t5.modules()) == 62
    layer = nn.TransformerEncoderLayer(8, 2, 8, norm_first=True, batch_first=True)
    bare = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    assert bare.norm is None
    whole = nn.Transformer(8, 2, 1, 1, 8, batch_first=True)
    assert isinstance(whole.encoder.norm, nn.LayerNorm)
    assert isinstance(whole.decoder.norm, nn.LayerNorm)


def test_clipping_keeps_the_ratios_between_layers():
    """gradient-clipping-is-no-norm."""
    weights = [nn.Parameter(rows(3)), nn.Parameter(rows(3) * 1e6)]
    for weight in weights:
        weight.grad = weight.detach().clone()
    nn.utils.clip_grad_norm_(weights, 1.0)
    one, two = (w.grad / w.detach() for w in weights)
    assert torch.allclose(one, two) and one.max() < 1e-3


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_frozen_parameters_do_not_freeze_the_averages(mode):
    """frozen-batchnorm-still-moves: in train mode, under no_grad as well."""
    norm = nn.BatchNorm1d(4).requires_grad_(False)
    getattr(norm, mode)()
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    with torch.no_grad():
        norm(torch.randn(8, 4) + 3)
    moved = {n for n, value in norm.state_dict().items() if (value != before[n]).any()}
    statistics = {"running_mean", "running_var", "num_batches_tracked"}
    assert moved == (statistics if mode == "train" else set())


def test_a_forgotten_keepdims_is_seen_unless_the_input_is_square():
    """keepdims-and-a-square-batch: one row times 1000 then moves every token."""
    x = rows(4, 4).numpy()
    scaled = x * numpy.array([[1000.0], [1], [1], [1]])
    with pytest.raises(ValueError, match="broadcast"):
        rows(4, 5).numpy() - rows(4, 5).numpy().mean(-1)

    def forgotten(x):
        return (x - x.mean(-1)) / numpy.sqrt(x.var(-1))

    def kept(x):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) / numpy.sqrt(variance)

    assert numpy.allclose(kept(scaled), kept(x))
    assert (~numpy.isclose(forgotten(scaled), forgotten(x))).any(axis=1).all()
    assert rows(4, 4).numpy().var() == pytest.approx(
        float(torch.var(rows(4, 4), correction=0))
    )


def test_eval_mode_changes_dropout_and_not_the_norms():
    """layernorm-in-train-and-eval."""
    x = rows(3, 8).float()
    for norm in (nn.LayerNorm(8), nn.RMSNorm(8)):
        assert not list(norm.buffers())
        assert torch.equal(norm.train()(x), norm.eval()(x))
    layer = nn.TransformerEncoderLayer(8, 2, 8, dropout=0.5, batch_first=True)
    trained = layer.train()(x[None])
    assert not torch.allclose(trained, layer.eval()(x[None]))
