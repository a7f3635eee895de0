import math

import torch
from torch import nn
from torch.nn import functional as F
from transformers import CONFIG_MAPPING
from transformers.models.minimax.modeling_minimax import MiniMaxDecoderLayer

from scripts.experiments import depth_limit
from scripts.measure import records
from snippets.deepnorm.block import Attention, DeepNorm, FeedForward, initialize
from snippets.deepnorm.coefficients import coefficients
from snippets.deepnorm.stacks import stack as deepnorm_stack
from snippets.normformer.block import Attention as NormFormerAttention
from snippets.normformer.block import Block
from snippets.normformer.stack import Stack, fc2_gradients
from snippets.normformer.stack import initialize as initialize_normformer
from snippets.residual_recipes.complete_p import DepthScaled
from snippets.residual_recipes.layer_scale import LayerScale, initial_scale
from snippets.rms_norm.reference import rms_norm
from snippets.sandwich_norm.blocks import SandwichNorm
from snippets.sandwich_norm.pb_relax import relaxed_softmax
from snippets.sandwich_norm.stacks import PreNorm
from snippets.sandwich_norm.stacks import stack as sandwich_stack
from snippets.without_normalization.residual import ScaledResidual


def small(model_type: str, **options):
    """A tiny configuration of one of the models in transformers."""
    sizes = {"hidden_size": 32, "intermediate_size": 48, "head_dim": 16}
    sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2}
    sizes |= {"num_hidden_layers": 2, "vocab_size": 64}
    return CONFIG_MAPPING[model_type](**sizes | options)


def deepnorm_multiplies_the_branch_by_alpha():
    torch.manual_seed(0)
    alpha = coefficients(decoder_layers=100)["decoder"].alpha
    x, update = torch.randn(2, 64, 4096)
    right = DeepNorm(lambda _: update, 4096, alpha)(x)
    claimed = F.layer_norm(x + alpha * update, (4096,))
    assert F.cosine_similarity(right, x, dim=-1).mean() > 0.95
    assert F.cosine_similarity(claimed, x, dim=-1).mean() < 0.3
    return {"100 layers": torch.allclose(right, claimed)}


def one_pair_of_constants_serves_every_deepnorm_model():
    def claimed(layers):
        return (2 * layers) ** 0.25, (8 * layers) ** -0.25

    alone = coefficients(decoder_layers=12)["decoder"]
    assert torch.allclose(torch.tensor(alone), torch.tensor([2.21, 0.319]), 1e-2)
    both = coefficients(encoder_layers=12, decoder_layers=12)
    assert both["encoder"] != both["decoder"]
    assert both["decoder"] == ((3 * 12) ** 0.25, (12 * 12) ** -0.25)
    encoder = coefficients(encoder_layers=12)["encoder"]
    return {
        "a decoder alone": alone == claimed(12),
        "an encoder alone": encoder == claimed(12),
        "the encoder of a model with both": both["encoder"] == claimed(12),
        "the decoder of a model with both": both["decoder"] == claimed(12),
    }


def n_in_deepnorm_counts_sublayers():
    def budget(n):  # of the first step: 100 sublayers, each with its share
        alpha, beta = coefficients(decoder_layers=n)["decoder"]
        return 100 * 2 * beta**2 / alpha**2

    assert abs(budget(50) - 1) < 1e-12  # 50 layers
    assert abs(budget(100) - 0.5) < 1e-12
    return {"50 layers, N is 100": abs(budget(100) - 1) < 1e-12}


def beta_shrinks_queries_and_keys_too():
    torch.manual_seed(0)
    attention, x = Attention(64, heads=4), torch.randn(1, 8, 64)
    initialize(attention, beta=0.1)
    sizes = {n: p.std().item() for n, p in attention.named_parameters()}
    before = attention(x).norm()
    attention.value.weight.data *= 10
    assert torch.isclose(attention(x).norm(), 10 * before)
    attention.query.weight.data *= 10  # moves attention, not its size
    assert attention(x).norm() < 30 * before
    assert sizes["value.weight"] < 0.15 * sizes["query.weight"]
    return {
        f"the {name} matrix": sizes[f"{name}.weight"] < 2 * sizes["value.weight"]
        for name in ("query", "key")
    }


def deepnorm_keeps_the_update_independent_of_depth():
    change = {}
    for layers in (6, 24):
        for rule in (torch.clone, torch.sign):  # SGD, first step of Adam
            torch.manual_seed(0)
            blocks = deepnorm_stack("DeepNorm", layers, d=32)
            x, target = torch.randn(2, 2, 8, 32, dtype=torch.float64)
            y = blocks(x)
            (y * target).sum(dim=-1).mean().backward()
            with torch.no_grad():
                for name, weight in blocks.named_parameters():
                    if name.split(".")[-2] in ("value", "output", "up", "down"):
                        weight -= 1e-6 * rule(weight.grad)
                change[rule, layers] = (blocks(x) - y).norm()
    sgd, signs = (change[f, 24] / change[f, 6] for f in (torch.clone, torch.sign))
    return {
        "four times the layers, SGD": 0.5 < sgd < 1.5,
        "four times the layers, Adam": 0.5 < signs < 1.5,  # about twice the change
    }


