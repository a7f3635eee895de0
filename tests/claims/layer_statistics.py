import torch
from torch import nn
from torch.nn.functional import layer_norm
from transformers.models.bert.configuration_bert import BertConfig
from transformers.models.gpt2.configuration_gpt2 import GPT2Config

from snippets.layer_norm.moments import sum_of_squares, threads, welford


def randn(*shape: int, seed: int = 0, dtype=torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=dtype)


# verdict: wrong
def a_shift_of_100_leaves_no_trace_in_float32():
    for seed in range(100):
        x = randn(10, seed=seed, dtype=torch.float32)
        difference = layer_norm(x + 100, (10,)) - layer_norm(x, (10,))
        assert 1e-6 < difference.abs().max() < 1e-4  # near 1e-5, never 0
        wide = x.double()
        difference = layer_norm(wide + 100, (10,)) - layer_norm(wide, (10,))
        assert difference.abs().max() < 1e-12


# verdict: wrong
def what_scaling_changes_is_rounding():
    x = randn(10)  # float64: rounding would be near 1e-16

    def change(eps, x=x):
        return (layer_norm(5 * x, (10,), eps=eps) - layer_norm(x, (10,), eps=eps)).abs()

    assert 1e-6 < change(eps=1e-5).max() < 1e-4
    assert change(eps=1e-7).max() < 1e-7  # follows eps
    assert change(eps=0).max() < 1e-14  # and goes with it
    single = change(eps=1e-5, x=x.float()).max()
    assert abs(single / change(eps=1e-5).max() - 1) < 0.1  # mostly eps in float32 too


# verdict: holds
def layernorm_ignores_a_shift_of_the_input():
    x = randn(4, 64)
    y = layer_norm(x, (64,))
    shift_of_a_token = randn(4, 1, seed=1)
    torch.testing.assert_close(layer_norm(x + shift_of_a_token, (64,)), y)
    shift_of_a_feature = randn(64, seed=1)
    assert (layer_norm(x + shift_of_a_feature, (64,)) - y).abs().max() > 1


# verdict: holds-when
def layernorm_ignores_any_factor():
    x = randn(512)
    y = layer_norm(x, (512,))
    torch.testing.assert_close(layer_norm(1000 * x, (512,)), y, rtol=0, atol=1e-4)
    torch.testing.assert_close(layer_norm(-x, (512,)), -y)
    assert layer_norm(0.001 * x, (512,)).std() < 0.4  # eps outweighs 1e-6


# verdict: holds-when
def layernorm_outputs_mean_zero_and_variance_one():
    norm = nn.LayerNorm(16, dtype=torch.float64)
    x = 3 + 2 * randn(8, 16)
    y = norm(x)
    assert y.mean(-1).abs().max() < 1e-12
    torch.testing.assert_close(
        y.norm(dim=-1), torch.full_like(y[:, 0], 4), rtol=1e-4, atol=0
    )
    assert norm(1e-3 * x).std() < 0.7  # 4e-6, the variance, against an eps of 1e-5
    with torch.no_grad():  # learned values
        norm.weight.copy_(1 + 0.5 * randn(16, seed=1))
        norm.bias.copy_(0.5 * randn(16, seed=2))
    y = norm(x)
    assert y.mean(-1).abs().max() > 0.1
    assert (y.var(-1, correction=0) - 1).abs().max() > 0.1


# verdict: wrong
def features_are_a_sample_so_divide_by_d_minus_one():
    x = randn(1000, 8)
    theirs = nn.LayerNorm(8, eps=0, dtype=x.dtype)(x)
    centred = x - x.mean(-1, keepdim=True)
    biased = centred / x.std(-1, correction=0, keepdim=True)
    unbiased = centred / x.std(-1, keepdim=True)
    torch.testing.assert_close(biased, theirs)
    torch.testing.assert_close(unbiased, (7 / 8) ** 0.5 * theirs)  # 6 % smaller
    torch.testing.assert_close(biased.norm(dim=-1), torch.full_like(x[:, 0], 8**0.5))


