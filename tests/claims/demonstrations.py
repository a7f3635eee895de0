import math

import torch
from torch import nn
from torch.nn import functional as F

from snippets.rms_norm.reference import RMSNorm
from snippets.transformer_block.decoder import Decoder, Sizes


def a_linear_layer_scales_by_root_in_over_out():
    torch.manual_seed(0)
    cases = {}
    for d_in, d_out in ((512, 512), (512, 2048), (2048, 512)):
        y = torch.randn(64, d_in) @ torch.randn(d_in, d_out)
        assert abs(y.std() / math.sqrt(d_in) - 1) < 0.03  # d_out plays no part
        cases[f"{d_in} to {d_out} features"] = y.std() < 10 * math.sqrt(d_in / d_out)
    assert round(math.sqrt(512), 1) == 22.6
    weight = nn.Linear(512, 512).weight
    assert abs(weight.std() / math.sqrt(1 / (3 * 512)) - 1) < 0.01  # not 1
    assert weight.abs().max() <= 1 / math.sqrt(512)
    return cases


def relu_halves_the_variance():
    def halved(statistic, x):
        return abs(statistic(torch.relu(x)) / statistic(x) - 0.5) < 0.005

    def mean_square(v):
        return v.square().mean()

    torch.manual_seed(0)
    x = torch.randn(1_000_000)
    y, lifted = torch.relu(x), 5 + x
    share = mean_square(y) / mean_square(x)
    assert abs(share.sqrt() - math.sqrt(0.5)) < 0.005  # 0.71
    assert abs(y.var() / x.var() - (0.5 - 0.5 / math.pi)) < 0.005  # 0.34
    assert torch.relu(lifted).std() / lifted.std() > 0.99  # nearly nothing to cut
    return {
        "mean square of Gaussian inputs": halved(mean_square, x),
        "variance of Gaussian inputs": halved(torch.var, x),
        "variance of inputs far above zero": halved(torch.var, lifted),
    }


def the_size_decays_geometrically():
    def rms(v):
        return v.square().mean().sqrt()

    torch.manual_seed(0)
    d = 512
    h = free = torch.randn(64, d)
    ratios = {"without biases": [], "with the default biases": []}
    for depth in range(1, 13):
        layer = nn.Linear(d, d)
        h = torch.relu(layer(h))
        free = torch.relu(F.linear(free, layer.weight))  # no bias
        for stack, v in zip(ratios, (free, h), strict=True):
            ratios[stack].append(rms(v) * 6 ** (depth / 2))  # 1/√6 a layer
    assert abs(rms(h) / math.sqrt(1 / (5 * d)) - 1) < 0.05  # the biases' floor
    assert rms(free) < 1e-4 < rms(h)
    return {
        stack: all(abs(ratio - 1) < 0.25 for ratio in found)
        for stack, found in ratios.items()
    }


def a_steady_deviation_shows_a_living_signal():
    torch.manual_seed(0)
    h = torch.randn(64, 256, dtype=torch.float64)  # 64 inputs
    stds, shares = [], []
    for _ in range(30):
        h = torch.relu(nn.Linear(256, 256).double()(h))
        differences = h.var(dim=0).mean().sqrt()  # of a feature between inputs
        stds.append(h.std())  # of everything
        shares.append(differences / stds[-1])
    assert abs(stds[29] / stds[7] - 1) < 0.1  # steady from layer 8 to 30
    assert shares[0] > 0.5
    return {"what tells 64 inputs apart, at layer 30": shares[29] > 1e-9}


def small_activations_mean_vanishing_gradients():
    def run(scale, depth, bias):
        torch.manual_seed(0)
        x = scale * torch.randn(32, 128, dtype=torch.float64)
        h = x.requires_grad_()
        for _ in range(depth):
            h = torch.relu(nn.Linear(128, 128, bias=bias).double()(h))
        (grad,) = torch.autograd.grad(h.sum(), x)
        return h.norm(), grad.norm()

    (loud, grad), (faint, same) = (run(scale, 8, False) for scale in (1, 1e-3))
    torch.testing.assert_close(faint, 1e-3 * loud)
    (at_10, grad_10), (at_30, grad_30) = (run(1, depth, True) for depth in (10, 30))
    assert grad_30 < 1e-5 * grad_10
    return {
        "a smaller input: a smaller gradient": not torch.allclose(same, grad),
        "30 layers with biases: smaller activations": abs(at_30 / at_10 - 1) > 0.2,
    }


def relu_then_norm_prints_one():
    torch.manual_seed(0)
    h = torch.randn(32, 512)
    stds = []
    for _ in range(8):
        h = F.rms_norm(torch.relu(nn.Linear(512, 512)(h)), (512,), eps=1e-6)
        assert abs(h.square().mean() - 1) < 0.01
        assert 0.79 < h.std() < 0.86  # about √(1 - 1/π) = 0.83: the mean is not 0
        stds.append(h.std())
    return {"eight layers": all(abs(std - 1) < 0.01 for std in stds)}


