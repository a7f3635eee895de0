import math
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F
from transformers import GPT2Config, LlamaConfig
from transformers.models.gpt2.modeling_gpt2 import GPT2Block
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.olmo.modeling_olmo import OlmoLayerNorm


# verdict: holds-when
def normalizing_is_a_z_score():
    torch.manual_seed(0)
    z = torch.randn(512, dtype=torch.float64)
    z = (z - z.mean()) / z.std(correction=0)
    x = 2 + 5 * z  # so z are its z-scores
    torch.testing.assert_close(F.layer_norm(x, (512,), eps=0), z)
    batch = F.batch_norm(x[:, None], None, None, training=True, eps=1e-12)
    torch.testing.assert_close(batch[:, 0], z)
    y = F.rms_norm(x, (512,), eps=0)
    assert abs(y.mean() - 2 / math.sqrt(2**2 + 5**2)) < 1e-9  # 0.37, not 0
    assert abs(y.square().mean() - 1) < 1e-9


# verdict: wrong
def normalizing_makes_activations_gaussian():
    torch.manual_seed(0)
    x = torch.rand(64, 4096, dtype=torch.float64).log().neg()  # exponential
    y = F.layer_norm(x, (4096,))

    def skewness(v):
        z = (v - v.mean(-1, keepdim=True)) / v.std(-1, correction=0, keepdim=True)
        return z.pow(3).mean(-1)

    torch.testing.assert_close(skewness(y), skewness(x))
    assert (skewness(y) > 1).all()  # a Gaussian has 0


# verdict: wrong
def normalizing_maps_to_zero_one():
    torch.manual_seed(0)
    y = F.layer_norm(torch.randn(512, dtype=torch.float64), (512,))
    assert y.min() < -2 and y.max() > 2
    assert (y.abs() > 1).double().mean() > 0.25  # a quarter lies outside [-1, 1]
    spike = F.layer_norm(torch.eye(512, dtype=torch.float64)[0], (512,), eps=0)
    assert abs(spike.max() - math.sqrt(511)) < 1e-9  # the largest possible value


# verdict: wrong
def normalizing_decorrelates_features():
    torch.manual_seed(0)
    x = torch.randn(1000, 2, dtype=torch.float64)
    x[:, 1] += 2 * x[:, 0]
    y = F.batch_norm(x, None, None, training=True)
    before, after = torch.corrcoef(x.T)[0, 1], torch.corrcoef(y.T)[0, 1]
    assert before > 0.85 and abs(after - before) < 1e-9


# verdict: holds-when
def smoother_loss_allows_larger_steps():
    torch.manual_seed(0)
    x, g = torch.randn(2, 256, dtype=torch.float64)
    ratios = []
    for sigma in (10.0, 0.1):
        y = (sigma * x)[:, None].requires_grad_()
        z = F.batch_norm(y, None, None, training=True, eps=1e-12)  # gain 1
        (grad,) = torch.autograd.grad(z, y, g[:, None])
        # the bound: at most gain / sigma times the gradient behind the norm
        assert grad.norm() <= g.norm() / y.std(correction=0)
        ratios.append(grad.norm() / g.norm())
    assert ratios[0] < 0.2  # smaller where the input is wide
    assert ratios[1] > 5  # larger where it is narrow


# verdict: holds-when
def without_norms_activations_explode():
    d, depth = 128, 30
    torch.manual_seed(0)
    x = torch.randn(64, d, dtype=torch.float64)
    for variance, low, high in ((0.5, 0, 1e-8), (2, 0.5, 2), (8, 1e8, math.inf)):
        h = x
        for _ in range(depth):
            weight = math.sqrt(variance / d) * torch.randn(d, d, dtype=torch.float64)
            h = torch.relu(h @ weight)
        rms = h.square().mean().sqrt()  # its square: (variance / 2) ** 30
        assert low <= rms < high


# verdict: holds
def a_sigmoid_dies_at_large_inputs():
    x = torch.tensor([0, 5, 20, -300], dtype=torch.float64, requires_grad=True)
    torch.sigmoid(x).sum().backward()
    assert x.grad[0] == 0.25 and 0.006 < x.grad[1] < 0.007 < 0.01
    assert 2e-9 < x.grad[2] < 2.1e-9 and x.grad[3] < 1e-100


