import math

import torch
from torch import nn
from torch.nn import functional as F

from snippets.rms_norm.reference import RMSNorm
from snippets.transformer_block.decoder import Decoder, Sizes


# verdict: wrong
def a_linear_layer_scales_by_root_in_over_out():
    torch.manual_seed(0)
    for d_in, d_out in ((512, 512), (512, 2048), (2048, 512)):
        y = torch.randn(64, d_in) @ torch.randn(d_in, d_out)
        assert abs(y.std() / math.sqrt(d_in) - 1) < 0.03  # d_out plays no part
        assert y.std() > 10 * math.sqrt(d_in / d_out)
    assert round(math.sqrt(512), 1) == 22.6
    weight = nn.Linear(512, 512).weight
    assert abs(weight.std() / math.sqrt(1 / (3 * 512)) - 1) < 0.01  # not 1
    assert weight.abs().max() <= 1 / math.sqrt(512)


# verdict: holds-when
def relu_halves_the_variance():
    def rms(v):
        return v.square().mean().sqrt()

    torch.manual_seed(0)
    x = torch.randn(1_000_000)
    y = torch.relu(x)
    assert abs(y.square().mean() / x.square().mean() - 0.5) < 0.005
    assert abs(rms(y) / rms(x) - math.sqrt(0.5)) < 0.005  # 0.71
    assert abs(y.var() / x.var() - (0.5 - 0.5 / math.pi)) < 0.005  # 0.34
    lifted = 5 + x
    assert torch.relu(lifted).std() / lifted.std() > 0.99  # nearly nothing to cut


# verdict: holds-when
def the_size_decays_geometrically():
    def rms(v):
        return v.square().mean().sqrt()

    torch.manual_seed(0)
    d = 512
    h = free = torch.randn(64, d)
    for depth in range(1, 13):
        layer = nn.Linear(d, d)
        h = torch.relu(layer(h))
        free = torch.relu(F.linear(free, layer.weight))  # no bias
        assert abs(rms(free) * 6 ** (depth / 2) - 1) < 0.25  # 1/√6 a layer
    assert abs(rms(h) / math.sqrt(1 / (5 * d)) - 1) < 0.05  # the biases' floor
    assert rms(free) < 1e-4 < rms(h)


# verdict: wrong
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
    assert shares[0] > 0.5 and shares[29] < 1e-9  # all inputs, one vector


# verdict: wrong
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
    torch.testing.assert_close(same, grad)
    (at_10, grad_10), (at_30, grad_30) = (run(1, depth, True) for depth in (10, 30))
    assert abs(at_30 / at_10 - 1) < 0.2 and grad_30 < 1e-5 * grad_10


# verdict: wrong
def relu_then_norm_prints_one():
    torch.manual_seed(0)
    h = torch.randn(32, 512)
    for _ in range(8):
        h = F.rms_norm(torch.relu(nn.Linear(512, 512)(h)), (512,), eps=1e-6)
        assert abs(h.square().mean() - 1) < 0.01
        assert 0.79 < h.std() < 0.86  # about √(1 - 1/π) = 0.83: the mean is not 0


# verdict: holds-when
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
    assert differences(plain) < 0.1 and differences(residual) > 0.5


# verdict: holds-when
def depth_itself_makes_gradients_vanish():
    d, depth = 256, 8
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


# verdict: wrong
def norm_attention_norm_feed_forward_is_a_block():
    def norm(v):
        return F.rms_norm(v, (16,))

    torch.manual_seed(0)
    x = torch.randn(2, 5, 16)
    attention, feed_forward = nn.Linear(16, 16), nn.Linear(16, 16)  # stand-ins
    for parameter in (*attention.parameters(), *feed_forward.parameters()):
        nn.init.zeros_(parameter)
    assert (feed_forward(norm(attention(norm(x)))) == 0).all()  # the chain
    y = x + attention(norm(x))
    y = y + feed_forward(norm(y))
    assert torch.equal(y, x)  # the Pre-Norm block


# verdict: holds-when
def minimind_has_17_norms():
    for qk_norm, number in ((False, 17), (True, 33)):
        with torch.device("meta"):  # the decoder of our pages: 8 blocks, like MiniMind
            model = Decoder(Sizes(qk_norm=qk_norm))
        norms = [m for m in model.modules() if isinstance(m, RMSNorm)]
        assert len(norms) == number
        inside = [m for m in model.blocks.modules() if isinstance(m, RMSNorm)]
        assert len(inside) == number - 1  # 16 in the blocks, without QK-Norm


# verdict: wrong
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
    assert best > 3.5 + 0.5  # the highest of the losses told: 3.5, 2.8, 2.7
    attention = nn.MultiheadAttention(16, 4, batch_first=True)
    x, order = torch.randn(1, 64, 16), torch.randperm(64)
    y, shuffled = (attention(v, v, v)[0] for v in (x, x[:, order]))
    torch.testing.assert_close(shuffled, y[:, order])  # blind to the order


# verdict: wrong
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
    assert loss < 6  # no NaN, no explosion: log(100) is 4.6
    assert model[:3](tokens).square().mean().sqrt() < 10  # the stream
    for _ in range(60):  # what depth does, with weights three times as large
        block = Block()
        with torch.no_grad():
            for weight in block.parameters():
                weight *= 3
        model.insert(1, block)
    assert not F.cross_entropy(model(tokens).mT, tokens).isfinite()
