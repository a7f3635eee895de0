import torch
from torch import nn
from torch.nn.functional import layer_norm
from transformers.models.bert.configuration_bert import BertConfig
from transformers.models.gpt2.configuration_gpt2 import GPT2Config

from snippets.layer_norm.moments import sum_of_squares, threads, welford


def randn(*shape: int, seed: int = 0, dtype=torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=dtype)


def a_shift_of_100_leaves_no_trace_in_float32():
    def change(x):
        return (layer_norm(x + 100, (10,)) - layer_norm(x, (10,))).abs().max()

    inputs = [randn(10, seed=seed, dtype=torch.float32) for seed in range(100)]
    changes = [change(x) for x in inputs]
    assert max(changes) < 1e-4  # near 1e-5
    assert max(change(x.double()) for x in inputs) < 1e-12
    return {"the least change of 100 inputs": min(changes) < 1e-6}  # not even near 0


def what_scaling_changes_is_rounding():
    x = randn(10)

    def change(eps, x=x):
        return (layer_norm(5 * x, (10,), eps=eps) - layer_norm(x, (10,), eps=eps)).abs()

    double, single = (change(1e-5, x=y).max() for y in (x, x.float()))
    assert double < 1e-4
    assert change(eps=1e-7).max() < 1e-7  # follows eps
    assert change(eps=0).max() < 1e-14  # and goes with it
    return {
        "in float64, rounding near 1e-16": double < 1e-6,
        "in float32": abs(single - double) > 0.1 * double,  # what rounding adds
    }


def layernorm_ignores_a_shift_of_the_input():
    x, norm = randn(4, 64), nn.LayerNorm(64, dtype=torch.float64)

    def change(shift):
        return (norm(x + shift) - norm(x)).abs().max()

    assert change(randn(64, seed=1)) > 1  # one vector for all tokens
    return {
        "one constant": change(5) < 1e-9,
        "another constant for each token": change(randn(4, 1, seed=1)) < 1e-9,
    }


def layernorm_ignores_any_factor():
    x = randn(512)
    y = layer_norm(x, (512,))
    assert (layer_norm(-x, (512,)) + y).abs().max() < 1e-9  # the sign flips
    assert layer_norm(0.001 * x, (512,)).std() < 0.4  # eps outweighs 1e-6
    return {
        f"a factor of {factor}": (layer_norm(factor * x, (512,)) - y).abs().max() < 1e-4
        for factor in (1000, -1, 0.001)
    }


def layernorm_outputs_mean_zero_and_variance_one():
    norm = nn.LayerNorm(16, dtype=torch.float64)
    x = 3 + 2 * randn(8, 16)
    y = norm(x)
    mean, variance = y.mean(-1), y.var(-1, correction=0)
    assert (y.norm(dim=-1) / 4 - 1).abs().max() < 1e-4  # the length is √16
    cases = {
        "initial gain and bias, the mean": mean.abs().max() < 1e-12,
        "initial gain and bias, the variance": (variance - 1).abs().max() < 2e-4,
        "a variance of 4e-6, eps of 1e-5": norm(1e-3 * x).std() > 0.7,
    }
    with torch.no_grad():
        norm.weight.copy_(1 + 0.5 * randn(16, seed=1))
        norm.bias.copy_(0.5 * randn(16, seed=2))
    y = norm(x)
    mean, variance = y.mean(-1), y.var(-1, correction=0)
    return cases | {
        "learned gain and bias, the mean": mean.abs().max() < 0.1,
        "learned gain and bias, the variance": (variance - 1).abs().max() < 0.1,
    }


def features_are_a_sample_so_divide_by_d_minus_one():
    x = randn(1000, 8)
    theirs = nn.LayerNorm(8, eps=0, dtype=x.dtype)(x)
    centred = x - x.mean(-1, keepdim=True)
    biased = centred / x.std(-1, correction=0, keepdim=True)
    unbiased = centred / x.std(-1, keepdim=True)
    torch.testing.assert_close(biased, theirs)
    torch.testing.assert_close(unbiased, (7 / 8) ** 0.5 * theirs)  # 6 % smaller
    length = torch.full_like(x[:, 0], 8**0.5)
    torch.testing.assert_close(biased.norm(dim=-1), length)
    return {
        "it agrees with PyTorch": torch.allclose(unbiased, theirs),
        "the length is √d": torch.allclose(unbiased.norm(dim=-1), length),
    }


