import math
from functools import cache
from statistics import median

import torch
from torch import nn
from torch.nn import functional as F
from transformers import (
    GPT2Config,
    GPT2Model,
    XLNetConfig,
)
from transformers.models.xlnet.modeling_xlnet import XLNetFeedForward

from snippets.curse_of_depth.depth_scaling import (
    ScaledNorm,
    scale_norms,
    scale_writers,
)
from snippets.curse_of_depth.stream import rms, trace
from snippets.deepnorm.stacks import stack as deepnorm_stack
from snippets.pre_norm_vs_post_norm.blocks import PreNormBlock
from snippets.pre_norm_vs_post_norm.trial import (
    fresh,
    next_token_loss,
    random_text,
)
from snippets.rms_norm.reference import RMSNorm, rms_norm
from snippets.sandwich_norm.blocks import SandwichNorm
from snippets.signal_propagation.similarity import mean_cosine

POST, PRE = "Post-Norm", "Pre-Norm with final norm"
BARE = "Pre-Norm without final norm"
X = 3 * torch.randn(1, 5, 32, generator=torch.Generator().manual_seed(0))


@torch.no_grad()
def silent(layer):
    """The layer with all parameters but those of its norms set to zero."""
    for module in layer.modules():
        if "Norm" not in type(module).__name__:
            for parameter in module.parameters(recurse=False):
                parameter.zero_()
    return layer.eval()


def gradients(decoder, seed):
    """Per layer: the gradient norm of the feed-forward's last matrix."""
    writers = [block.sublayer.writer.weight for block in decoder.blocks[1::2]]
    loss = next_token_loss(decoder, random_text(seed))
    return [g.norm().item() for g in torch.autograd.grad(loss, writers)]


@cache
def median_gradient(placement, layers, layer):
    """Median gradient of one layer over five seeds, at initialization."""
    return median(gradients(fresh(placement, layers, s), s)[layer] for s in range(5))


@cache
def train(placement, layers, warm_up):
    """Medians over three seeds: last loss, gradient of first over last layer."""
    runs = [run(placement, layers, warm_up, seed) for seed in range(3)]
    return tuple(median(column) for column in zip(*runs, strict=True))


