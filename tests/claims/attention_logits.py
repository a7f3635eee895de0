import re
from inspect import signature
from pathlib import Path

import torch
import transformers
from torch.nn import functional as F
from torch.nn.attention.flex_attention import flex_attention
from transformers import CONFIG_MAPPING, Gemma2ForCausalLM
from transformers.models.gemma2.modeling_gemma2 import Gemma2Attention
from transformers.models.gemma3.modeling_gemma3 import Gemma3Attention
from transformers.models.gemma3n.modeling_gemma3n import Gemma3nTextAttention
from transformers.models.llama4.modeling_llama4 import Llama4TextL2Norm
from transformers.models.olmo2.modeling_olmo2 import Olmo2Attention
from transformers.models.qwen3.modeling_qwen3 import Qwen3Attention

from snippets.normformer.block import Attention as NormFormerAttention
from snippets.qk_norm.attention import Attention, largest_logit
from snippets.qk_norm.axis import sharded_rms_norm
from snippets.qk_norm.clip import qk_clip
from snippets.qk_norm.entropy import attention_entropy, softmax_jacobian
from snippets.qk_norm.norms import l2_norm
from snippets.qk_norm.rope import rotate
from snippets.rms_norm.reference import RMSNorm, rms_norm
from snippets.soft_capping.reference import soft_cap, soft_cap_backward


def small(model_type: str, **options):
    """A tiny configuration of one of the models in transformers."""
    sizes = {"hidden_size": 32, "intermediate_size": 48, "head_dim": 16}
    sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2}
    sizes |= {"num_hidden_layers": 2, "vocab_size": 64}
    return CONFIG_MAPPING[model_type](**sizes | options)


def large_logits_kill_the_softmax_gradient():
    torch.manual_seed(0)
    logits = torch.randn(200, 128, dtype=torch.float64)
    sizes = {
        scale: softmax_jacobian(scale * logits).norm(dim=(1, 2)).median()
        for scale in (1, 4, 64)
    }
    assert sizes[4] > sizes[1]  # it grows before it dies
    return {
        "softmax comes close to one-hot": attention_entropy(64 * logits).mean() < 0.1,
        "its gradient vanishes": sizes[64] < 1e-4 * sizes[1],
    }


def pre_norm_keeps_attention_logits_in_bounds():
    torch.manual_seed(0)
    x = rms_norm(torch.randn(2, 32, 64, dtype=torch.float64))  # normed input
    growth = {}
    for norm in (None, RMSNorm):
        attention = Attention(64, heads=4, norm=norm).double()
        before = attention.logits(x).std().item()
        with torch.no_grad():
            attention.query.weight.mul_(4)
            attention.key.weight.mul_(4)
        growth[norm] = attention.logits(x).std().item() / before
    assert abs(growth[RMSNorm] - 1) < 1e-3  # QK-Norm does bound them
    return {"matrices four times larger": growth[None] < 15.9}  # it is 16


def root_of_the_width_prevents_saturation():
    torch.manual_seed(0)
    cases = {}
    for width in (64, 1024):
        q, k = torch.randn(2, 256, width, dtype=torch.float64)
        unlike = q @ k.T / width**0.5
        like = (q * q).sum(dim=-1) / width**0.5
        cases[f"width {width}, independent vectors"] = unlike.std() < 1.05
        cases[f"width {width}, a query like its key"] = like.mean() < 1.05
    return cases


def l2_and_rms_are_the_same_qk_norm():
    torch.manual_seed(0)
    width, keys = 64, 128
    k = torch.randn(keys, width, dtype=torch.float64)
    q = k + 0.5 * torch.randn(keys, width, dtype=torch.float64)
    rms = rms_norm(q) @ rms_norm(k).T / width**0.5
    l2 = l2_norm(q) @ l2_norm(k).T
    uniform = torch.tensor(keys).log()
    assert attention_entropy(l2 / width**0.5).mean() > 0.999 * uniform
    assert attention_entropy(rms).mean() < 0.3 * uniform
    return {
        "the scale changes too": torch.allclose(rms, l2 * width**0.5, atol=1e-4),
        "both with 1/√d": torch.allclose(rms, l2 / width**0.5, atol=1e-4),
    }