def deepnorm_reaches_a_thousand_layers():
    ratio = {}
    for placement in ("Post-Norm", "DeepNorm"):
        torch.manual_seed(0)
        blocks = deepnorm_stack(placement, layers=150, d=16)
        x, target = torch.randn(2, 1, 8, 16, dtype=torch.float64)
        (blocks(x) * target).sum().backward()
        first, last = (blocks[i].branch.down.weight.grad for i in (1, -1))
        ratio[placement] = first.norm() / last.norm()
    assert ratio["Post-Norm"] < 0.1
    record = records.find("depth_limit")[0]  # of our own short runs
    trains = depth_limit.trains(record, "deepnorm", 1000)
    return {
        "150 layers, gradients at the start": 0.5 < ratio["DeepNorm"] < 2,
        "1000 layers, shown by our short runs": trains,
    }


def glm_130b_uses_deepnorm_as_published():
    torch.manual_seed(0)
    layers = 70
    paper = coefficients(decoder_layers=layers)["decoder"]
    alpha, beta = (2 * layers) ** 0.5, (2 * layers) ** -0.5  # of GLM-130B
    budget = [4 * layers * b**2 / a**2 for a, b in (paper, (alpha, beta))]
    assert abs(budget[0] - 1) < 1e-12
    assert budget[1] < 0.02
    assert alpha > 3 * paper.alpha
    x, update = torch.randn(2, 8, 64)
    block = DeepNorm(lambda _: update, 64, alpha)(x)
    return {
        "the block": torch.allclose(block, F.layer_norm(alpha * x + update, (64,))),
        "the constant α": math.isclose(alpha, paper.alpha),
        "the constant β": math.isclose(beta, paper.beta),
    }


def no_large_language_model_uses_deepnorm():
    alpha = coefficients(decoder_layers=80)["decoder"].alpha
    assert f"{alpha:.4f}" == "3.5566"  # in MiniMax-Text-01's config.json
    factors = {"full_attn_alpha_factor": alpha, "mlp_alpha_factor": alpha}
    layers = {"layer_types": ["full_attention"] * 2, "num_local_experts": 2}
    layer = MiniMaxDecoderLayer(small("minimax", **layers, **factors), 0)
    for branch in (layer.self_attn, layer.mlp):
        for weight in branch.parameters():
            nn.init.zeros_(weight)  # what is left is the stream
    x, angle = torch.arange(160.0).view(1, 5, 32), torch.zeros(1, 5, 16)
    y = layer(x, position_embeddings=(angle.cos(), angle.sin()))
    multiplied = torch.allclose(y, alpha * rms_norm(x), atol=1e-3)
    return {"MiniMax-Text-01": not multiplied}


def sandwich_norm_keeps_the_stream_at_one_size():
    torch.manual_seed(0)
    blocks = sandwich_stack(SandwichNorm, layers=32)
    x = rms_norm(torch.randn(2, 16, 64, dtype=torch.float64))
    for block in blocks:
        before, x = x, block(x)
        update = (x - before).square().mean(dim=-1).sqrt()
        assert (update < 1.0001).all()  # each update is bounded
    size = x.square().mean().sqrt()
    assert 7 < size < 10  # 64 of them: about sqrt(65)
    return {"32 layers from a stream of size one": size < 2}


def small_output_matrices_make_small_updates_in_a_sandwich():
    torch.manual_seed(0)
    x = torch.randn(2, 16, 64, dtype=torch.float64)
    change = {}
    for kind in (PreNorm, SandwichNorm):
        block = sandwich_stack(kind, layers=1)[1]
        before = block(x)
        block.branch.down.weight.data *= 0.1
        change[kind] = (block(x) - before).norm() / (before - x).norm()
    assert torch.isclose(change[PreNorm], torch.tensor(0.9).double())  # a tenth is left
    return {"a tenth of the last matrix": change[SandwichNorm] > 1e-3}


def the_sandwich_alone_cured_cogview_of_overflow():
    torch.manual_seed(0)
    x = F.layer_norm(torch.randn(64, 64), (64,)).half()  # a guarded entrance
    query, key = 30 * torch.randn(2, 64, 64).half()
    q, k = x @ query, x @ key
    plain = ((q @ k.T) / 8).softmax(dim=-1)  # before any exit norm is reached
    assert relaxed_softmax(q, k).isfinite().all()
    return {"large queries and keys in float16": plain.isfinite().all()}


def pb_relax_approximates_softmax():
    torch.manual_seed(0)
    q, k = torch.randn(2, 64, 64, dtype=torch.float64)
    exact = ((q @ k.T) / 8).softmax(dim=-1)
    approximate = ((q / 32) @ k.T / 8).softmax(dim=-1)  # the 32 never made up for
    assert (approximate - exact).abs().max() > 0.1
    return {"float64": (relaxed_softmax(q, k) - exact).abs().max() > 1e-14}