def rms_norm_stacks_without_residuals():
    def norm(v):
        return F.rms_norm(v, (128,), eps=1e-6)

    def differences(v):  # of a feature between inputs, as a share of the size
        return (v.var(dim=0).mean() / v.square().mean()).sqrt()

    torch.manual_seed(0)
    plain = residual = torch.randn(64, 128, dtype=torch.float64)  # 64 inputs
    for _ in range(96):
        weight = math.sqrt(2 / 128) * torch.randn(128, 128, dtype=torch.float64)
        plain = torch.relu(norm(plain @ weight))
        residual = residual + torch.relu(norm(residual)) @ weight
    assert 0.3 < plain.square().mean() < 0.7  # the size is fine
    return {
        "96 residual branches keep inputs apart": differences(residual) > 0.5,
        "96 plain layers keep inputs apart": differences(plain) > 0.1,
    }


def depth_itself_makes_gradients_vanish():
    d, depth = 256, 8
    cases = {}
    for gain in (1 / 3, 1.0, 2.0, 4.0):  # d times the variance of a weight
        torch.manual_seed(0)
        h = x = torch.randn(64, d, dtype=torch.float64, requires_grad=True)
        for _ in range(depth):
            weight = math.sqrt(gain / d) * torch.randn(d, d, dtype=torch.float64)
            h = torch.relu(h @ weight)
        sent = torch.randn_like(h)
        (grad,) = torch.autograd.grad(h, x, sent)
        a_layer = (grad.square().mean() / sent.square().mean()) ** (1 / depth)
        assert abs(a_layer / (gain / 2) - 1) < 0.1
        cases[f"weights of variance {gain:.2g}/d"] = a_layer < 0.9
    return cases


def norm_attention_norm_feed_forward_is_a_block():
    def norm(v):
        return F.rms_norm(v, (16,))

    torch.manual_seed(0)
    x = torch.randn(2, 5, 16)
    attention, feed_forward = nn.Linear(16, 16), nn.Linear(16, 16)  # stand-ins
    for parameter in (*attention.parameters(), *feed_forward.parameters()):
        nn.init.zeros_(parameter)
    chain = feed_forward(norm(attention(norm(x))))
    y = x + attention(norm(x))
    y = y + feed_forward(norm(y))
    assert torch.equal(y, x)  # the Pre-Norm block
    assert (chain == 0).all()
    return {"branches that return zero": torch.equal(chain, y)}


def minimind_has_17_norms():
    cases = {}
    for qk_norm, version, number in ((False, 2025, 17), (True, 2026, 33)):
        with torch.device("meta"):  # the decoder of our pages: 8 blocks, like MiniMind
            model = Decoder(Sizes(qk_norm=qk_norm))
        norms = [m for m in model.modules() if isinstance(m, RMSNorm)]
        assert len(norms) == number
        inside = [m for m in model.blocks.modules() if isinstance(m, RMSNorm)]
        assert len(inside) == number - 1
        cases[f"inside the blocks, as in {version}"] = len(inside) == 16
        cases[f"in the whole model, as in {version}"] = len(norms) == 16
    return cases


def random_tokens_rank_the_placements():
    torch.manual_seed(42)
    tokens = torch.randint(0, 1000, (500, 64))
    target = tokens.roll(-1, dims=1)
    # No mask and no positions: a model knows the 64 tokens, not their order. All
    # it can say about the next is how often each occurs among the 63 others.
    count = (tokens[:, :, None] == target[:, None, :]).sum(1)
    others = count - (tokens == target).long()
    best = (others / 63).log().neg().mean()
    assert 4.0 < best < 4.15  # log(63), less a little for tokens that stand twice
    attention = nn.MultiheadAttention(16, 4, batch_first=True)
    x, order = torch.randn(1, 64, 16), torch.randperm(64)
    y, shuffled = (attention(v, v, v)[0] for v in (x, x[:, order]))
    torch.testing.assert_close(shuffled, y[:, order])  # blind to the order
    told = {"Post-LN": 3.5, "Pre-LN": 2.8, "Pre-LN with RMSNorm": 2.7}
    return {
        f"{model} can reach {loss}": best < loss + 0.5 for model, loss in told.items()
    }


def two_layers_without_norms_run_to_nan():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(64, 4, batch_first=True)
            self.up, self.down = nn.Linear(64, 256), nn.Linear(256, 64)

        def forward(self, x):
            x = x + self.attention(x, x, x)[0]
            return x + self.down(torch.relu(self.up(x)))

    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(100, 64), Block(), Block(), nn.Linear(64, 100))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    for _ in range(500):
        tokens = torch.randint(0, 100, (8, 16))
        loss = F.cross_entropy(model(tokens).mT, tokens.roll(-1, dims=1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 6  # no explosion either: log(100) is 4.6
    assert model[:3](tokens).square().mean().sqrt() < 10  # the stream
    cases = {"two layers, 500 steps of Adam": not loss.isfinite()}
    for _ in range(60):  # what depth does, with weights three times as large
        block = Block()
        with torch.no_grad():
            for weight in block.parameters():
                weight *= 3
        model.insert(1, block)
    assert not F.cross_entropy(model(tokens).mT, tokens).isfinite()
    return cases