def qk_norm_bounds_logits_by_the_root_of_the_width():
    torch.manual_seed(0)
    attention = Attention(64, heads=1, norm=RMSNorm).double()
    attention.key.weight.data = attention.query.weight.data.clone()
    x = torch.randn(1, 16, 64, dtype=torch.float64)
    largest = {}
    for gain in (1, 3):
        with torch.no_grad():
            attention.query_norm.gain.fill_(gain)
            attention.key_norm.gain.fill_(gain)
        largest[f"all gains {gain}"] = attention.logits(x).abs().max()
    assert largest["all gains 1"] > 7.9 and largest["all gains 3"] > 70  # up to 9 * 8
    return {gains: logit <= 8 for gains, logit in largest.items()}  # sqrt(64)


def qk_norm_and_rope_commute():
    torch.manual_seed(0)
    x = torch.randn(12, 16, dtype=torch.float64)
    gain = torch.rand(16, dtype=torch.float64) + 0.5
    paired = gain[:8].repeat(2)  # feature i turns with feature i + 8

    def gap(norm):
        return (rotate(norm(x)) - norm(rotate(x))).abs().max()

    return {
        "RMSNorm without a gain": gap(rms_norm) < 1e-6,
        "equal gains in each pair": gap(lambda v: rms_norm(v, paired)) < 1e-6,
        "gains that differ in a pair": gap(lambda v: rms_norm(v, gain)) < 0.1,
        "LayerNorm without a gain": gap(lambda v: F.layer_norm(v, (16,))) < 0.1,
    }


def gemma_2_has_qk_norm():
    two, three = small("gemma2"), small("gemma3_text")
    assert two.attn_logit_softcapping == 50
    assert two.final_logit_softcapping == 30
    assert hasattr(Gemma3Attention(three, 0), "q_norm")
    assert three.attn_logit_softcapping is None
    assert three.final_logit_softcapping is None
    return {"attention of Gemma 2": hasattr(Gemma2Attention(two, 0), "q_norm")}


def qk_norm_is_taken_over_each_head():
    torch.manual_seed(0)
    qwen = Qwen3Attention(small("qwen3"), 0)
    olmo = Olmo2Attention(small("olmo2"), 0)
    assert qwen.q_norm.weight.shape == (16,)  # one head
    assert olmo.q_norm.weight.shape == (4 * 16,)  # all heads
    heads = torch.randn(4, 16) * torch.tensor([[0.1], [1.0], [1.0], [10.0]])
    outputs = {
        "Qwen3": qwen.q_norm(heads),
        "OLMo 2": olmo.q_norm(heads.flatten()).view(4, 16),
    }
    together = outputs["OLMo 2"]
    assert together[0].norm() < 0.1 * together[3].norm()
    sizes = {name: y.square().mean(dim=1).sqrt() for name, y in outputs.items()}
    return {
        name: torch.allclose(size, torch.ones(4), atol=1e-3)
        for name, size in sizes.items()
    }


def qk_norm_needs_no_communication():
    torch.manual_seed(0)
    heads = torch.randn(50, 4, 16, dtype=torch.float64)
    heads *= torch.tensor([0.1, 1.0, 1.0, 10.0])[:, None]
    shards = heads.split(2, dim=1)  # two devices, two heads each
    each = torch.cat([rms_norm(shard) for shard in shards], dim=1)
    whole, flat = rms_norm(heads.flatten(1)), [s.flatten(1) for s in shards]
    local = torch.cat([rms_norm(shard) for shard in flat], dim=1)
    assert torch.allclose(torch.cat(sharded_rms_norm(flat), dim=1), whole)
    return {
        "a norm of each head": torch.allclose(each, rms_norm(heads)),
        "a norm over the whole projection": (local - whole).abs().max() < 1,
    }


def l2norm_of_llama_4_makes_length_one():
    torch.manual_seed(0)
    y = Llama4TextL2Norm()(5 * torch.randn(3, 64))
    length = y.norm(dim=-1)
    assert torch.allclose(length, torch.full((3,), 64**0.5))
    assert torch.allclose(y.square().mean(dim=-1), torch.ones(3))
    return {"heads of width 64": torch.allclose(length, torch.ones(3))}


