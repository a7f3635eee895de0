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
    assert torch.allclose(rms, l2 * width**0.5, atol=1e-4)  # by the scale
    uniform = torch.tensor(keys).log()
    assert attention_entropy(l2 / width**0.5).mean() > 0.999 * uniform
    assert attention_entropy(rms).mean() < 0.3 * uniform


# verdict: holds-when
def qk_norm_bounds_logits_by_the_root_of_the_width():
    torch.manual_seed(0)
    attention = Attention(64, heads=1, norm=RMSNorm).double()
    attention.key.weight.data = attention.query.weight.data.clone()
    x = torch.randn(1, 16, 64, dtype=torch.float64)
    assert 7.9 < attention.logits(x).abs().max() <= 8  # sqrt(64)
    with torch.no_grad():
        attention.query_norm.gain.fill_(3)
        attention.key_norm.gain.fill_(3)
    assert attention.logits(x).abs().max() > 70  # up to 9 * 8


# verdict: holds-when
def qk_norm_and_rope_commute():
    torch.manual_seed(0)
    x = torch.randn(12, 16, dtype=torch.float64)
    gain = torch.rand(16, dtype=torch.float64) + 0.5
    torch.testing.assert_close(rotate(rms_norm(x)), rms_norm(rotate(x)))
    gap = rotate(rms_norm(x, gain)) - rms_norm(rotate(x), gain)
    assert gap.abs().max() > 0.1
    mean_too = rotate(F.layer_norm(x, (16,))) - F.layer_norm(rotate(x), (16,))
    assert mean_too.abs().max() > 0.1


# verdict: wrong
def gemma_2_has_qk_norm():
    two, three = small("gemma2"), small("gemma3_text")
    assert not hasattr(Gemma2Attention(two, 0), "q_norm")
    assert two.attn_logit_softcapping == 50
    assert two.final_logit_softcapping == 30
    assert hasattr(Gemma3Attention(three, 0), "q_norm")
    assert three.attn_logit_softcapping is None
    assert three.final_logit_softcapping is None


# verdict: holds-when
def qk_norm_is_taken_over_each_head():
    torch.manual_seed(0)
    qwen = Qwen3Attention(small("qwen3"), 0)
    olmo = Olmo2Attention(small("olmo2"), 0)
    assert qwen.q_norm.weight.shape == (16,)  # one head
    assert olmo.q_norm.weight.shape == (4 * 16,)  # all heads
    heads = torch.randn(4, 16) * torch.tensor([[0.1], [1.0], [1.0], [10.0]])
    alone = qwen.q_norm(heads).square().mean(dim=1).sqrt()
    together = olmo.q_norm(heads.flatten()).view(4, 16)
    assert torch.allclose(alone, torch.ones(4), atol=1e-3)
    assert together[0].norm() < 0.1 * together[3].norm()


# verdict: holds-when
def qk_norm_needs_no_communication():
    torch.manual_seed(0)
    heads = torch.randn(50, 4, 16, dtype=torch.float64)
    heads *= torch.tensor([0.1, 1.0, 1.0, 10.0])[:, None]
    shards = heads.split(2, dim=1)  # two devices, two heads each
    local = torch.cat([rms_norm(shard) for shard in shards], dim=1)
    assert torch.allclose(local, rms_norm(heads))  # each head alone
    whole, flat = rms_norm(heads.flatten(1)), [s.flatten(1) for s in shards]
    local = torch.cat([rms_norm(shard) for shard in flat], dim=1)
    assert (local - whole).abs().max() > 1
    assert torch.allclose(torch.cat(sharded_rms_norm(flat), dim=1), whole)


# verdict: wrong
def l2norm_of_llama_4_makes_length_one():
    torch.manual_seed(0)
    y = Llama4TextL2Norm()(5 * torch.randn(3, 64))
    assert torch.allclose(y.norm(dim=-1), torch.full((3,), 64**0.5))
    assert torch.allclose(y.square().mean(dim=-1), torch.ones(3))


# verdict: wrong
def normformer_normalizes_values():
    torch.manual_seed(0)
    normformer = NormFormerAttention(32, heads=4, scale_heads=True)
    norms = [m for m in normformer.modules() if "Norm" in type(m).__name__]
    assert not norms
    layers = {"num_kv_shared_layers": 0, "layer_types": ["full_attention"] * 2}
    gemma = Gemma3nTextAttention(small("gemma3n_text", **layers), 0)
    v = 9 * torch.randn(5, 16)
    y = gemma.v_norm(v)
    assert torch.allclose(y, rms_norm(v), atol=1e-5)
    assert not list(gemma.v_norm.parameters())  # no gain


# verdict: holds-when
def qk_norm_fits_every_kind_of_attention():
    torch.manual_seed(0)
    q, up = torch.randn(16), torch.randn(16, 4)  # up: latent to key
    latent = torch.randn(6, 4)  # the cache of latent attention
    absorbed = q @ up  # once a query; no key is ever formed
    torch.testing.assert_close(latent @ absorbed, (latent @ up.T) @ q)
    normed = rms_norm(latent @ up.T) @ rms_norm(q)
    ratio = normed / (latent @ absorbed)
    assert ratio.max() > 1.2 * ratio.min()  # each key needs its own size