def run(placement, layers, warm_up, seed, steps=24):
    """Adam on text in which 5 t + 3 follows t: last loss, gradient ratio."""
    decoder = fresh(placement, layers, seed).float()
    adam = torch.optim.Adam(decoder.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(seed)
    for step in range(steps):
        adam.param_groups[0]["lr"] = 3e-3 * min(1, (step + 1) / warm_up)
        text = [torch.randint(64, (4, 1), generator=generator)]
        for _ in range(16):
            text.append((5 * text[-1] + 3) % 64)
        adam.zero_grad()
        loss = next_token_loss(decoder, torch.cat(text, dim=1))
        loss.backward()
        adam.step()
    sizes = [b.sublayer.writer.weight.grad.norm() for b in decoder.blocks[1::2]]
    return loss.item(), (sizes[0] / sizes[-1]).item()


# verdict: holds
def pre_norm_needs_a_last_norm():
    def size(placement, layers, change=lambda decoder: None):  # of what the head reads
        decoder, seen = fresh(placement, layers, 0), []
        change(decoder)
        decoder.head.register_forward_pre_hook(lambda _, x: seen.append(rms(x[0])))
        decoder(random_text(0))
        return seen[0]

    bare = [size(BARE, layers) for layers in (4, 16, 64)]
    assert bare[0] > 1.5 and bare[1] > 1.5 * bare[0] and bare[2] > 1.5 * bare[1]
    assert size(BARE, 64, scale_writers) < 1.5  # GPT-2's initialization
    for layers in (4, 16, 64):
        assert abs(size(PRE, layers) - 1) < 0.01
        assert abs(size(POST, layers) - 1) < 0.01


# verdict: open
def deep_post_norm_fails_only_because_gradients_vanish():
    alike, queries, first = [], [], []
    for seed in range(5):
        decoder, text = fresh(POST, 48, seed), random_text(seed)
        x = decoder.embedding(text[:, :-1])
        for block in decoder.blocks:
            x = block(x)
        alike.append(mean_cosine(x.detach()).min())
        next_token_loss(decoder, text).backward()
        read = [b.sublayer.reader.weight.grad.split(32) for b in decoder.blocks[::2]]
        queries.append(max(q.norm() / v.norm() for q, _, v in read))
        write = [b.sublayer.writer.weight.grad.norm() for b in decoder.blocks[1::2]]
        first.append(write[0] / write[-1])
    assert min(alike) > 0.999  # all tokens of a sequence are equal
    assert max(queries) < 1e-3  # in every layer, beside the values' gradient
    assert 0.1 < median(first) < 10  # of the feed-forward network


# verdict: wrong
@torch.no_grad()
def the_norm_makes_tokens_alike():
    x = torch.randn(4, 16, 32, generator=torch.Generator().manual_seed(0)).double()
    assert torch.allclose(mean_cosine(x), mean_cosine(rms_norm(x, eps=0.0)))
    post = bare = x
    for block in fresh(POST, 24, 0).blocks:
        post = block(post)
        bare = bare + block.sublayer(bare)  # the same weights, no norm anywhere
    cosines = [mean_cosine(y).mean().item() for y in (x, post, bare)]
    assert cosines[0] < 0.05
    assert min(cosines[1:]) > 0.95


# verdict: holds-when
@torch.no_grad()
def skip_connections_prevent_rank_collapse():
    x = torch.randn(4, 16, 32, generator=torch.Generator().manual_seed(0)).double()
    cosine = {}
    for name in ("Post-Norm", "Pre-Norm", "DeepNorm"):
        torch.manual_seed(0)
        cosine[name] = mean_cosine(deepnorm_stack(name, 48, 32)(x)).mean().item()
    assert cosine["Post-Norm"] > 0.999
    assert 0.2 < cosine["Pre-Norm"] < 0.95
    assert cosine["DeepNorm"] < 0.1


# verdict: holds-when
def post_norm_gradients_vanish_towards_the_input():
    for layers in (6, 24):
        ratio = median_gradient(POST, layers, 0) / median_gradient(POST, layers, -1)
        assert 0.2 < ratio < 5  # at initialization
    _, abrupt = train(POST, 18, warm_up=1)  # 24 steps of Adam
    _, slow = train(POST, 18, warm_up=60)
    assert abrupt < 0.02 < slow  # first layer's gradient over the last one's


# verdict: holds-when
def each_norm_on_the_stream_shrinks_the_gradient():
    text, size = random_text(0), {}
    for layers in (12, 24):
        decoder = fresh(POST, layers, 0)
        for branches in (False, True):  # part of the backward pass, or not
            x = start = decoder.embedding(text).detach().requires_grad_()
            for block in decoder.blocks:
                f = block.sublayer(x)
                x = block.norm(x + (f if branches else f.detach()))
            decoder.head(x).logsumexp(dim=-1).sum().backward()
            size[branches, layers] = start.grad.norm().item()
    assert size[False, 24] < size[False, 12] / 100  # the direct path decays
    assert size[True, 24] > 100 * size[False, 24]  # the branches carry more


# verdict: holds
def post_norm_gradients_near_the_output_ignore_depth():
    ratio = median_gradient(POST, 24, -1) / median_gradient(POST, 6, -1)
    assert 0.6 < ratio < 1.6  # the root of the depth would give a half
    shrunk = median_gradient(PRE, 24, -1) / median_gradient(PRE, 6, -1)
    assert shrunk < 0.6  # as it does in Pre-Norm


# verdict: holds-when
def pre_norm_gradients_shrink_with_the_root_of_depth():
    last = median_gradient(PRE, 6, -1) / median_gradient(PRE, 24, -1)
    first = median_gradient(PRE, 6, 0) / median_gradient(PRE, 24, 0)
    assert 1.4 < last < 2.8  # the root of 24 / 6 is 2
    assert 0.6 < first < 1.6  # no shrinking


# verdict: wrong
def a_bare_pre_norm_stack_shows_the_root_law():
    assert median_gradient(BARE, 24, -1) > 1.2 * median_gradient(BARE, 6, -1)
    assert median_gradient(BARE, 24, 0) > 2 * median_gradient(BARE, 6, 0)
    assert median_gradient(BARE, 96, -1) < 1.3 * median_gradient(BARE, 24, -1)


# verdict: holds-when
def post_norm_needs_warm_up():
    learned, _ = train(POST, 6, warm_up=1)  # 24 steps of Adam, 64 tokens
    stuck, abrupt = train(POST, 18, warm_up=1)
    _, slow = train(POST, 18, warm_up=60)
    assert learned < stuck - 0.5
    assert abs(stuck - math.log(64)) < 0.5  # the loss of a guess
    assert abrupt < 0.02 < slow  # first layer's gradient over the last one's


# verdict: wrong
def post_norm_ends_at_twelve_layers():
    config = XLNetConfig()
    assert config.n_layer == 24
    assert config.d_model == 1024
    small = XLNetFeedForward(XLNetConfig(d_model=32, n_head=4, d_inner=64))
    left = silent(small)(X)
    assert torch.allclose(left, F.layer_norm(X, (32,)), atol=1e-4)


# verdict: holds-when
def pre_norm_needs_no_warm_up():
    loss, _ = train(PRE, 18, warm_up=1)  # 24 steps of Adam, 64 tokens
    stuck, _ = train(POST, 18, warm_up=1)
    assert loss < 2.5 < 3.5 < stuck


# verdict: holds-when
def pre_norm_gradients_cross_no_norm():
    decoder = silent(fresh(PRE, 8, 0))
    x = X.double().requires_grad_()
    y = nn.Sequential(*decoder.blocks)(x)
    head = torch.randn(32, 64, generator=torch.Generator().manual_seed(1)).double()
    target = torch.arange(5)

    def loss(y):
        return F.cross_entropy((decoder.norm(y) @ head)[0], target)

    at_x, at_y = torch.autograd.grad(loss(y), (x, y))
    assert torch.equal(at_x, at_y)
    z = (4 * y).detach().requires_grad_()
    (at_z,) = torch.autograd.grad(loss(z), z)
    assert torch.allclose(at_z, at_y / 4, rtol=1e-3)
    assert (at_y * y).sum(dim=-1).abs().max() < 1e-4 * at_y.norm()


# verdict: wrong
def pre_norm_gradients_are_equal_in_all_layers():
    ratios = [median_gradient(PRE, n, 0) / median_gradient(PRE, n, -1) for n in (6, 24)]
    assert ratios[0] > 1.5
    assert ratios[1] > 1.2 * ratios[0]


# verdict: holds-when
def pre_norm_variance_grows_linearly():
    plain, scaled = fresh(PRE, 32, 0), fresh(PRE, 32, 0)
    scale_writers(scaled)
    rows = trace(plain, random_text(0))
    assert 2.5 < (rows[31].rms / rows[7].rms) ** 2 < 6.5  # 32 / 8 = 4
    assert trace(scaled, random_text(0))[31].rms < 1.5


# verdict: holds-when
def pre_norm_makes_the_stream_grow_exponentially():
    block, x = fresh(PRE, 1, 0).blocks[1], X.double()
    sizes = []
    with torch.no_grad():
        for _ in range(128):
            x = block(x)
            sizes.append(rms(x))
        growth = (sizes[127] - sizes[63]) / (sizes[63] - sizes[31])
        assert growth < 3  # the same branch each time: linear gives 2
        for _ in range(12):  # weights that grow with depth
            block.sublayer.writer.weight *= 2
            x = block(x)
    assert rms(x) > 40 * sizes[127]


# verdict: wrong
def the_norm_resets_the_size_of_what_a_branch_writes():
    branch = fresh(PRE, 1, 0).blocks[1].sublayer
    pre, sandwich = PreNormBlock(branch, RMSNorm(32)), SandwichNorm(branch, 32)
    x = X.double()
    with torch.no_grad():
        before = rms(pre(x) - x), rms(sandwich(x) - x)
        branch.writer.weight *= 10
        after = rms(pre(x) - x), rms(sandwich(x) - x)
    assert abs(after[0] / before[0] - 10) < 1e-6
    assert abs(after[1] - 1) < 1e-4
    assert abs(before[1] - 1) < 1e-4


# verdict: holds-when
def a_deep_layers_share_falls_like_one_over_depth():
    rows = trace(fresh(PRE, 64, 0), random_text(0))
    amplitude = rows[3].update / rows[63].update
    assert 3 < amplitude < 6  # root of 64 / 4, which is 4; 1/l would give 16
    assert 9 < amplitude**2 < 36  # of the energy: 64 / 4 = 16


# verdict: wrong
def layers_that_can_be_removed_one_by_one_can_all_be_removed():
    decoder, text = fresh(PRE, 64, 0), random_text(0)

    @torch.no_grad()
    def read_out(skip):
        x = decoder.embedding(text)
        for index, block in enumerate(decoder.blocks):
            x = x if index // 2 in skip else block(x)
        return decoder.norm(x)

    def kept(skip):
        both = read_out(()), read_out(skip)
        return torch.cosine_similarity(*both, dim=-1).mean().item()

    assert min(kept({layer}) for layer in (32, 48, 63)) > 0.95
    assert kept(range(32, 64)) < 0.8


# verdict: wrong
def a_cosine_near_one_marks_an_idle_layer():
    for row in trace(fresh(PRE, 64, 0), random_text(0))[16:]:
        at_right_angles = (1 + row.update**2) ** -0.5
        assert row.cosine > 0.9
        assert abs(row.cosine - at_right_angles) < 0.01
    generator = torch.Generator().manual_seed(0)
    head = torch.randn(10, 64, generator=generator).double()
    head[:, 48:] = 0  # reads 48 of 64 features
    x = torch.zeros(200, 64).double()
    x[:, :32] = torch.randn(200, 32, generator=generator).double()
    for features, changed in ((slice(32, 48), True), (slice(48, 64), False)):
        update = torch.zeros_like(x)
        update[:, features] = torch.randn(200, 16, generator=generator).double()
        update *= 0.3 * x.norm(dim=-1, keepdim=True) / update.norm(dim=-1, keepdim=True)
        cosine = torch.cosine_similarity(x, x + update, dim=-1)
        assert (cosine - 1.09**-0.5).abs().max() < 1e-6  # 0.96 for both
        read = [(rms_norm(v) @ head.T).argmax(dim=-1) for v in (x, x + update)]
        assert ((read[0] != read[1]).double().mean() > 0.1) == changed


# verdict: wrong
def layer_norm_scaling_wakes_deep_layers_up():
    plain, scaled = fresh(PRE, 64, 0), fresh(PRE, 64, 0)
    scale_norms(scaled)
    text = random_text(0)
    before, after = trace(plain, text)[63], trace(scaled, text)[63]
    assert after.rms < before.rms / 3
    assert after.update < before.update / 1.5
    assert gradients(scaled, 0)[63] < gradients(plain, 0)[63] / 1.5


# verdict: wrong
def layer_norm_scaling_divides_the_variance_by_the_root_of_depth():
    x = torch.randn(8, 512, generator=torch.Generator().manual_seed(0))
    variance = ScaledNorm(nn.LayerNorm(512), layer=16)(x).var(unbiased=False)
    assert abs(variance - 1 / 16) < 1e-4
    assert abs(variance - 1 / 4) > 0.1


# verdict: wrong
def gpt_2_scales_by_the_root_of_the_number_of_layers():
    torch.manual_seed(0)
    model = GPT2Model(GPT2Config(n_layer=8, n_embd=128, n_head=4))
    for block in model.h:
        for writer in (block.attn.c_proj, block.mlp.c_proj):
            std = writer.weight.std().item()
            assert abs(std / (0.02 / 16**0.5) - 1) < 0.05
            assert abs(std / (0.02 / 8**0.5) - 1) > 0.2


# verdict: holds-when
def post_norm_uses_all_depths_evenly():
    def unevenness(placement):
        shares = [row.update for row in trace(fresh(placement, 32, 0), random_text(0))]
        return max(shares) / min(shares)

    assert unevenness(POST) < 2
    assert unevenness(PRE) > 4