def normformer_adds_pre_ln_an_attention_norm_and_head_scales():
    off = {"scale_heads": False, "scale_attn": False, "scale_fc": False}
    before, after = (
        {name for name, _ in Block(32, 4, **switches).named_parameters()}
        for switches in (off, dict.fromkeys(off, True))
    )
    added = {name.rpartition(".")[0] for name in after - before}
    assert added == {"attention", "output_norm", "ffn.norm"}
    assert Block(32, 4).ffn.norm.weight.shape == (4 * 32,)
    entrance = {"attention_norm.weight", "ffn_norm.weight"}  # Pre-LN
    assert entrance <= after
    return {"Pre-LN is an addition": not entrance <= before}


def head_scale_normalizes_each_head():
    torch.manual_seed(0)
    attention = NormFormerAttention(24, heads=4, scale_heads=True).double()
    attention.head_scale.data = torch.tensor([0.5, 1.0, 2.0, 3.0]).double()
    x = torch.randn(2, 5, 24, dtype=torch.float64)
    before = attention(x)
    bias, value = attention.out.bias, attention.qkv.weight[48:]
    scale = attention.head_scale.repeat_interleave(6)
    attention.out.weight.data *= scale  # the same function without it
    attention.head_scale.data.fill_(1)
    assert torch.allclose(attention(x), before)
    value.data *= 7
    attention.qkv.bias.data[48:] *= 7
    louder = attention(x)
    assert torch.allclose(louder - bias, 7 * (before - bias))
    return {"heads seven times as large": torch.allclose(louder, before)}


def the_extra_norms_of_normformer_balance_the_gradients():
    torch.manual_seed(0)
    text = torch.randint(100, (8, 33))
    off = {"scale_heads": False, "scale_attn": False, "scale_fc": False}
    first = []
    for switches in (off, dict.fromkeys(off, True)):
        torch.manual_seed(1)
        model = Stack(blocks=12, d=64, heads=4, **switches)
        initialize_normformer(model, "xavier")
        first.append(fc2_gradients(model, text)[0])  # over the last block's
    pre_ln, normformer = first
    assert pre_ln > 1.5  # the mismatch of Pre-LN
    return {"12 blocks at the start": normformer <= pre_ln}


def normformer_adds_0_4_percent_of_parameters():
    off = {"scale_heads": False, "scale_attn": False, "scale_fc": False}
    cases = {}
    for d, heads, size in ((768, 12, "125M"), (2048, 32, "1.3B")):
        with torch.device("meta"):
            plain, full = Block(d, heads, **off), Block(d, heads)
        before, after = (
            sum(p.numel() for p in block.parameters()) for block in (plain, full)
        )
        assert after - before == 10 * d + heads
        share = (after - before) / before
        assert share < 0.0012
        cases[f"a block at {size} parameters"] = round(share, 3) == 0.004
    return cases


def layerscale_and_rezero_are_the_same():
    torch.manual_seed(0)
    x, target = torch.randn(2, 3, 8, 32)
    layer_scale = LayerScale(FeedForward(32), nn.LayerNorm(32), 32, initial_scale(96))
    rezero = ScaledResidual(FeedForward(32))
    assert layer_scale.scale.shape == (32,) and rezero.alpha.shape == ()
    first = {}
    for block, branch in ((layer_scale, layer_scale.branch), (rezero, rezero.body)):
        (block(x) * target).sum().backward()
        first[block] = branch.down.weight.grad.norm()
    assert first[rezero] == 0 and rezero.alpha.grad != 0
    assert 0 < first[layer_scale] < 1e-2
    louder = [block(100 * x) - 100 * x for block in (layer_scale, rezero)]
    assert louder[0].norm() < 1.1 * (layer_scale(x) - x).norm()  # the norm in front
    assert torch.equal(louder[1], torch.zeros_like(x))
    return {
        "as many numbers": layer_scale.scale.shape == rezero.alpha.shape,
        "the same first gradient": first[layer_scale] == first[rezero],
        "the same output": torch.equal(layer_scale(x), rezero(x)),
    }


def root_depth_scaling_keeps_an_adam_step():
    change = {}
    for exponent in (0.5, 1.0):
        for layers in (4, 32):
            torch.manual_seed(0)
            blocks = nn.Sequential()
            for _ in range(layers):
                branch, norm = FeedForward(32), nn.LayerNorm(32)
                initialize(branch, beta=1.0)
                blocks.append(DepthScaled(branch, norm, layers / 4, exponent))
            blocks.append(nn.LayerNorm(32)).double()
            x, target = torch.randn(2, 16, 32, dtype=torch.float64)
            y = blocks(x)
            (y * target).sum().backward()
            with torch.no_grad():
                for weight in [
                    m.weight for m in blocks.modules() if isinstance(m, nn.Linear)
                ]:
                    weight -= 1e-7 * weight.grad.sign()  # Adam's first step
                change[exponent, layers] = (blocks(x) - y).norm()
    root, whole = (change[a, 32] / change[a, 4] for a in (0.5, 1.0))
    assert 0.7 < whole < 1.4  # by the depth itself
    return {"eight times the layers": root < 1.8}