# verdict: wrong
def qk_clip_adds_a_layer_to_the_model():
    torch.manual_seed(0)
    attention = Attention(64, heads=4).double()
    x = torch.randn(4, 32, 64, dtype=torch.float64)
    attention.query.weight.data[:16] *= 20  # one loud head
    names = set(attention.state_dict())
    before = largest_logit(attention.logits(x))
    qk_clip(attention, before, tau=2.0)
    after = largest_logit(attention.logits(x))
    assert set(attention.state_dict()) == names
    torch.testing.assert_close(after[0], torch.tensor(2.0).double())
    torch.testing.assert_close(after[1:], before[1:])


# verdict: holds-when
def qk_norm_and_capping_are_double_insurance():
    torch.manual_seed(0)
    attention = Attention(64, heads=1, norm=RMSNorm).double()
    attention.key.weight.data = attention.query.weight.data.clone()
    x = torch.randn(4, 32, 64, dtype=torch.float64)
    logits = attention.logits(x)
    assert 7.9 < logits.max() <= 8  # as large as gains of one allow
    assert (soft_cap(logits, 50.0) - logits).abs().max() < 0.07
    with torch.no_grad():
        attention.query_norm.gain.fill_(10)
        attention.key_norm.gain.fill_(10)
    logits = attention.logits(x)
    assert (soft_cap(logits, 50.0) - logits).abs().max() > 100


# verdict: wrong
def soft_capping_truncates_logits():
    z = torch.tensor([10.0, 30.0, 60.0], dtype=torch.float64)
    slope = soft_cap_backward(torch.ones_like(z), z, 30.0)
    wanted = torch.tensor([9.65, 22.85, 28.92], dtype=torch.float64)
    assert torch.allclose(soft_cap(z, 30.0), wanted, atol=0.01)
    assert not torch.allclose(soft_cap(z, 30.0), z.clamp(-30, 30), atol=1)
    assert torch.allclose(slope[1], torch.tensor(0.42).double(), atol=0.01)
    assert slope[2] > 0  # a clamp has slope 0 here


# verdict: wrong
def mistral_soft_caps_its_attention():
    def caps(name):
        config = CONFIG_MAPPING[name]().get_text_config().to_dict()
        return {key: cap for key, cap in config.items() if "softcap" in key}

    def code(name):
        return Path(transformers.models.__path__[0], name, f"modeling_{name}.py")

    assert caps("gemma2")["attn_logit_softcapping"] == 50.0  # so it would be found
    assert "attn_logit_softcapping" in code("gemma2").read_text()
    for name in ("mistral", "mixtral", "ministral", "ministral3", "mistral4"):
        assert caps(name) == {} and "softcap" not in code(name).read_text()
    assert caps("mistral_large4") == {"final_logit_softcapping": 30.0}
    assert "attn_logit_softcapping" not in code("mistral_large4").read_text()


# verdict: wrong
def a_cap_of_50_prevents_one_hot_attention():
    logits = torch.full((1, 128), -1000.0, dtype=torch.float64)
    logits[0, 3] = 1000.0
    weights = soft_cap(logits, 50.0).softmax(dim=-1)
    assert 1 - weights[0, 3] < 1e-12
    lifted = torch.tensor([210.0, 200.0])  # a margin of 10, far above the cap
    assert lifted.softmax(dim=-1)[0] > 0.9999
    assert soft_cap(lifted, 50.0).softmax(dim=-1)[0] < 0.51


# verdict: wrong
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
        results[final, attention] = out.logits, out.attentions[0]
    plain, final, both = results.values()
    assert torch.equal(final[1], plain[1])
    assert not torch.allclose(final[0], plain[0], atol=1e-3)
    assert not torch.allclose(both[1], plain[1], atol=1e-3)


# verdict: wrong
def mask_and_cap_may_be_swapped():
    future = torch.tensor([False, False, True, True])
    logits = torch.tensor([-200.0, -201.0, 0.0, 0.0])
    right = soft_cap(logits, 50.0).masked_fill(future, -torch.inf)
    wrong = soft_cap(logits.masked_fill(future, -torch.inf), 50.0)
    assert right.softmax(dim=-1)[future].sum() == 0
    assert wrong.softmax(dim=-1)[future].sum() > 0.49


# verdict: holds-when
def the_final_cap_does_not_change_generation():
    torch.manual_seed(0)
    logits = 10 * torch.randn(200, 1000, dtype=torch.float64)
    capped = soft_cap(logits, 30.0)
    assert torch.equal(logits.argmax(dim=-1), capped.argmax(dim=-1))  # greedy
    top = logits.softmax(dim=-1).amax(dim=-1).mean()
    capped_top = capped.softmax(dim=-1).amax(dim=-1).mean()
    assert capped_top < 0.8 * top  # what sampling sees


# verdict: holds-when
def a_soft_cap_never_changes_the_ranking():
    logits = torch.linspace(0, 300, 1201, dtype=torch.float64)
    capped = soft_cap(logits, 50.0)
    assert (capped.diff() > 0).all()
    assert capped.bfloat16().unique().numel() < 300  # of 1201 logits


# verdict: wrong
def sdpa_applies_a_soft_cap():
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, 8, 16)
    scores = q @ k.mT / 16**0.5
    capped = (2 * torch.tanh(scores / 2)).softmax(-1) @ v  # a cap of 2
    plain = F.scaled_dot_product_attention(q, k, v)
    assert not torch.allclose(plain, capped, atol=1e-3)
    schema = torch.ops.aten.scaled_dot_product_attention.default._schema
    arguments = {argument.name for argument in schema.arguments}
    inputs = {"query", "key", "value", "attn_mask"}
    assert arguments == inputs | {"dropout_p", "is_causal", "scale", "enable_gqa"}

    assert "score_mod" in signature(flex_attention).parameters  # this one can
