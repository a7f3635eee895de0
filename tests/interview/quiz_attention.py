"""The keys of the quiz on attention, each found by running."""

import torch
from torch.nn import functional as F
from transformers import Olmo2Config, Olmo2Model, Qwen3Config, Qwen3Model

from snippets.qk_norm.attention import Attention, largest_logit
from snippets.qk_norm.clip import qk_clip
from snippets.qk_norm.entropy import attention_entropy
from snippets.qk_norm.norms import l2_norm
from snippets.qk_norm.rope import rotate
from snippets.rms_norm.reference import RMSNorm, rms_norm
from snippets.soft_capping.reference import soft_cap


def query_and_key_times_ten() -> dict[str, bool]:
    torch.manual_seed(0)
    attention = Attention(64, heads=4, norm=RMSNorm).double()
    x = torch.randn(1, 32, 64, dtype=torch.float64)
    before = attention.logits(x).std()
    with torch.no_grad():
        attention.query.weight.mul_(10)
        attention.key.weight.mul_(10)
    ratio = (attention.logits(x).std() / before).item()
    return {
        "unchanged": abs(ratio - 1) < 1e-3,
        "ten": abs(ratio - 10) < 1,
        "hundred": abs(ratio - 100) < 10,
        "smaller": ratio < 0.9,
    }


def largest_logit_without_gains() -> dict[str, bool]:
    torch.manual_seed(0)
    width = 64
    q = torch.randn(10_000, width, dtype=torch.float64)
    k = torch.cat((q[:5_000], torch.randn(5_000, width)))  # half of them equal

    def largest_of(q, k):
        return (rms_norm(q) * rms_norm(k)).sum(dim=-1).abs().max().item() / width**0.5

    largest, from_longer = largest_of(q, k), largest_of(100 * q, 100 * k)
    return {
        "one": abs(largest - 1) < 0.01,
        "root-of-the-width": abs(largest - 8) < 0.01,
        "the-width": abs(largest - 64) < 0.01,
        "no-bound": from_longer > 100 * largest,
    }


def l2_with_the_usual_scale() -> dict[str, bool]:
    torch.manual_seed(0)
    width, keys = 64, 128
    k = torch.randn(keys, width, dtype=torch.float64)
    q = k + 0.5 * torch.randn(keys, width)  # each query resembles one key
    l2 = l2_norm(q) @ l2_norm(k).T / width**0.5
    rms = rms_norm(q) @ rms_norm(k).T / width**0.5
    uniform = torch.tensor(float(keys)).log()
    entropy = attention_entropy(l2).mean()
    return {
        "nearly-uniform": bool(entropy > 0.99 * uniform),
        "nearly-one-hot": bool(entropy < 0.1 * uniform),
        "same-as-rms": torch.allclose(l2.softmax(-1), rms.softmax(-1), atol=0.01),
    }


def which_norm_commutes_with_rope() -> dict[str, bool]:
    torch.manual_seed(0)
    width = 16
    x = torch.randn(12, width, dtype=torch.float64)
    gain = torch.rand(width, dtype=torch.float64) + 0.5

    def commutes(norm) -> bool:
        return torch.allclose(rotate(norm(x)), norm(rotate(x)), atol=1e-6)

    return {
        "rms-without-gain": commutes(rms_norm),
        "rms-with-gain": commutes(lambda x: rms_norm(x, gain)),
        "layer-norm-without-gain": commutes(lambda x: F.layer_norm(x, (width,))),
        "layer-norm-with-gain": commutes(lambda x: F.layer_norm(x, (width,), gain)),
    }


def mask_before_the_cap() -> dict[str, bool]:
    logits = torch.tensor([-200.0, -200.0, 0.0, 0.0])  # two visible, two masked
    masked = torch.tensor([False, False, True, True])
    wrong = soft_cap(logits.masked_fill(masked, -torch.inf), 50.0)
    share = wrong.softmax(dim=-1)[masked].sum().item()
    return {
        "nothing": share == 0,
        "rounding": 0 < share < 1e-6,
        "half": abs(share - 0.5) < 0.01,
        "nan": share != share,
    }


def margin_far_above_the_cap() -> dict[str, bool]:
    pair = torch.tensor([210.0, 200.0], dtype=torch.float64)
    capped = soft_cap(pair, 50.0)
    margin = (capped[0] - capped[1]).item()
    return {
        "stays": abs(margin - 10) < 1e-6,
        "melts": 0 < margin < 1,
        "equal": margin == 0,
        "reverses": margin < 0,
    }


