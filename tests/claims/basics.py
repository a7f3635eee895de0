import math
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F
from transformers import GPT2Config, LlamaConfig
from transformers.models.gpt2.modeling_gpt2 import GPT2Block
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.olmo.modeling_olmo import OlmoLayerNorm


def normalizing_is_a_z_score():
    torch.manual_seed(0)
    z = torch.randn(512, dtype=torch.float64)
    z = (z - z.mean()) / z.std(correction=0)
    x = 2 + 5 * z  # so z are its z-scores
    batch = F.batch_norm(x[:, None], None, None, training=True, eps=1e-12)
    y = F.rms_norm(x, (512,), eps=0)
    assert abs(y.mean() - 2 / math.sqrt(2**2 + 5**2)) < 1e-9  # 0.37, not 0
    assert abs(y.square().mean() - 1) < 1e-9
    return {
        "LayerNorm": torch.allclose(F.layer_norm(x, (512,), eps=0), z),
        "BatchNorm in training": torch.allclose(batch[:, 0], z),
        "RMSNorm": torch.allclose(y, z),
    }


def normalizing_makes_activations_gaussian():
    torch.manual_seed(0)
    x = torch.rand(64, 4096, dtype=torch.float64).log().neg()  # exponential
    y = F.layer_norm(x, (4096,))

    def skewness(v):
        z = (v - v.mean(-1, keepdim=True)) / v.std(-1, correction=0, keepdim=True)
        return z.pow(3).mean(-1)

    torch.testing.assert_close(skewness(y), skewness(x))
    return {"skewed activations": skewness(y).min() < 1}  # a Gaussian has 0


def normalizing_maps_to_zero_one():
    torch.manual_seed(0)
    y = F.layer_norm(torch.randn(512, dtype=torch.float64), (512,))
    assert y.min() < -2 and y.max() > 2
    assert (y.abs() > 1).double().mean() > 0.25  # a quarter lies outside [-1, 1]
    spike = F.layer_norm(torch.eye(512, dtype=torch.float64)[0], (512,), eps=0)
    assert abs(spike.max() - math.sqrt(511)) < 1e-9  # the largest possible value
    return {
        "Gaussian numbers": y.min() >= 0 and y.max() <= 1,
        "a single spike": spike.min() >= 0 and spike.max() <= 1,
    }


def normalizing_decorrelates_features():
    torch.manual_seed(0)
    x = torch.randn(1000, 2, dtype=torch.float64)
    x[:, 1] += 2 * x[:, 0]
    y = F.batch_norm(x, None, None, training=True)
    before, after = torch.corrcoef(x.T)[0, 1], torch.corrcoef(y.T)[0, 1]
    assert before > 0.85
    return {"BatchNorm changes a correlation": abs(after - before) > 1e-9}


def smoother_loss_allows_larger_steps():
    torch.manual_seed(0)
    x, g = torch.randn(2, 256, dtype=torch.float64)
    cases = {}
    for sigma, low, high in ((10.0, 0, 0.2), (0.1, 5, math.inf)):
        y = (sigma * x)[:, None].requires_grad_()
        z = F.batch_norm(y, None, None, training=True, eps=1e-12)  # gain 1
        (grad,) = torch.autograd.grad(z, y, g[:, None])
        # the bound: at most gain / sigma times the gradient behind the norm
        assert grad.norm() <= g.norm() / y.std(correction=0)
        assert low < grad.norm() / g.norm() < high
        cases[f"input of deviation {sigma:g}"] = grad.norm() < g.norm()
    return cases


def without_norms_activations_explode():
    d, depth = 128, 30
    torch.manual_seed(0)
    x = torch.randn(64, d, dtype=torch.float64)
    bounds = {0.5: (0, 1e-8), 2: (0.5, 2), 8: (1e8, math.inf)}
    cases = {}
    for variance, (low, high) in bounds.items():
        h = x
        for _ in range(depth):
            weight = math.sqrt(variance / d) * torch.randn(d, d, dtype=torch.float64)
            h = torch.relu(h @ weight)
        rms = h.square().mean().sqrt()  # its square: (variance / 2) ** 30
        assert low <= rms < high
        cases[f"weights of variance {variance}/d"] = rms > 1e8
    return cases


def a_sigmoid_dies_at_large_inputs():
    x = torch.tensor([0, 5, 20, -300], dtype=torch.float64, requires_grad=True)
    torch.sigmoid(x).sum().backward()
    assert x.grad[0] == 0.25 and 0.006 < x.grad[1] < 0.007
    assert x.grad[2] > 2e-9
    return {
        "at 5": x.grad[1] < 0.01,
        "at 20": x.grad[2] < 2.1e-9,
        "at -300": x.grad[3] < 1e-100,
    }