# verdict: holds-when
def the_epsilon_of_layernorm_is_1e_5():
    assert nn.LayerNorm(8).eps == GPT2Config().layer_norm_epsilon == 1e-5
    assert BertConfig().layer_norm_eps == 1e-12
    faint = 1e-3 * randn(512)
    assert layer_norm(faint, (512,), eps=1e-5).std() < 0.4
    assert layer_norm(faint, (512,), eps=1e-12).std() > 0.99


# verdict: holds-when
def std_plus_epsilon_is_the_same_layernorm():
    def by_hand(x):
        return (x - x.mean(-1, True)) / (x.std(-1, keepdim=True) + 1e-5)

    one_hot = torch.tensor([1.0, 0, 0, 0])
    assert abs(by_hand(one_hot)[0] - 1.5) < 1e-4
    assert abs(layer_norm(one_hot, (4,))[0] - 3**0.5) < 1e-4
    wide = randn(4096)  # a typical token of a large model
    torch.testing.assert_close(
        by_hand(wide), layer_norm(wide, (4096,)), rtol=2e-4, atol=0
    )
    faint = 1e-4 * wide
    assert by_hand(faint).std() > 0.9 > 0.04 > layer_norm(faint, (4096,)).std()


# verdict: wrong
def normalized_shape_is_sequence_and_features():
    x = randn(2, 7, 16)
    later = x.clone()
    later[:, -1] += 10  # the last token alone
    both = nn.LayerNorm((7, 16), dtype=x.dtype)
    features = nn.LayerNorm(16, dtype=x.dtype)
    assert (both(later) - both(x))[:, 0].abs().max() > 0.1
    assert torch.equal(features(later)[:, 0], features(x)[:, 0])
    assert sum(p.numel() for p in both.parameters()) == 7 * 32  # tied to length 7


# verdict: wrong
def eval_mode_changes_layernorm():
    norm, x = nn.LayerNorm(16), randn(4, 16, dtype=torch.float32)
    assert torch.equal(norm.train()(x), norm.eval()(x))
    assert not list(norm.buffers())  # nothing is stored but gain and bias


# verdict: holds-when
def layernorm_is_groupnorm_with_one_group():
    tokens = randn(4, 16)
    one_group = nn.GroupNorm(1, 16, dtype=tokens.dtype)
    torch.testing.assert_close(one_group(tokens), layer_norm(tokens, (16,)))
    image = randn(4, 16, 5, 5)
    over_all = layer_norm(image, image.shape[1:])  # channels and positions
    torch.testing.assert_close(one_group(image), over_all)
    sequence = randn(4, 9, 16) * torch.arange(1, 10)[:, None]  # tokens of all sizes
    grouped = one_group(sequence.transpose(1, 2)).transpose(1, 2)
    assert (grouped - layer_norm(sequence, (16,))).abs().max() > 1


# verdict: holds-when
def variance_is_mean_of_squares_minus_squared_mean():
    def relative_error(mean):
        x = mean + randn(64, 256, dtype=torch.float32)
        true = x.double().var(-1, correction=0)
        return ((sum_of_squares(x) - true).abs() / true).max()  # E[x²] − E[x]²

    assert relative_error(0) < 1e-5
    assert relative_error(100) > 1e-3
    assert relative_error(1000) > 0.5  # no digit is right
    rows = 3000 + randn(64, 256, dtype=torch.float32)
    assert sum_of_squares(rows).sqrt().isnan().any()


# verdict: wrong
def clamping_a_negative_variance_repairs_it():
    x = 3000 + randn(64, 256, dtype=torch.float32)
    variance = sum_of_squares(x).clamp(min=0)  # E[x²] − E[x]²
    y = (x - x.mean(-1, keepdim=True)) * torch.rsqrt(variance + 1e-5)[:, None]
    assert y.isfinite().all()
    assert y.abs().max() > 100  # true rows stay below 16, the root of 256


# verdict: wrong
def welford_is_the_most_exact_way():
    x = 1000 + randn(64, 256, dtype=torch.float32)
    true = x.double().var(-1, correction=0)

    def error(variance):
        return ((variance - true).abs() / true).max()

    two_passes = (x - x.mean(-1, keepdim=True)).square().mean(-1)
    chain, merged = welford(x).spread / 256, threads(x).spread / 256
    assert error(two_passes) < error(merged) < error(chain)
    assert error(chain) < 1e-3 < 0.5 < error(sum_of_squares(x))