def normformer_normalizes_values():
    def norms(module):
        return [m for m in module.modules() if "Norm" in type(m).__name__]

    torch.manual_seed(0)
    normformer = NormFormerAttention(32, heads=4, scale_heads=True)
    layers = {"num_kv_shared_layers": 0, "layer_types": ["full_attention"] * 2}
    gemma = Gemma3nTextAttention(small("gemma3n_text", **layers), 0)
    assert gemma.v_norm in norms(gemma)  # so one would be found
    v = 9 * torch.randn(5, 16)
    assert torch.allclose(gemma.v_norm(v), rms_norm(v), atol=1e-5)
    assert not list(gemma.v_norm.parameters())  # no gain
    return {"a norm in NormFormer's attention": len(norms(normformer)) > 0}


def qk_norm_fits_every_kind_of_attention():
    torch.manual_seed(0)
    q, up = torch.randn(16), torch.randn(16, 4)  # up: latent to key
    latent = torch.randn(6, 4)  # the cache of latent attention
    keys = latent @ up.T
    logits = latent @ (q @ up)  # absorbed once a query; no key is ever formed
    torch.testing.assert_close(logits, keys @ q)
    needed = rms_norm(keys) @ rms_norm(q) / logits  # what QK-Norm multiplies with
    assert needed.max() > 1.2 * needed.min()  # each key needs its own size

    def gives_the_size(vectors):
        factors = needed * vectors.norm(dim=1)
        return factors.max() < 1.2 * factors.min()

    return {
        "keys are formed": gives_the_size(keys),
        "only latents are read": gives_the_size(latent),
    }


def qk_clip_adds_a_layer_to_the_model():
    torch.manual_seed(0)
    attention = Attention(64, heads=4).double()
    x = torch.randn(4, 32, 64, dtype=torch.float64)
    attention.query.weight.data[:16] *= 20  # one loud head
    names, modules = set(attention.state_dict()), list(attention.modules())
    before = largest_logit(attention.logits(x))
    qk_clip(attention, before, tau=2.0)
    after = largest_logit(attention.logits(x))
    torch.testing.assert_close(after[0], torch.tensor(2.0).double())
    torch.testing.assert_close(after[1:], before[1:])
    return {
        "it leaves a module": list(attention.modules()) != modules,
        "it leaves a parameter": set(attention.state_dict()) != names,
    }


def qk_norm_and_capping_are_double_insurance():
    torch.manual_seed(0)
    attention = Attention(64, heads=1, norm=RMSNorm).double()
    attention.key.weight.data = attention.query.weight.data.clone()
    x = torch.randn(4, 32, 64, dtype=torch.float64)
    change = {}
    for gain in (1, 10):
        with torch.no_grad():
            attention.query_norm.gain.fill_(gain)
            attention.key_norm.gain.fill_(gain)
        logits = attention.logits(x)
        if gain == 1:
            assert 7.9 < logits.max() <= 8  # as large as gains of one allow
        change[gain] = (soft_cap(logits, 50.0) - logits).abs().max()
    return {
        "gains of 1, the cap does something": change[1] > 0.07,
        "gains of 10, the cap does something": change[10] > 100,
    }


def soft_capping_truncates_logits():
    z = torch.tensor([10.0, 30.0, 60.0], dtype=torch.float64)
    slope = soft_cap_backward(torch.ones_like(z), z, 30.0)
    wanted = torch.tensor([9.65, 22.85, 28.92], dtype=torch.float64)
    assert torch.allclose(soft_cap(z, 30.0), wanted, atol=0.01)
    assert torch.allclose(slope[1], torch.tensor(0.42).double(), atol=0.01)
    clipped = z.clamp(-30, 30)
    return {
        "logits of 10, 30 and 60": torch.allclose(soft_cap(z, 30.0), clipped, atol=1),
        "no slope at 60": slope[2] == 0,
    }


def mistral_soft_caps_its_attention():
    def config(name):
        config = CONFIG_MAPPING[name]().get_text_config().to_dict()
        return {key: cap for key, cap in config.items() if "softcap" in key}

    def caps(name):  # what the configuration and the code name
        path = Path(transformers.models.__path__[0], name, f"modeling_{name}.py")
        return config(name).keys() | set(re.findall(r"\w*softcap\w*", path.read_text()))

    assert config("gemma2")["attn_logit_softcapping"] == 50.0  # so it would be found
    assert "attn_logit_softcapping" in caps("gemma2")
    assert config("mistral_large4") == {"final_logit_softcapping": 30.0}
    none = ("mistral", "mixtral", "ministral", "ministral3", "mistral4")
    cases = {name: len(caps(name)) > 0 for name in none}
    output = {"final_logit_softcapping", "softcapping"}  # the second in a comment
    return cases | {"mistral_large4": len(caps("mistral_large4") - output) > 0}


