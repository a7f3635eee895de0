import math
from functools import cache
from statistics import fmean, median

import torch
from torch import nn
from torch.nn import functional as F
from transformers import (
    GPT2Config,
    GPT2Model,
    XLNetConfig,
)
from transformers.models.xlnet.modeling_xlnet import XLNetFeedForward

from scripts.measure import records
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


def pre_norm_needs_a_last_norm():
    def size(placement, layers, change=lambda decoder: None):  # of what the head reads
        decoder, seen = fresh(placement, layers, 0), []
        change(decoder)
        decoder.head.register_forward_pre_hook(lambda _, x: seen.append(rms(x[0])))
        decoder(random_text(0))
        return seen[0]

    depths = (4, 16, 64)
    bare = [size(BARE, layers) for layers in depths]
    assert bare[0] > 1.5
    assert size(BARE, 64, scale_writers) < 1.5  # GPT-2's initialization
    assert all(abs(size(POST, layers) - 1) < 0.01 for layers in depths)
    last = [abs(size(PRE, layers) - 1) < 0.01 for layers in depths]
    return {
        "4 to 16 layers, the output grows": bare[1] > 1.5 * bare[0],
        "16 to 64 layers, the output grows": bare[2] > 1.5 * bare[1],
        "with one more norm it has one size": all(last),
    }


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
    assert median(first) < 10
    return {
        "queries, beside the values, in every layer": max(queries) < 1e-3,
        "feed-forward, first layer beside the last": median(first) < 0.1,
    }


@torch.no_grad()
def the_norm_makes_tokens_alike():
    x = torch.randn(4, 16, 32, generator=torch.Generator().manual_seed(0)).double()
    normed = mean_cosine(rms_norm(x, eps=0.0))
    post = bare = x
    for block in fresh(POST, 24, 0).blocks:
        post = block(post)
        bare = bare + block.sublayer(bare)  # the same weights, no norm anywhere
    cosines = [mean_cosine(y).mean().item() for y in (x, post, bare)]
    assert cosines[0] < 0.05
    assert cosines[1] > 0.95
    return {
        "the norm alone turns tokens": not torch.allclose(mean_cosine(x), normed),
        "24 layers without a norm leave them unlike": cosines[2] < 0.95,
    }


@torch.no_grad()
def skip_connections_prevent_rank_collapse():
    x = torch.randn(4, 16, 32, generator=torch.Generator().manual_seed(0)).double()
    cosine = {}
    for name in ("Post-Norm", "Pre-Norm", "DeepNorm"):
        torch.manual_seed(0)
        cosine[name] = mean_cosine(deepnorm_stack(name, 48, 32)(x)).mean().item()
    assert cosine["Post-Norm"] > 0.999
    assert cosine["Pre-Norm"] > 0.2
    assert cosine["DeepNorm"] < 0.1
    return {f"{name}, 48 layers": value < 0.95 for name, value in cosine.items()}


def post_norm_gradients_vanish_towards_the_input():
    cases = {}
    for layers in (6, 24):
        ratio = median_gradient(POST, layers, 0) / median_gradient(POST, layers, -1)
        assert ratio < 5
        cases[f"{layers} layers at initialization"] = ratio < 0.2
    _, abrupt = train(POST, 18, warm_up=1)  # 24 steps of Adam
    _, slow = train(POST, 18, warm_up=60)
    return cases | {  # first layer's gradient over the last one's
        "18 layers, 24 steps without warm-up": abrupt < 0.02,
        "18 layers, 24 steps of a warm-up": slow < 0.02,
    }


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
    assert size[True, 24] > 100 * size[False, 24]  # the branches carry more
    return {
        "12 to 24 layers, the direct path": size[False, 24] < size[False, 12] / 100,
        "12 to 24 layers, with the branches": size[True, 24] < size[True, 12] / 100,
    }


def post_norm_gradients_near_the_output_ignore_depth():
    ratio = median_gradient(POST, 24, -1) / median_gradient(POST, 6, -1)
    assert ratio < 1.6
    shrunk = median_gradient(PRE, 24, -1) / median_gradient(PRE, 6, -1)
    assert shrunk < 0.6  # as it does in Pre-Norm
    # The root of the depth would give a half.
    return {"6 to 24 layers, at initialization": ratio > 0.6}