# verdict: holds-when
def float16_inputs_overflow_in_layernorm():
    x = (300 * randn(4, 64)).half()
    variance = (x - x.mean(-1, keepdim=True)).square().mean(-1)
    assert variance.isinf().all()  # each step in float16
    y = layer_norm(x, (64,))
    torch.testing.assert_close(y, layer_norm(x.float(), (64,)).half())
    assert 0.95 < y.float().std() < 1.05


# verdict: wrong
def agreement_on_random_inputs_shows_it_is_right():
    def one_pass(x):
        variance = x.square().mean(-1, True) - x.mean(-1, True).square()
        return (variance + 1e-5).sqrt()

    def eps_outside(x):
        return x.std(-1, correction=0, keepdim=True) + 1e-5

    def gap(divisor, x):
        y = (x - x.mean(-1, True)) / divisor(x)
        return (y - layer_norm(x, (64,))).abs().nan_to_num(nan=9).max()

    x = randn(8, 64, dtype=torch.float32)
    assert gap(one_pass, x) < 3e-5 and gap(eps_outside, x) < 3e-5
    assert gap(one_pass, x + 3000) > 0.1 and gap(eps_outside, x / 1e4) > 0.1


# verdict: wrong
def the_statistics_may_be_detached():
    def gradients(detach):
        x = randn(4, 32).requires_grad_()
        mean, std = x.mean(-1, True), x.std(-1, correction=0, keepdim=True)
        if detach:
            mean, std = mean.detach(), std.detach()
        ((x - mean) / std).pow(3).sum().backward()
        return x.grad, (x.grad * (x - x.mean(-1, True))).sum(-1)

    gradient, along_x = gradients(detach=False)
    assert gradient.sum(-1).abs().max() < 1e-10 and along_x.abs().max() < 1e-10
    gradient, along_x = gradients(detach=True)
    assert gradient.sum(-1).abs().min() > 1 and along_x.abs().max() > 1


# verdict: holds-when
def the_gradient_is_orthogonal_to_the_input():
    def cosines(eps, mean):
        x = (mean + randn(4, 32)).requires_grad_()
        layer_norm(x, (32,), eps=eps).pow(3).sum().backward()
        centred = x.detach() - x.detach().mean(-1, True)
        return [
            torch.cosine_similarity(x.grad, other, dim=-1).abs().max()
            for other in (torch.ones_like(x), centred, x.detach())
        ]

    assert max(cosines(eps=0, mean=5)) < 1e-12
    ones, centred, x = cosines(eps=0.1, mean=5)
    assert ones < 1e-12 and centred > 0.01 and 0.001 < x < centred


# verdict: wrong
def a_bias_before_layernorm_is_useless():
    linear, norm = nn.Linear(4, 8).double(), nn.LayerNorm(8).double()
    x = randn(16, 4)
    norm(linear(x)).pow(3).sum().backward()
    assert linear.bias.grad.abs().max() > 0.01
    assert linear.bias.grad.sum().abs() < 1e-10  # only its mean is without effect
    y = norm(linear(x))
    with torch.no_grad():
        linear.bias += 7
    torch.testing.assert_close(norm(linear(x)), y)


# verdict: wrong
def layernorm_only_helps_optimization():
    keys = 3 * randn(5, 8)
    keys[4] = torch.tensor([0.4, 0.3, 0.2, 0.1]).double() @ keys[:4]
    queries = randn(2000, 8, seed=1)
    normalized = layer_norm(keys, (8,))
    assert 4 not in (queries @ keys.T).argmax(-1)  # no query selects it
    tying = torch.linalg.lstsq(keys[:4], torch.ones(4, 1).double()).solution
    torch.testing.assert_close(keys @ tying, torch.ones(5, 1).double())  # at best
    assert set((queries @ normalized.T).argmax(-1).tolist()) == {0, 1, 2, 3, 4}
    assert (normalized.sum(-1)).abs().max() < 1e-12  # all-ones: equal scores
    assert keys.sum(-1).std() > 1