def one_loud_head() -> dict[str, bool]:
    torch.manual_seed(0)
    heads = torch.randn(50, 4, 16, dtype=torch.float64)  # (token, head, width)
    loud = heads.clone()
    loud[:, 0] *= 10

    def size_of_the_others(x):
        return rms_norm(x.flatten(1)).unflatten(1, (4, 16))[:, 1:].norm()

    ratio = (size_of_the_others(loud) / size_of_the_others(heads)).item()
    return {
        "quieter": ratio < 0.9,
        "unchanged": abs(ratio - 1) < 0.01,
        "louder": ratio > 1.1,
    }


def keys_in_the_cache_of_qwen3() -> dict[str, bool]:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "vocab_size": 64}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
    model = Qwen3Model(Qwen3Config(num_hidden_layers=1, **sizes, **heads)).eval()
    with torch.no_grad():
        ids = torch.arange(6)[None]
        cached = model(ids, use_cache=True).past_key_values.layers[0].keys
        layer = model.layers[0]
        x = layer.input_layernorm(model.embed_tokens(ids))
        raw = layer.self_attn.k_proj(x).view(1, 6, 2, 8)
        normed = layer.self_attn.k_norm(raw).transpose(1, 2)
        raw = raw.transpose(1, 2)
    return {
        "raw": torch.allclose(cached, raw, atol=1e-4),
        "rotated": torch.allclose(cached, rotate(raw), atol=1e-4),
        "normed": torch.allclose(cached, normed, atol=1e-4),
        "normed-and-rotated": torch.allclose(cached, rotate(normed), atol=1e-4),
    }


def what_qk_clip_changes() -> dict[str, bool]:
    torch.manual_seed(0)
    attention = Attention(64, heads=4).double()
    attention.query.weight.data[:16] *= 20  # the first head is loud
    x = torch.randn(1, 32, 64, dtype=torch.float64)
    before = largest_logit(attention.logits(x))
    tau = (before[1:].max() + 1).item()  # only the loud head is above it
    qk_clip(attention, before, tau)
    after = largest_logit(attention.logits(x))
    others = torch.allclose(after[1:], before[1:])
    return {
        "only-the-loud-head": others and abs(after[0].item() - tau) < 1e-6,
        "all-heads": bool((after[1:] < 0.99 * before[1:]).all()),
        "nothing-yet": torch.allclose(after, before),
    }


def slope_beyond_the_cap() -> dict[str, bool]:
    def slope(function) -> float:
        logit = torch.tensor(60.0, dtype=torch.float64, requires_grad=True)
        return torch.autograd.grad(function(logit), logit)[0].item()

    clamp, capped = slope(lambda z: z.clamp(-50, 50)), slope(lambda z: soft_cap(z, 50))

    def are(a: float, b: float) -> bool:
        return abs(clamp - a) < 0.02 and abs(capped - b) < 0.02

    return {
        "zero-zero": are(0, 0),
        "zero-third": are(0, 0.3),
        "one-third": are(1, 0.3),
        "third-zero": are(0.3, 0),
    }


def parameters_of_qk_norm() -> dict[str, bool]:
    sizes = {"hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8}
    sizes |= {"num_hidden_layers": 1, "head_dim": 128, "vocab_size": 8}

    def gains(config: type, model: type) -> int:
        with torch.device("meta"):
            attention = model(config(**sizes, pad_token_id=0)).layers[0].self_attn
        return attention.q_norm.weight.numel() + attention.k_norm.weight.numel()

    found = gains(Qwen3Config, Qwen3Model), gains(Olmo2Config, Olmo2Model)
    return {
        "small-large": found == (256, 5120),
        "same-small": found == (256, 256),
        "same-large": found == (5120, 5120),
        "numbers": found == (40, 2),
    }


def norm_that_cannot_be_folded_into_the_query() -> dict[str, bool]:
    torch.manual_seed(0)
    q, gain = torch.randn(2, 16, dtype=torch.float64)
    expand = torch.randn(16, 8, dtype=torch.float64)
    cached = torch.randn(2, 8, dtype=torch.float64)  # of two tokens
    logits = {  # each a function of what is cached
        "latent": lambda c: (expand @ c) @ q,  # the norm is before the cache
        "query": lambda c: (expand @ c) @ rms_norm(q),
        "key": lambda c: rms_norm(expand @ c) @ q,
        "gain": lambda c: (gain * (expand @ c)) @ q,
    }

    def folds(logit) -> bool:
        """Linear in the cache: then it is a product with one vector."""
        folded = torch.stack([logit(basis) for basis in torch.eye(8).double()])
        return all(torch.allclose(logit(c), folded @ c) for c in cached)

    return {name: not folds(logit) for name, logit in logits.items()}