def the_epsilon_of_layernorm_is_1e_5():
    faint = 1e-3 * randn(512)
    assert layer_norm(faint, (512,), eps=1e-5).std() < 0.4
    assert layer_norm(faint, (512,), eps=1e-12).std() > 0.99
    eps = {
        "the default of PyTorch": nn.LayerNorm(8).eps,
        "GPT-2": GPT2Config().layer_norm_epsilon,
        "BERT": BertConfig().layer_norm_eps,
    }
    assert eps["BERT"] == 1e-12
    return {name: value == 1e-5 for name, value in eps.items()}


def std_plus_epsilon_is_the_same_layernorm():
    def by_hand(x):
        return (x - x.mean(-1, True)) / (x.std(-1, keepdim=True) + 1e-5)

    one_hot = torch.tensor([1.0, 0, 0, 0])
    assert abs(by_hand(one_hot)[0] - 1.5) < 1e-4
    assert abs(layer_norm(one_hot, (4,))[0] - 3**0.5) < 1e-4
    wide = randn(4096)
    faint = 1e-4 * wide
    assert by_hand(faint).std() > 0.9 > 0.04 > layer_norm(faint, (4096,)).std()
    inputs = {"4096 features of deviation 1": wide, "4096 features of 1e-4": faint}
    return {
        name: torch.allclose(by_hand(x), layer_norm(x, x.shape), rtol=2e-4, atol=0)
        for name, x in (inputs | {"the features 1, 0, 0, 0": one_hot}).items()
    }


def normalized_shape_is_sequence_and_features():
    x = randn(2, 7, 16)
    later = x.clone()
    later[:, -1] += 10  # the last token alone
    both = nn.LayerNorm((7, 16), dtype=x.dtype)
    features = nn.LayerNorm(16, dtype=x.dtype)
    assert torch.equal(features(later)[:, 0], features(x)[:, 0])
    seen = (both(later) - both(x))[:, 0].abs().max()
    assert sum(p.numel() for p in both.parameters()) == 7 * 32  # tied to length 7
    return {
        "the first token does not see the last": seen < 0.1,
        "its parameters are those of d alone": both.weight.shape == (16,),
    }


def eval_mode_changes_layernorm():
    norm, x = nn.LayerNorm(16), randn(4, 16, dtype=torch.float32)
    return {
        "the output of one input": not torch.equal(norm.train()(x), norm.eval()(x)),
        "it stores statistics for eval": len(list(norm.buffers())) > 0,
    }


def layernorm_is_groupnorm_with_one_group():
    tokens = randn(4, 16)
    image = randn(4, 16, 5, 5)
    sequence = randn(4, 9, 16) * torch.arange(1, 10)[:, None]  # tokens of all sizes
    one_group = nn.GroupNorm(1, 16, dtype=tokens.dtype)
    grouped = one_group(sequence.transpose(1, 2)).transpose(1, 2)
    differences = {
        "inputs of shape (batch, d)": one_group(tokens) - layer_norm(tokens, (16,)),
        "images, over channels and positions": (
            one_group(image) - layer_norm(image, image.shape[1:])
        ),
        "the tokens of a sequence": grouped - layer_norm(sequence, (16,)),
    }
    assert differences["the tokens of a sequence"].abs().max() > 1
    return {name: gap.abs().max() < 1e-9 for name, gap in differences.items()}


def variance_is_mean_of_squares_minus_squared_mean():
    def relative_error(mean):
        x = mean + randn(64, 256, dtype=torch.float32)
        true = x.double().var(-1, correction=0)
        return ((sum_of_squares(x) - true).abs() / true).max()  # E[x²] − E[x]²

    rows = 3000 + randn(64, 256, dtype=torch.float32)
    return {
        "variance 1, mean 0": relative_error(0) < 1e-5,
        "variance 1, mean 100": relative_error(100) < 1e-3,
        "variance 1, mean 1000": relative_error(1000) < 0.5,  # no digit is right
        "variance 1, mean 3000": not sum_of_squares(rows).sqrt().isnan().any(),
    }


