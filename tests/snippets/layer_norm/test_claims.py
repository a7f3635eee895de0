"""What the page says beyond the formulas: geometry, divisor, shifts, models."""

import pytest
import torch
from torch.nn import functional as F

from snippets.layer_norm.reference import LayerNorm, layer_norm
from tests.snippets.layer_norm.float64 import (
    assert_close,
    biases,
    gains,
    reference_gradients,
    tokens,
)


@pytest.mark.parametrize("d", [2, 3, 31, 512])
def test_plane_and_sphere(d):
    y = layer_norm(tokens((50, d), offset=2.0), eps=0.0)
    assert float(y.sum(-1).abs().max()) < 1e-9
    assert_close(y.norm(dim=-1), torch.full((50,), d**0.5, dtype=torch.float64), 1e-12)


def test_two_features_leave_a_sign():
    x = tokens((50, 2))
    sign = torch.sign(x[:, 0] - x[:, 1])
    assert_close(layer_norm(x, eps=0.0), torch.stack([sign, -sign], -1), 1e-7)


def test_not_the_identity_at_the_start():
    x = 3 * torch.randn(10, 64, generator=torch.Generator().manual_seed(0))
    y = LayerNorm(64)(x).detach()
    assert float(((y - x).norm(dim=-1) / x.norm(dim=-1)).min()) > 0.5


def test_gain_and_bias_move_the_plane_and_the_sphere():
    gain, bias = gains(31), biases(31)
    y = layer_norm(tokens((50, 31)), gain, bias, eps=0.0)
    back = (y - bias) / gain
    assert float(back.sum(-1).abs().max()) < 1e-9
    assert float((back.norm(dim=-1) - 31**0.5).abs().max()) < 1e-9
    assert float(y.sum(-1).abs().max()) > 1 and float(y.norm(dim=-1).std()) > 0.1