def pre_norm_gradients_shrink_with_the_root_of_depth():
    last = median_gradient(PRE, 6, -1) / median_gradient(PRE, 24, -1)
    first = median_gradient(PRE, 6, 0) / median_gradient(PRE, 24, 0)
    assert 0.6 < first < 1.6  # no shrinking
    return {  # the root of 24 / 6 is 2
        "6 to 24 layers, the last layer": 1.4 < last < 2.8,
        "6 to 24 layers, the first layer": 1.4 < first < 2.8,
    }


def a_bare_pre_norm_stack_shows_the_root_law():
    last = median_gradient(BARE, 24, -1) / median_gradient(BARE, 6, -1)
    first = median_gradient(BARE, 24, 0) / median_gradient(BARE, 6, 0)
    assert median_gradient(BARE, 96, -1) < 1.2 * median_gradient(BARE, 48, -1)
    assert last > 1.2 and first > 2
    return {
        "6 to 24 layers, the last layer": last < 1,
        "6 to 24 layers, the first layer": first < 1,
    }


def post_norm_needs_warm_up():
    learned, _ = train(POST, 6, warm_up=1)  # 24 steps of Adam, 64 tokens
    stuck, abrupt = train(POST, 18, warm_up=1)
    _, slow = train(POST, 18, warm_up=60)
    guess = math.log(64)
    assert stuck < guess + 0.5
    assert abrupt < 0.02 < slow  # first layer's gradient over the last one's
    return {
        "6 layers, 24 steps without warm-up": learned > stuck - 0.5,
        "18 layers, 24 steps without warm-up": stuck > guess - 0.5,
    }


def post_norm_ends_at_twelve_layers():
    config = XLNetConfig()
    assert (config.n_layer, config.d_model) == (24, 1024)  # XLNet-large
    small = XLNetFeedForward(XLNetConfig(d_model=32, n_head=4, d_inner=64))
    left = silent(small)(X)
    assert torch.allclose(left, F.layer_norm(X, (32,)), atol=1e-4)
    return {"XLNet-large": config.n_layer <= 12}


def pre_norm_needs_no_warm_up():
    loss, _ = train(PRE, 18, warm_up=1)  # 24 steps of Adam, 64 tokens
    stuck, _ = train(POST, 18, warm_up=1)
    assert stuck > 3.5
    ends = {}  # of the record behind the page: (warm-up, rate) -> losses of the seeds
    for row in records.find("warmup_sensitivity")[0].rows:
        if (row["variant"], row["layers"], row["quantity"]) == ("pre", 12, "loss"):
            cell = row["warm_up"], row["learning_rate"]
            ends.setdefault(cell, []).append(row["values"][-1])
    best = {
        share: min(
            fmean(found) for (warm_up, _), found in ends.items() if warm_up == share
        )
        for share in (0.0, 0.5)
    }
    return {
        "18 layers, to get away from a guess": loss < 2.5,
        "12 layers, for the lowest loss": best[0.0] <= best[0.5],
    }


def pre_norm_gradients_cross_no_norm():
    decoder = silent(fresh(PRE, 8, 0))
    x = X.double().requires_grad_()
    y = nn.Sequential(*decoder.blocks)(x)
    head = torch.randn(32, 64, generator=torch.Generator().manual_seed(1)).double()
    target = torch.arange(5)

    def loss(y):
        return F.cross_entropy((decoder.norm(y) @ head)[0], target)

    at_x, at_y = torch.autograd.grad(loss(y), (x, y))
    z = (4 * y).detach().requires_grad_()
    (at_z,) = torch.autograd.grad(loss(z), z)
    assert torch.allclose(at_z, at_y / 4, rtol=1e-3)
    along = (at_y * y).sum(dim=-1).abs().max()
    return {
        "between the blocks": torch.equal(at_x, at_y),
        "at the end, a stream four times as large": torch.allclose(at_z, at_y),
        "at the end, the part along the stream": along > 1e-4 * at_y.norm(),
    }


def pre_norm_gradients_are_equal_in_all_layers():
    ratios = [median_gradient(PRE, n, 0) / median_gradient(PRE, n, -1) for n in (6, 24)]
    assert ratios[1] > 1.2 * ratios[0]
    return {
        "first over last of 6 layers": ratios[0] < 1.5,
        "first over last of 24 layers": ratios[1] < 1.5,
    }


def pre_norm_variance_grows_linearly():
    plain, scaled = fresh(PRE, 32, 0), fresh(PRE, 32, 0)
    scale_writers(scaled)
    sizes = {
        "branches of one size": [row.rms for row in trace(plain, random_text(0))],
        "GPT-2's initialization": [row.rms for row in trace(scaled, random_text(0))],
    }
    assert sizes["GPT-2's initialization"][31] < 1.5
    return {  # 32 / 8 = 4
        f"{name}, 8 to 32 layers": 2.5 < (size[31] / size[7]) ** 2 < 6.5
        for name, size in sizes.items()
    }