def clamping_a_negative_variance_repairs_it():
    x = 3000 + randn(64, 256, dtype=torch.float32)
    variance = sum_of_squares(x).clamp(min=0)  # E[x²] − E[x]²
    y = (x - x.mean(-1, keepdim=True)) * torch.rsqrt(variance + 1e-5)[:, None]
    assert y.isfinite().all()
    # True rows stay below 16, the root of 256.
    return {"256 features of mean 3000": y.abs().max() < 100}


def welford_is_the_most_exact_way():
    x = 1000 + randn(64, 256, dtype=torch.float32)
    true = x.double().var(-1, correction=0)

    def error(variance):
        return ((variance - true).abs() / true).max()

    two_passes = error((x - x.mean(-1, keepdim=True)).square().mean(-1))
    chain, merged = error(welford(x).spread / 256), error(threads(x).spread / 256)
    assert chain < 1e-3 < 0.5 < error(sum_of_squares(x))
    return {
        "one chain, against two passes": chain <= two_passes,
        "one chain, against short ones merged": chain <= merged,
        "short chains merged, against two passes": merged <= two_passes,
    }


def float16_inputs_overflow_in_layernorm():
    x = (300 * randn(4, 64)).half()
    variance = (x - x.mean(-1, keepdim=True)).square().mean(-1)
    y, upcast = layer_norm(x, (64,)), layer_norm(x.float(), (64,)).half()
    assert 0.95 < y.float().std() < 1.05
    same = torch.allclose(y, upcast, rtol=1e-3, atol=1e-5)  # to within a rounding
    return {
        "by hand, each step in float16": variance.isinf().all(),
        "PyTorch's own on a CPU": not same,
    }


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
    return {
        "variance in one pass, a mean of 3000": gap(one_pass, x + 3000) < 0.1,
        "eps beside the root, inputs of 1e-4": gap(eps_outside, x / 1e4) < 0.1,
    }


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
    return {
        "the gradient sums to zero": gradient.sum(-1).abs().min() < 1,
        "it has no part along the centred input": along_x.abs().max() < 1,
    }


def the_gradient_is_orthogonal_to_the_input():
    def cosines(eps, mean):
        x = (mean + randn(4, 32)).requires_grad_()
        layer_norm(x, (32,), eps=eps).pow(3).sum().backward()
        centred = x.detach() - x.detach().mean(-1, True)
        return [
            torch.cosine_similarity(x.grad, other, dim=-1).abs().max()
            for other in (torch.ones_like(x), centred, x.detach())
        ]

    ones, centred, x = cosines(eps=0.1, mean=5)
    assert ones < 1e-12 and centred > 0.01 and x < centred
    return {
        "without eps": max(cosines(eps=0, mean=5)) < 1e-12,
        "a variance of 1, eps of 0.1": x < 0.001,
    }


def a_bias_before_layernorm_is_useless():
    linear, norm = nn.Linear(4, 8).double(), nn.LayerNorm(8).double()
    x = randn(16, 4)
    norm(linear(x)).pow(3).sum().backward()
    assert linear.bias.grad.sum().abs() < 1e-10  # only its mean is without effect
    y = norm(linear(x))
    without = norm(x @ linear.weight.T)
    with torch.no_grad():
        linear.bias += 7
    torch.testing.assert_close(norm(linear(x)), y)
    return {
        "the bias has no gradient": linear.bias.grad.abs().max() < 0.01,
        "without it the output is the same": (without - y).abs().max() < 0.01,
    }


def layernorm_only_helps_optimization():
    keys = 3 * randn(5, 8)
    keys[4] = torch.tensor([0.4, 0.3, 0.2, 0.1]).double() @ keys[:4]
    queries = randn(2000, 8, seed=1)
    normalized = layer_norm(keys, (8,))
    tying = torch.linalg.lstsq(keys[:4], torch.ones(4, 1).double()).solution
    torch.testing.assert_close(keys @ tying, torch.ones(5, 1).double())  # at best
    assert set((queries @ normalized.T).argmax(-1).tolist()) == {0, 1, 2, 3, 4}
    assert normalized.sum(-1).abs().max() < 1e-12  # all-ones: equal scores
    return {
        "without it a query can select an average key": 4
        in (queries @ keys.T).argmax(-1),
        "without it the all-ones query ties all keys": keys.sum(-1).std() < 1,
    }