def norms_keep_sigmoids_of_language_models_alive():
    assert LlamaConfig().hidden_act == "silu"
    assert GPT2Config().activation_function == "gelu_new"  # GELU by a tanh
    for logits in ([300.0, 0.0], [0.0, 300.0]):
        logits = torch.tensor(logits, requires_grad=True)
        (grad,) = torch.autograd.grad(logits.softmax(0)[0], logits)
        assert (grad == 0).all()  # softmax is what saturates

    def slopes(activation):
        x = torch.tensor([300.0, -300.0], requires_grad=True)
        return torch.autograd.grad(activation(x).sum(), x)[0].tolist()

    gelu = slopes(lambda v: F.gelu(v, approximate="tanh"))
    silu = slopes(F.silu)
    assert slopes(torch.sigmoid) == slopes(torch.tanh) == [0, 0]
    assert gelu == silu == slopes(torch.relu) == [1, 0]
    return {"GPT-2 is flat at 300": gelu[0] == 0, "Llama is flat at 300": silu[0] == 0}


def deep_networks_need_norms():
    torch.manual_seed(0)
    x, target = torch.randn(2, 32, 16)
    layers = [nn.Linear(16, 16) for _ in range(100)]
    alphas = nn.Parameter(torch.zeros(100))  # ReZero: x + alpha f(x), from 0
    params = [alphas, *(p for layer in layers for p in layer.parameters())]
    optimizer = torch.optim.Adam(params, lr=3e-3)
    losses = []
    for _ in range(30):
        h = x
        for alpha, layer in zip(alphas, layers, strict=True):
            h = h + alpha * torch.relu(layer(h))
        losses.append((h - target).square().mean())
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    # no norm and no warm-up: does the loss stay where it was?
    return {"100 layers that start at zero": losses[-1] > losses[0] / 2}


def a_norm_in_every_layer_makes_any_depth_stable():
    def gradient(norm, depth):  # at the input, for one of size 1 at the output
        torch.manual_seed(0)
        h = x = torch.randn(64, 64, dtype=torch.float64, requires_grad=True)
        for _ in range(depth):
            h = torch.relu(norm(h @ torch.randn(64, 64, dtype=torch.float64)))
        (grad,) = torch.autograd.grad(h, x, torch.randn_like(h))
        return grad.square().mean().sqrt().item()

    def batch_norm(v):
        return F.batch_norm(v, None, None, training=True)

    def layer_norm(v):
        return F.layer_norm(v, (64,))

    depths = (20, 40, 60)
    at_20, at_40, at_60 = (gradient(batch_norm, depth) for depth in depths)
    assert at_20 > 5 and at_40 > 5 * at_20 and at_60 > 5 * at_40
    return {
        "LayerNorm": all(0.1 < gradient(layer_norm, depth) < 10 for depth in depths),
        "BatchNorm": all(0.1 < size < 10 for size in (at_20, at_40, at_60)),
    }


def a_norm_keeps_the_inputs_apart():
    torch.manual_seed(0)
    h = torch.randn(64, 64, dtype=torch.float64)  # 64 inputs
    shares = []
    for _ in range(300):
        weight = torch.randn(64, 64, dtype=torch.float64)
        h = torch.relu(F.layer_norm(h @ weight, (64,)))
        rms = h.square().mean().sqrt()
        assert 0.5 < rms < 1  # the size never fades
        differences = h.var(dim=0).mean().sqrt()  # of a feature between inputs
        shares.append(differences / rms)
    assert shares[0] > 0.7
    return {"what tells 64 inputs apart, after 300 layers": shares[-1] > 0.05}


def norms_make_initialization_irrelevant():
    torch.manual_seed(0)
    x, target, weight, stream = torch.randn(4, 32, 32, dtype=torch.float64)
    outputs, angles, sums = [], [], []
    for factor in (0.1, 1.0, 10.0):
        w = (factor * weight).requires_grad_()
        y = F.layer_norm(x @ w.T, (32,), eps=0)
        (grad,) = torch.autograd.grad((y - target).square().mean(), w)
        outputs.append(y)
        angles.append(grad.norm() / w.norm())  # how far a step turns the weight
        sums.append(F.layer_norm(stream + x @ w.T, (32,), eps=0))
    for i, square in ((1, 10**2), (2, 100**2)):  # of the length, over the first's
        torch.testing.assert_close(angles[i], angles[0] / square)
        assert (sums[i] - sums[0]).abs().max() > 0.3

    def same(results):
        return all(torch.allclose(result, results[0]) for result in results)

    return {
        "the output at the start": same(outputs),
        "a step of SGD": same(angles),
        "a weight that writes into a stream": same(sums),
    }