def pre_norm_makes_the_stream_grow_exponentially():
    block, x = fresh(PRE, 1, 0).blocks[1], X.double()
    sizes = []
    with torch.no_grad():
        for _ in range(128):
            x = block(x)
            sizes.append(rms(x))
        growth = (sizes[127] - sizes[63]) / (sizes[63] - sizes[31])
        for _ in range(12):  # weights that grow with depth
            block.sublayer.writer.weight *= 2
            x = block(x)
    return {
        "one branch in all layers": growth > 3,  # linear gives 2
        "branches that double with each layer": rms(x) > 40 * sizes[127],
    }


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
    return {
        "weights as drawn": abs(before[0] - 1) < 1e-4,
        "output weights ten times larger": abs(after[0] - 1) < 1e-4,
    }


def a_deep_layers_share_falls_like_one_over_depth():
    rows = trace(fresh(PRE, 64, 0), random_text(0))
    amplitude = rows[3].update / rows[63].update
    return {  # 64 / 4 = 16, and its root is 4
        "of the energy, layer 4 to 64": 9 < amplitude**2 < 36,
        "of the amplitude, layer 4 to 64": 9 < amplitude < 36,
    }


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
    return {"the upper half of 64 layers": kept(range(32, 64)) > 0.8}


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
    changed = {}
    for name, features in {"read": slice(32, 48), "unread": slice(48, 64)}.items():
        update = torch.zeros_like(x)
        update[:, features] = torch.randn(200, 16, generator=generator).double()
        update *= 0.3 * x.norm(dim=-1, keepdim=True) / update.norm(dim=-1, keepdim=True)
        cosine = torch.cosine_similarity(x, x + update, dim=-1)
        assert (cosine - 1.09**-0.5).abs().max() < 1e-6  # 0.96 for both
        read = [(rms_norm(v) @ head.T).argmax(dim=-1) for v in (x, x + update)]
        changed[name] = (read[0] != read[1]).double().mean()
    assert changed["unread"] < 0.1
    both_idle = max(changed.values()) < 0.1
    return {"two updates with one cosine, read and unread": both_idle}


def layer_norm_scaling_wakes_deep_layers_up():
    plain, scaled = fresh(PRE, 64, 0), fresh(PRE, 64, 0)
    scale_norms(scaled)
    text = random_text(0)
    before, after = trace(plain, text)[63], trace(scaled, text)[63]
    assert after.rms < before.rms / 3
    gradient = gradients(plain, 0)[63], gradients(scaled, 0)[63]
    return {
        "the last layer's share of the stream": after.update > before.update / 1.5,
        "the last layer's gradient": gradient[1] > gradient[0] / 1.5,
    }


def layer_norm_scaling_divides_the_variance_by_the_root_of_depth():
    x = torch.randn(8, 512, generator=torch.Generator().manual_seed(0))
    variance = ScaledNorm(nn.LayerNorm(512), layer=16)(x).var(unbiased=False)
    assert abs(variance - 1 / 16) < 1e-4
    return {"layer 16": abs(variance - 1 / 4) < 0.1}


def gpt_2_scales_by_the_root_of_the_number_of_layers():
    torch.manual_seed(0)
    model = GPT2Model(GPT2Config(n_layer=8, n_embd=128, n_head=4))
    writers = [w for b in model.h for w in (b.attn.c_proj, b.mlp.c_proj)]
    stds = [writer.weight.std().item() for writer in writers]
    assert all(abs(std / (0.02 / 16**0.5) - 1) < 0.05 for std in stds)
    near = [abs(std / (0.02 / 8**0.5) - 1) < 0.2 for std in stds]
    return {"8 layers, any output matrix": any(near)}


def post_norm_uses_all_depths_evenly():
    def unevenness(placement):
        shares = [row.update for row in trace(fresh(placement, 32, 0), random_text(0))]
        return max(shares) / min(shares)

    _, first_over_last = train(POST, 18, warm_up=1)  # 24 steps of Adam
    return {
        "at initialization, Post-Norm evenly": unevenness(POST) < 2,
        "at initialization, Pre-Norm not": unevenness(PRE) > 4,
        "Post-Norm trained without warm-up, by gradient": first_over_last > 0.02,
    }