def a_cap_of_50_prevents_one_hot_attention():
    logits = torch.full((1, 128), -1000.0, dtype=torch.float64)
    logits[0, 3] = 1000.0
    weights = soft_cap(logits, 50.0).softmax(dim=-1)
    lifted = torch.tensor([210.0, 200.0])  # a margin of 10, far above the cap
    assert lifted.softmax(dim=-1)[0] > 0.9999
    assert soft_cap(lifted, 50.0).softmax(dim=-1)[0] < 0.51
    return {"one logit far above, the others far below": 1 - weights[0, 3] > 1e-12}


def the_final_logit_cap_protects_attention():
    torch.manual_seed(0)
    model = Gemma2ForCausalLM(
        small("gemma2", attn_implementation="eager", query_pre_attn_scalar=1)
    ).eval()
    for layer in model.model.layers:
        layer.self_attn.q_proj.weight.data.mul_(50)  # loud logits
    tokens = torch.randint(64, (1, 12))
    results = {}
    for final, attention in ((None, None), (0.1, None), (None, 0.1)):
        model.config.final_logit_softcapping = final
        for layer in model.model.layers:
            layer.self_attn.attn_logit_softcapping = attention
        out = model(tokens, output_attentions=True)
        results[final, attention] = out.logits, out.attentions
    plain, final, both = results.values()
    assert not torch.allclose(final[0], plain[0], atol=1e-3)
    assert not torch.allclose(both[1][0], plain[1][0], atol=1e-3)
    return {
        f"layer {i} attends otherwise": not torch.equal(capped, weights)
        for i, (capped, weights) in enumerate(zip(final[1], plain[1], strict=True), 1)
    }


def mask_and_cap_may_be_swapped():
    future = torch.tensor([False, False, True, True])
    cases = {}
    for name, visible in {
        "logits of ordinary size": [2.0, -3.0],
        "a query that dislikes all visible keys": [-200.0, -201.0],
    }.items():
        logits = torch.tensor([*visible, 0.0, 0.0])
        right = soft_cap(logits, 50.0).masked_fill(future, -torch.inf).softmax(dim=-1)
        wrong = soft_cap(logits.masked_fill(future, -torch.inf), 50.0).softmax(dim=-1)
        assert right[future].sum() == 0
        cases[name] = torch.allclose(right, wrong)
    assert wrong[future].sum() > 0.49  # of the last query
    return cases


def the_final_cap_does_not_change_generation():
    torch.manual_seed(0)
    logits = 10 * torch.randn(200, 1000, dtype=torch.float64)
    capped = soft_cap(logits, 30.0)
    top = logits.softmax(dim=-1).amax(dim=-1).mean()
    capped_top = capped.softmax(dim=-1).amax(dim=-1).mean()
    return {
        "greedy": torch.equal(logits.argmax(dim=-1), capped.argmax(dim=-1)),
        "sampling, by the probability of the first": capped_top >= 0.8 * top,
    }


def a_soft_cap_never_changes_the_ranking():
    logits = torch.linspace(0, 300, 1201, dtype=torch.float64)
    capped = soft_cap(logits, 50.0)
    rounded = capped.bfloat16()
    assert rounded.unique().numel() < 300  # of 1201 logits
    return {
        "float64": (capped.diff() > 0).all(),
        "bfloat16": (rounded.diff() > 0).all(),
    }


def sdpa_applies_a_soft_cap():
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, 8, 16)
    scores = q @ k.mT / 16**0.5
    capped = (2 * torch.tanh(scores / 2)).softmax(-1) @ v  # a cap of 2
    plain = F.scaled_dot_product_attention(q, k, v)
    schema = torch.ops.aten.scaled_dot_product_attention.default._schema
    arguments = {argument.name for argument in schema.arguments}
    inputs = {"query", "key", "value", "attn_mask"}
    others = {"dropout_p", "is_causal", "scale", "enable_gqa"}
    assert "score_mod" in signature(flex_attention).parameters  # this one can
    return {
        "as it is called": torch.allclose(plain, capped, atol=1e-3),
        "by an argument more": arguments != inputs | others,
    }