def normalizing_the_input_once_is_enough():
    torch.manual_seed(0)
    x = F.layer_norm(torch.randn(64, 256), (256,))  # root mean square 1
    sizes = {}
    for initialization in ("PyTorch's default", "He's"):
        h = x
        for _ in range(6):
            layer = nn.Linear(256, 256)
            if initialization == "He's":
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            h = torch.relu(layer(h))
        sizes[initialization] = h.square().mean().sqrt()
    assert sizes["PyTorch's default"] < 0.04
    return {f"{name} initialization": 0.7 < size < 1.4 for name, size in sizes.items()}


def epsilon_is_only_against_division_by_zero():
    torch.manual_seed(0)
    x = torch.randn(4096, dtype=torch.float64)
    x = x / x.square().mean().sqrt()  # root mean square 1
    cases = {}
    for scale, out in ((1.0, 1.0), (1e-3, 0.7071), (1e-4, 0.0995)):
        size = F.rms_norm(scale * x, (4096,), eps=1e-6).square().mean().sqrt()
        assert abs(size - out) < 1e-4
        cases[f"a row of root mean square {scale:g}"] = abs(size - 1) < 1e-4
    return cases


def layer_norm_starts_as_the_identity():
    torch.manual_seed(0)
    norm = nn.LayerNorm(512)  # gain 1, bias 0
    z = torch.randn(1000, 512)

    def change(x):  # as a share of the length
        return (norm(x) - x).norm() / x.norm()

    assert change(z) < 0.1  # what is normalized already passes
    embedding = 0.02 * z  # as GPT-2 draws it: the floor of epsilon takes a hundredth
    assert abs(norm(embedding).norm() / embedding.norm() - 49.4) < 0.5
    assert abs(change(3 * z) - 2 / 3) < 0.1 and abs(change(2 + 5 * z) - 0.83) < 0.1
    return {
        "deviation 3": change(3 * z) < 0.1,
        "mean 2, deviation 5": change(2 + 5 * z) < 0.1,
        "embeddings drawn at 0.02": change(embedding) < 0.1,
    }


def layer_norm_sees_one_token():
    torch.manual_seed(0)
    norm = nn.LayerNorm(16).double()
    x = torch.randn(8, 5, 16, dtype=torch.float64)  # (batch, tokens, d)
    samples, tokens = x.clone(), x.clone()
    samples[1:], tokens[:, 1:] = 100, -7  # everybody but the first
    y = norm(x)[0, 0]
    return {
        "other samples in the batch": torch.allclose(norm(samples)[0, 0], y),
        "other tokens behind it": torch.allclose(norm(tokens)[0, 0], y),
        "a token alone": torch.allclose(norm(x[0, 0]), y),
    }


def each_norm_has_gain_and_bias():
    def names(norm):
        return {name for name, _ in norm.named_parameters()}

    both = {"weight", "bias"}
    block = GPT2Block(GPT2Config(n_embd=8, n_head=2))
    llama, olmo = LlamaRMSNorm(8), OlmoLayerNorm(8)
    assert names(llama) == {"weight"} and names(olmo) == set()  # a gain; nothing
    return {
        "LayerNorm of GPT-2": names(block.ln_1) == names(block.ln_2) == both,
        "RMSNorm of Llama": names(llama) == both,
        "LayerNorm of OLMo": names(olmo) == both,
    }


def gain_and_bias_can_undo_the_norm():
    torch.manual_seed(0)
    x = 3 + 2 * torch.randn(64, 8, dtype=torch.float64)
    mean, std = x.mean(0), x.std(0, correction=0)
    y = F.batch_norm(x, None, None, weight=std, bias=mean, training=True, eps=1e-9)
    gain, bias = torch.randn(2, 8, dtype=torch.float64)

    def layer_norm(v):
        return F.layer_norm(v, (8,), gain, bias, eps=0)

    def rms_norm(v):
        return F.rms_norm(v, (8,), gain, eps=0)

    return {
        "BatchNorm, a fixed batch": torch.allclose(y, x),
        "LayerNorm, x and 10 x": not torch.allclose(layer_norm(x), layer_norm(10 * x)),
        "RMSNorm, x and 10 x": not torch.allclose(rms_norm(x), rms_norm(10 * x)),
    }