# verdict: wrong
def norms_keep_sigmoids_of_language_models_alive():
    assert LlamaConfig().hidden_act == "silu"
    assert GPT2Config().activation_function == "gelu_new"  # GELU by a tanh
    x = torch.tensor([300.0, -300.0], requires_grad=True)
    for activation in (F.silu, lambda v: F.gelu(v, approximate="tanh")):
        (slope,) = torch.autograd.grad(activation(x).sum(), x)
        assert slope.tolist() == [1, 0]  # as for ReLU
    for logits in ([300.0, 0.0], [0.0, 300.0]):
        logits = torch.tensor(logits, requires_grad=True)
        (grad,) = torch.autograd.grad(logits.softmax(0)[0], logits)
        assert (grad == 0).all()  # softmax is what saturates


# verdict: wrong
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
    assert losses[-1] < losses[0] / 2  # 100 layers, no norm, no warm-up


# verdict: holds-when
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

    assert all(0.1 < gradient(layer_norm, depth) < 10 for depth in (20, 40, 60))
    at_20, at_40, at_60 = (gradient(batch_norm, depth) for depth in (20, 40, 60))
    assert at_20 > 5 and at_40 > 5 * at_20 and at_60 > 5 * at_40


# verdict: wrong
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
    assert shares[0] > 0.7 and shares[-1] < 0.05  # the differences do


# verdict: holds-when
def norms_make_initialization_irrelevant():
    torch.manual_seed(0)
    x, target, weight, stream = torch.randn(4, 32, 32, dtype=torch.float64)
    outputs, turns, sums = [], [], []
    for factor in (0.1, 1.0, 10.0):
        w = (factor * weight).requires_grad_()
        y = F.layer_norm(x @ w.T, (32,), eps=0)
        (grad,) = torch.autograd.grad((y - target).square().mean(), w)
        outputs.append(y)
        turns.append(grad.norm() / w.norm() * factor**2)  # a step's angle, times c²
        sums.append(F.layer_norm(stream + x @ w.T, (32,), eps=0))
    for i in (1, 2):
        torch.testing.assert_close(outputs[i], outputs[0])  # the same function
        torch.testing.assert_close(turns[i], turns[0])  # other steps
        assert (sums[i] - sums[0]).abs().max() > 0.3  # in a stream: another function


# verdict: holds-when
def normalizing_the_input_once_is_enough():
    torch.manual_seed(0)
    x = F.layer_norm(torch.randn(64, 256), (256,))  # root mean square 1
    for he, low, high in ((False, 0, 0.04), (True, 0.7, 1.4)):
        h = x
        for _ in range(6):
            layer = nn.Linear(256, 256)
            if he:
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            h = torch.relu(layer(h))
        assert low < h.square().mean().sqrt() < high


# verdict: holds-when
def epsilon_is_only_against_division_by_zero():
    torch.manual_seed(0)
    x = torch.randn(4096, dtype=torch.float64)
    x = x / x.square().mean().sqrt()  # root mean square 1
    for scale, out in ((1.0, 1.0), (1e-3, 0.7071), (1e-4, 0.0995)):
        y = F.rms_norm(scale * x, (4096,), eps=1e-6)
        assert abs(y.square().mean().sqrt() - out) < 1e-4


# verdict: wrong
def layer_norm_starts_as_the_identity():
    torch.manual_seed(0)
    norm = nn.LayerNorm(512)  # gain 1, bias 0
    z = torch.randn(1000, 512)
    for x, change in ((z, 0), (3 * z, 2 / 3), (2 + 5 * z, 0.83)):
        found = (norm(x) - x).norm() / x.norm()  # as a share of the length
        assert abs(found - change) < 0.1
    embedding = 0.02 * z  # as GPT-2 draws it: the floor of epsilon takes a hundredth
    assert abs(norm(embedding).norm() / embedding.norm() - 49.4) < 0.5


# verdict: holds
def layer_norm_sees_one_token():
    torch.manual_seed(0)
    norm = nn.LayerNorm(16).double()
    x = torch.randn(8, 5, 16, dtype=torch.float64)  # (batch, tokens, d)
    crowd = x.clone()
    crowd[1:], crowd[:, 1:] = 100, -7  # everybody but the first token
    torch.testing.assert_close(norm(crowd)[0, 0], norm(x)[0, 0])
    torch.testing.assert_close(norm(x[0, 0]), norm(x)[0, 0])  # alone


# verdict: wrong
def each_norm_has_gain_and_bias():
    def names(norm):
        return {name for name, _ in norm.named_parameters()}

    block = GPT2Block(GPT2Config(n_embd=8, n_head=2))
    assert names(block.ln_1) == names(block.ln_2) == {"weight", "bias"}
    assert names(LlamaRMSNorm(8)) == {"weight"}  # the gain
    assert names(OlmoLayerNorm(8)) == set()