def test_gain_and_bias_fold_into_a_linear_reader():
    gain, bias, x = gains(31), biases(31), tokens((5, 31))
    weight, shift = tokens((7, 31), seed=3), biases(7)
    read = F.linear(layer_norm(x, gain, bias), weight, shift)
    folded = F.linear(layer_norm(x), weight * gain, weight @ bias + shift)
    assert_close(folded, read, 1e-10, 1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_an_average_of_keys_never_wins_and_its_norm_does(seed):
    generator = torch.Generator().manual_seed(seed)
    outer = torch.randn(4, 8, generator=generator, dtype=torch.float64)
    weights = torch.rand(4, generator=generator, dtype=torch.float64)
    keys = torch.cat([outer, (weights / weights.sum() @ outer)[None]])
    queries = torch.randn(5000, 8, generator=generator, dtype=torch.float64)
    assert not ((queries @ keys.T).argmax(-1) == 4).any()
    normalized = layer_norm(keys)
    assert ((normalized @ normalized.T).argmax(-1) == torch.arange(5)).all()
    assert float((normalized.sum(-1)).abs().max()) < 1e-9


@pytest.mark.parametrize("d", [4, 8, 64, 4096])
def test_the_divisor_is_one_factor_for_all_tokens(d):
    x = tokens((6, d), offset=1.0)
    centred = x - x.mean(-1, keepdim=True)
    other = centred / x.std(-1, keepdim=True)
    factor = ((d - 1) / d) ** 0.5
    assert_close(other, factor * layer_norm(x, eps=0.0), 1e-9, 1e-12)


def test_the_documented_example_of_the_annotated_transformer():
    x = torch.tensor([1.0, 0.0, 0.0, 0.0])
    outer = (x - x.mean()) / (x.std() + 1e-6)
    assert round(float(outer[0]), 3) == 1.5
    assert round(float(F.layer_norm(x, (4,))[0]), 3) == 1.732


def _gap(a, b):
    return float((a.double() - b).abs().amax(-1).median())


@pytest.mark.parametrize("shift", [1e2, 1e4, 1e6])
def test_a_shift_is_rounded_before_the_norm_and_by_its_mean(shift):
    """The input alone explains a good part; the rest is the mean: centre twice."""
    x = torch.randn(500, 64, generator=torch.Generator().manual_seed(0)).double()
    y, single = layer_norm(x), (x + shift).float()
    before, after = _gap(layer_norm(single.double()), y), _gap(layer_norm(single), y)
    assert 0.3 < before / after < 1.05
    once = single - single.mean(-1, keepdim=True)
    assert _gap(layer_norm(once), y) < 1.1 * before
    assert _gap(layer_norm(x + shift), y) < 1e-7


def test_the_residue_of_a_factor_is_eps():
    x = tokens((50, 10))
    assert _gap(layer_norm(5 * x), layer_norm(x)) > 1e-7
    assert _gap(layer_norm(5 * x, eps=25e-5), layer_norm(x)) < 1e-12
    assert _gap(layer_norm(-x), -layer_norm(x)) < 1e-12


def test_a_weight_matrix_may_be_rescaled_only_right_behind_the_norm():
    x, weight = tokens((5, 31)), tokens((31, 31), seed=2)
    branch = x @ weight.T
    same = _gap(layer_norm(3 * branch, eps=0.0), layer_norm(branch, eps=0.0))
    changed = _gap(layer_norm(x + 3 * branch, eps=0.0), layer_norm(x + branch, eps=0.0))
    assert same < 1e-10 < 0.01 < changed


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_torch_rounds_once(dtype):
    x = tokens((64, 96), dtype=dtype).clamp(-3e4, 3e4)
    gain, bias = gains(96, dtype=dtype), biases(96, dtype=dtype)
    wide = F.layer_norm(x.float(), (96,), gain.float(), bias.float()).to(dtype)
    actual = F.layer_norm(x, (96,), gain, bias)
    assert actual.dtype == dtype
    assert float((actual == wide).double().mean()) > 0.995
    size = float(wide.double().abs().max())
    assert_close(actual, wide.double(), torch.finfo(dtype).eps, 1e-6 * size)


def test_bfloat16_gradients_of_torch_are_less_exact_on_the_cpu():
    """Its mean and r are kept in bfloat16 for the backward pass."""
    dtype = torch.bfloat16
    x = tokens((64, 96), offset=5.0, dtype=dtype).requires_grad_()
    gain = gains(96, dtype=dtype).requires_grad_()
    bias = biases(96, dtype=dtype).requires_grad_()
    grad_y = tokens((64, 96), seed=1).clamp(-4, 4).to(dtype)
    exact, _, _ = reference_gradients(grad_y, x, gain)
    size = exact.norm(dim=-1)
    errors = []
    for y in (F.layer_norm(x, (96,), gain, bias), layer_norm(x, gain, bias)):
        (grad_x,) = torch.autograd.grad(y, x, grad_y)
        errors.append(float(((grad_x.double() - exact).norm(dim=-1) / size).median()))
    assert errors[0] > 1.1 * errors[1]


SIZES = {"vocab_size": 16, "hidden_size": 16}
STACK = {"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
GROUPED = {**SIZES, **STACK, "num_key_value_heads": 2}
N_FORM = {"vocab_size": 16, "n_layer": 1, "n_head": 2}
MODELS = {  # model type: (its configuration, learned by every LayerNorm)
    "gpt2": ({**N_FORM, "n_embd": 16}, {"weight", "bias"}),
    "bert": ({**SIZES, **STACK}, {"weight", "bias"}),
    "opt": ({**SIZES, **STACK, "ffn_dim": 16, "word_embed_proj_dim": 16}, None),
    "bloom": ({**N_FORM, "hidden_size": 16}, {"weight", "bias"}),
    "gpt_neox": ({**SIZES, **STACK}, {"weight", "bias"}),
    "falcon": ({**SIZES, **STACK}, {"weight", "bias"}),
    "phi": (GROUPED, {"weight", "bias"}),
    "starcoder2": (GROUPED, {"weight", "bias"}),
    "cohere": (GROUPED, {"weight"}),
    "mpt": ({"d_model": 16, "n_heads": 2, "n_layers": 1, "vocab_size": 16}, {"weight"}),
    "modernbert": ({**SIZES, **STACK}, {"weight"}),
    "nemotron": (GROUPED, {"weight", "bias"}),
    "olmo": (GROUPED, set()),
}


@pytest.mark.parametrize("model", MODELS)
def test_what_the_models_learn(model):
    """The table of the page, read from small instances of the classes."""
    from transformers import AutoConfig, AutoModel

    values, learned = MODELS[model]
    config = AutoConfig.for_model(model, pad_token_id=0, **values)
    built = AutoModel.from_config(config)
    norms = [each for each in built.modules() if "LayerNorm" in type(each).__name__]
    assert norms
    for norm in norms:
        names = {name for name, _ in norm.named_parameters()}
        assert names == ({"weight", "bias"} if learned is None else learned)


def test_where_a_layer_norm_hides():
    """DBRX has no bias; DeepSeek-V3.2 has one LayerNorm with bias, on a key."""
    import inspect

    from transformers.models.dbrx import modeling_dbrx
    from transformers.models.deepseek_v32 import modeling_deepseek_v32

    dbrx = inspect.getsource(modeling_dbrx)
    assert dbrx.count("nn.LayerNorm(") == dbrx.count(
        "nn.LayerNorm(config.d_model, bias=False)"
    )
    deepseek = inspect.getsource(modeling_deepseek_v32)
    assert deepseek.count("nn.LayerNorm(") == 1
    assert "self.k_norm = nn.LayerNorm(self.head_dim, eps=1e-6)" in deepseek