def the_scale_of_a_weight_has_no_effect():
    torch.manual_seed(0)
    stream, h, weight = torch.randn(3, 16, 16, dtype=torch.float64)

    def norm(v):
        return F.layer_norm(v, (16,), eps=0)

    def gap(y, z):
        return (y - z).abs().max()

    y, branch = norm(h @ weight), h @ weight
    after = norm(stream + 10 * branch)  # a Pre-Norm branch is added to the stream first
    return {
        "norm(W h), ten times W": gap(norm(h @ (10 * weight)), y) < 1e-6,
        "norm(W h), a negative factor": gap(norm(h @ -weight), y) < 1,
        "a weight after the norm": gap(norm(h) @ (10 * weight), norm(h) @ weight) < 1,
        "a branch added to a stream": gap(after, norm(stream + branch)) < 0.3,
    }


def the_gradient_shrinks_as_the_weight_grows():
    torch.manual_seed(0)
    x, target, weight = torch.randn(3, 16, 16, dtype=torch.float64)
    products = {}
    for factor in (1.0, 0.5, 8.0):
        w = (factor * weight).requires_grad_()
        y = F.layer_norm(x @ w.T, (16,), eps=0)
        (grad,) = torch.autograd.grad((y - target).square().mean(), w)
        assert abs((grad * w).sum()) < 1e-10 * grad.norm() * w.norm()  # a right angle
        products[factor] = factor * grad.norm()
    return {
        f"{factor:g} times the length": torch.allclose(products[factor], products[1])
        for factor in (0.5, 8)
    }


def scale_invariance_keeps_weights_from_growing():
    torch.manual_seed(0)
    lengths = {}
    for decay in (0.0, 0.05):
        weight = torch.randn(16, 16, dtype=torch.float64)
        lengths[decay] = [weight.norm()]
        for _ in range(40):
            x, target = torch.randn(2, 32, 16, dtype=torch.float64)  # a noisy batch
            w = weight.requires_grad_()
            y = F.layer_norm(x @ w.T, (16,), eps=0)
            (grad,) = torch.autograd.grad((y - target).square().mean(), w)
            weight = (w - 1.0 * (grad + decay * w)).detach()
            lengths[decay].append(weight.norm())
    assert lengths[0.05][-1] < lengths[0.05][0] / 2  # decay does it
    shorter = [b <= a for a, b in pairwise(lengths[0])]
    return {"any of 40 steps of SGD without growth": any(shorter)}


def decay_behind_a_norm_simplifies_the_function():
    torch.manual_seed(0)
    x, target, weight = torch.randn(3, 16, 16, dtype=torch.float64)

    def output(w):
        return F.layer_norm(x @ w.T, (16,), eps=0)

    shrunk = 0.5 * weight  # what decay does, in the end
    changes = []
    for start in (weight, shrunk):
        w = start.clone().requires_grad_()
        (grad,) = torch.autograd.grad((output(w) - target).square().mean(), w)
        changes.append((output(w - 1e-6 * grad) - output(w)).norm())
    torch.testing.assert_close(changes[1], 4 * changes[0], rtol=1e-3, atol=0)
    change = (output(shrunk) - output(weight)).abs().max()
    return {"half the weight is another function": change > 1e-7}


def the_effective_learning_rate_is_lr_over_norm_squared():
    torch.manual_seed(0)
    x, target, weight = torch.randn(3, 16, 16, dtype=torch.float64)
    cases = {}
    for optimizer, power in ((torch.optim.SGD, 2), (torch.optim.Adam, 1)):
        angles = []
        for factor in (1.0, 10.0):
            w = nn.Parameter(factor * weight)
            step = optimizer([w], lr=1e-4)
            y = F.layer_norm(x @ w.T, (16,), eps=0)
            (y - target).square().mean().backward()
            step.step()
            turned = w / w.norm() - weight / weight.norm()
            angles.append(turned.norm())
        ratio = (angles[0] / angles[1]).item()
        assert math.isclose(ratio, 10.0**power, rel_tol=0.01)
        cases[optimizer.__name__] = math.isclose(ratio, 10.0**2, rel_tol=0.01)
    return cases


def normalization_is_regularization():
    torch.manual_seed(0)
    x = torch.randn(8, 4, dtype=torch.float64)
    others = torch.cat([x[:1], torch.randn(7, 4, dtype=torch.float64)])

    def noise(norm):  # in the output of one sample, from the others of its batch
        return (norm(x)[0] - norm(others)[0]).abs().max()

    batch = nn.BatchNorm1d(4).double()
    return {
        "BatchNorm in training": noise(batch) > 0.1,
        "BatchNorm in evaluation": noise(batch.eval()) > 1e-7,
        "LayerNorm": noise(nn.LayerNorm(4).double()) > 1e-7,
        "RMSNorm": noise(nn.RMSNorm(4).double()) > 1e-7,
    }