# verdict: holds-when
def gain_and_bias_can_undo_the_norm():
    torch.manual_seed(0)
    x = 3 + 2 * torch.randn(64, 8, dtype=torch.float64)
    mean, std = x.mean(0), x.std(0, correction=0)
    y = F.batch_norm(x, None, None, weight=std, bias=mean, training=True, eps=1e-9)
    torch.testing.assert_close(y, x)  # BatchNorm, this batch: undone
    gain, bias = torch.randn(2, 8, dtype=torch.float64)
    once, louder = (F.layer_norm(v, (8,), gain, bias, eps=0) for v in (x, 10 * x))
    torch.testing.assert_close(once, louder)  # LayerNorm: the size is gone
    once, louder = (F.rms_norm(v, (8,), gain, eps=0) for v in (x, 10 * x))
    torch.testing.assert_close(once, louder)  # RMSNorm: likewise


# verdict: holds-when
def the_scale_of_a_weight_has_no_effect():
    torch.manual_seed(0)
    stream, h, weight = torch.randn(3, 16, 16, dtype=torch.float64)

    def norm(v):
        return F.layer_norm(v, (16,), eps=0)

    torch.testing.assert_close(norm(h @ (10 * weight)), norm(h @ weight))
    for other in (norm(h @ -weight), norm(h) @ (10 * weight)):
        assert (other - norm(h @ weight)).abs().max() > 1
    branch = h @ weight  # a Pre-Norm branch is added to the stream first
    change = norm(stream + 10 * branch) - norm(stream + branch)
    assert change.abs().max() > 0.3


# verdict: holds
def the_gradient_shrinks_as_the_weight_grows():
    torch.manual_seed(0)
    x, target, weight = torch.randn(3, 16, 16, dtype=torch.float64)
    products = []
    for factor in (0.5, 1.0, 8.0):
        w = (factor * weight).requires_grad_()
        y = F.layer_norm(x @ w.T, (16,), eps=0)
        (grad,) = torch.autograd.grad((y - target).square().mean(), w)
        assert abs((grad * w).sum()) < 1e-10 * grad.norm() * w.norm()
        products.append(factor * grad.norm())
    torch.testing.assert_close(products[0], products[1])
    torch.testing.assert_close(products[0], products[2])


# verdict: wrong
def scale_invariance_keeps_weights_from_growing():
    torch.manual_seed(0)
    for decay in (0.0, 0.05):
        weight = torch.randn(16, 16, dtype=torch.float64)
        lengths = [weight.norm()]
        for _ in range(40):
            x, target = torch.randn(2, 32, 16, dtype=torch.float64)  # a noisy batch
            w = weight.requires_grad_()
            y = F.layer_norm(x @ w.T, (16,), eps=0)
            (grad,) = torch.autograd.grad((y - target).square().mean(), w)
            weight = (w - 1.0 * (grad + decay * w)).detach()
            lengths.append(weight.norm())
        if decay == 0:
            assert all(b > a for a, b in pairwise(lengths))  # at every step
        else:
            assert lengths[-1] < lengths[0] / 2


# verdict: wrong
def decay_behind_a_norm_simplifies_the_function():
    torch.manual_seed(0)
    x, target, weight = torch.randn(3, 16, 16, dtype=torch.float64)

    def output(w):
        return F.layer_norm(x @ w.T, (16,), eps=0)

    shrunk = 0.5 * weight  # what decay does, in the end
    torch.testing.assert_close(output(shrunk), output(weight))
    changes = []
    for start in (weight, shrunk):
        w = start.clone().requires_grad_()
        (grad,) = torch.autograd.grad((output(w) - target).square().mean(), w)
        changes.append((output(w - 1e-6 * grad) - output(w)).norm())
    torch.testing.assert_close(changes[1], 4 * changes[0], rtol=1e-3, atol=0)


# verdict: holds-when
def the_effective_learning_rate_is_lr_over_norm_squared():
    torch.manual_seed(0)
    x, target, weight = torch.randn(3, 16, 16, dtype=torch.float64)
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
        ratio = angles[0] / angles[1]
        torch.testing.assert_close(ratio.item(), 10.0**power, rtol=0.01, atol=0)


# verdict: holds-when
def normalization_is_regularization():
    torch.manual_seed(0)
    x = torch.randn(8, 4, dtype=torch.float64)
    others = torch.cat([x[:1], torch.randn(7, 4, dtype=torch.float64)])
    batch = nn.BatchNorm1d(4).double()
    assert (batch(x)[0] - batch(others)[0]).abs().max() > 0.1  # noise
    for norm in (batch.eval(), nn.LayerNorm(4).double(), nn.RMSNorm(4).double()):
        torch.testing.assert_close(norm(x)[0], norm(others)[0])  # none
