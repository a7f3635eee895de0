"""Answer keys of docs/data/quiz/placement-and-depth.yml, found out by running."""

import torch
from torch import nn
from torch.nn import functional as F
from transformers import GPT2Config, GPT2Model

from snippets.curse_of_depth.depth_scaling import scale_norms
from snippets.curse_of_depth.skipping import read_out
from snippets.curse_of_depth.stream import trace
from snippets.pre_norm_vs_post_norm.gradients import gradient_norms
from snippets.pre_norm_vs_post_norm.trial import fresh, random_text
from snippets.rms_norm.reference import rms_norm

PRE_NORM = "Pre-Norm with final norm"


def torch_layer_with_silent_branches() -> dict[str, bool]:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, dropout=0.0, batch_first=True)
    for linear in (layer.self_attn.out_proj, layer.linear2):
        nn.init.zeros_(linear.weight)
        nn.init.zeros_(linear.bias)
    x = 5 + 3 * torch.randn(2, 7, 16)
    y = layer(x)
    expected = {
        "the-input": x,
        "its-layer-norm": F.layer_norm(x, (16,)),
        "zeros": torch.zeros_like(x),
        "twice-the-input": 2 * x,
    }
    return {name: torch.allclose(y, z, atol=1e-4) for name, z in expected.items()}


def norm_first_stack_without_its_norm() -> dict[str, bool]:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, dropout=0.0, norm_first=True)
    encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    updates = []
    for each in encoder.layers:  # both dropouts stand at the end of a branch
        for end in (each.dropout1, each.dropout2):
            end.register_forward_hook(lambda module, i, output: updates.append(output))
    x = torch.randn(7, 2, 16)
    y = encoder(x)
    return {
        "a-normalized-stream": torch.allclose(y, F.layer_norm(y, (16,)), atol=1e-3),
        "the-bare-sum": torch.allclose(y, x + sum(updates), atol=1e-5),
        "the-last-update": torch.allclose(y, updates[-1], atol=1e-5),
    }


def _growth(placement: str, layer: int) -> float:
    """Median over 3 seeds: a layer's gradient norm at depth 16 over that at 4."""
    texts = [random_text(seed) for seed in range(3)]
    medians = {
        depth: sorted(
            gradient_norms(fresh(placement, depth, seed), texts[seed])[layer]
            for seed in range(3)
        )[1]
        for depth in (4, 16)
    }
    return medians[16] / medians[4]


def last_gradient_four_times_deeper() -> dict[str, bool]:
    factor = _growth(PRE_NORM, layer=-1)
    return {
        "stays": 0.8 < factor < 1.25,
        "about-halves": 0.4 < factor < 0.65,
        "about-a-quarter": 0.2 < factor < 0.3,
        "about-doubles": 1.6 < factor < 2.5,
    }


def first_gradient_without_the_last_norm() -> dict[str, bool]:
    factor = _growth("Pre-Norm without final norm", layer=0)
    return {
        "about-halves": 0.4 < factor < 0.65,
        "stays": 0.8 < factor < 1.25,
        "grows": factor > 1.6,
    }


def stream_four_times_deeper() -> dict[str, bool]:
    decoder = fresh(PRE_NORM, 36, seed=0)
    sizes = [layer.rms for layer in trace(decoder, random_text(0))]
    factor = sizes[36 - 1] / sizes[9 - 1]
    return {
        "same-size": 0.8 < factor < 1.25,
        "about-double": 1.6 < factor < 2.5,
        "about-fourfold": 3.2 < factor < 5,
        "exponential": factor > 1.1 ** (36 - 9),  # ten per cent a layer
    }


@torch.no_grad()
def gpt_2_stream_at_the_start() -> dict[str, bool]:
    growth = {}
    for layers in (2, 8):
        torch.manual_seed(0)
        config = GPT2Config(n_embd=256, n_layer=layers, n_head=4, vocab_size=64)
        model, streams = GPT2Model(config).eval(), []
        for reader in (model.h[0], model.ln_f):
            reader.register_forward_pre_hook(lambda _, x, to=streams: to.append(x[0]))
        model(torch.randint(64, (2, 32)))
        start, end = (x.square().mean().sqrt().item() for x in streams)
        growth[layers] = end / start
    deeper = growth[8] / growth[2]
    return {
        "size-of-the-embedding": max(growth.values()) < 1.5,
        "larger-at-any-depth": min(growth.values()) > 2 and 0.8 < deeper < 1.25,
        "larger-with-depth": min(growth.values()) > 2 and 1.6 < deeper < 2.5,
        "smaller-with-depth": deeper < 0.65,
    }


def one_deep_layer_or_the_upper_half() -> dict[str, bool]:
    decoder, text = fresh(PRE_NORM, 16, seed=0), random_text(0)
    full = read_out(decoder, text)

    def cosine(skip) -> float:
        left = read_out(decoder, text, skip)
        return F.cosine_similarity(full, left, dim=-1).mean().item()

    one = min(cosine([layer]) for layer in range(9, 17))
    half = cosine(range(9, 17))
    return {
        "neither-matters": one > 0.9 and half > 0.9,
        "only-together": one > 0.9 and half < 0.8,
        "each-alone-already": one < 0.8,
    }


def share_of_a_deep_layer_when_scaled() -> dict[str, bool]:
    plain, scaled = fresh(PRE_NORM, 36, seed=0), fresh(PRE_NORM, 36, seed=0)
    scale_norms(scaled)
    before, after = (trace(each, random_text(0))[-1] for each in (plain, scaled))
    factor = after.update / before.update
    return {
        "larger": factor > 1.2,
        "smaller": factor < 0.8,
        "equal": 0.8 < factor < 1.2,
    }


@torch.no_grad()
def upper_half_side_by_side() -> dict[str, bool]:
    found = {}
    for placement in (PRE_NORM, "Post-Norm"):
        decoder, text = fresh(placement, 32, seed=0), random_text(0)
        full, x = read_out(decoder, text), decoder.embedding(text)
        for block in decoder.blocks[:32]:  # 16 layers of two blocks
            x = block(x)
        wide = x + sum(block(x) - x for block in decoder.blocks[32:])
        cosine = F.cosine_similarity(full, decoder.norm(wide), dim=-1)
        found[placement] = cosine.mean().item()
    pre, post = found[PRE_NORM], found["Post-Norm"]
    return {
        "pre-norm-close-post-norm-not": pre > 0.8 and post < 0.3,
        "post-norm-close-pre-norm-not": post > 0.8 and pre < 0.3,
        "both-close": pre > 0.8 and post > 0.8,
        "neither-close": pre < 0.3 and post < 0.3,
    }


def jacobian_of_a_post_norm_block() -> dict[str, bool]:
    torch.manual_seed(0)
    x = torch.randn(5, dtype=torch.float64)
    branch = nn.Sequential(nn.Linear(5, 5), nn.Tanh()).double()
    jacobian = torch.autograd.functional.jacobian
    norm_there = jacobian(rms_norm, x + branch(x)).detach()
    branch_there, one = jacobian(branch, x).detach(), torch.eye(5).double()
    exact = jacobian(lambda x: rms_norm(x + branch(x)), x)
    formulas = {
        "pre": one + branch_there @ norm_there,
        "post": norm_there @ (one + branch_there),
        "reversed": (one + branch_there) @ norm_there,
        "apart": norm_there + branch_there,
    }
    return {name: torch.allclose(found, exact) for name, found in formulas.items()}


def first_step_of_adam() -> dict[str, bool]:
    parameter, rate = nn.Parameter(torch.zeros(2, dtype=torch.float64)), 1e-3
    parameter.grad = torch.tensor([1e-4, 10.0], dtype=torch.float64)
    torch.optim.Adam([parameter], lr=rate, eps=1e-15).step()
    small, large = parameter.detach().abs().div(rate).tolist()
    moves = {"equal": (1, 1), "tenth": (0.1, 1)}
    found = {
        name: abs(small - a) < 1e-3 and abs(large - b) < 1e-3
        for name, (a, b) in moves.items()
    }
    ratios = {"proportional": 1e5, "root": 1e5**0.5}
    return found | {n: abs(large / small / r - 1) < 0.01 for n, r in ratios.items()}


def direct_path_through_post_norm() -> dict[str, bool]:
    torch.manual_seed(0)
    stream = rms_norm(torch.randn(4096, dtype=torch.float64)).requires_grad_()
    x = stream
    for _ in range(12):
        x = rms_norm(x + torch.randn(4096))  # the branch, past which we go
    probe = torch.randn(4096, dtype=torch.float64)
    (gradient,) = torch.autograd.grad(x @ probe, stream)
    passed = (gradient.norm() / probe.norm()).item()
    values = {"one": 1, "thirteenth": 1 / 13, "sixty-fourth": 1 / 64}
    values["square"] = 1 / 4096
    return {name: abs(passed / value - 1) < 0.1 for name, value in values.items()}


def embedding_multiplied_by_ten() -> dict[str, bool]:
    torch.manual_seed(0)
    embedding = torch.randn(200, 64, dtype=torch.float64)
    branch = nn.Linear(64, 64, bias=False).double()
    nn.init.normal_(branch.weight, std=64**-0.5)

    def measured(x: torch.Tensor) -> tuple[float, float]:
        """RMS of the update, and its size relative to that of the sum."""
        update = branch(rms_norm(x))
        return update.square().mean().sqrt().item(), (
            update.norm() / (x + update).norm()
        ).item()

    (before, share), (after, small) = measured(embedding), measured(10 * embedding)
    grows, falls = abs(after / before - 10) < 0.1, small / share < 0.5
    stays = abs(after / before - 1) < 0.01
    return {
        "both-grow": grows and not falls,
        "share-falls": stays and falls,
        "nothing": stays and not falls,
        "shrinks": abs(after / before - 0.1) < 0.01,
    }
