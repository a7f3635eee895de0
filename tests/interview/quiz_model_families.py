"""The keys of the quiz on model families, found on tiny models of transformers."""

import torch
from torch.nn import functional as F
from transformers import CONFIG_MAPPING, MODEL_MAPPING
from transformers.models.cohere.modeling_cohere import CohereDecoderLayer
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3Attention
from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm
from transformers.models.gemma4.modeling_gemma4 import Gemma4RMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.olmo2.modeling_olmo2 import Olmo2RMSNorm
from transformers.models.t5.modeling_t5 import T5LayerNorm

from scripts.measure import records

SIZES = {"hidden_size": 32, "intermediate_size": 48, "vocab_size": 64}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}


def _config(model_type: str, **options):
    sizes = SIZES | HEADS | {"num_hidden_layers": 1, "pad_token_id": 0} | options
    return CONFIG_MAPPING[model_type](**sizes)


def _model(model_type: str, **options):
    torch.manual_seed(0)
    config = _config(model_type, **options)
    return MODEL_MAPPING[type(config)](config).eval()


def _seen(model, layer: int = 0, **names) -> dict[str, torch.Tensor]:
    """Input and output of the named modules of a layer, one run."""
    seen = {}

    def watch(name):
        def hook(module, arguments, options, y):
            x = arguments[0] if arguments else options["hidden_states"]
            seen[f"{name}_in"], seen[f"{name}_out"] = x, y

        return hook

    for name, path in names.items():
        module = model.layers[layer].get_submodule(path)
        module.register_forward_hook(watch(name), with_kwargs=True)
    with torch.no_grad():
        model(torch.arange(6)[None])
    return seen


def attention_logits_of_gemma_2() -> dict[str, bool]:
    model = _model("gemma2", attn_implementation="eager")
    attention = model.layers[0].self_attn
    last = "q_norm" if hasattr(attention, "q_norm") else "q_proj"

    def weights(factor: float, module: str) -> torch.Tensor:
        """The last row of attention, with longer queries behind the module."""
        layer = attention.get_submodule(module)
        hook = layer.register_forward_hook(lambda module, x, y: factor * y)
        with torch.no_grad():
            found = model(torch.arange(40)[None], output_attentions=True).attentions
        hook.remove()
        return found[0][0, :, -1]

    normed = torch.allclose(weights(1e4, "q_proj"), weights(1, "q_proj"), atol=1e-4)
    first, second = weights(1e9, last).topk(2).values.unbind(-1)
    capped = torch.equal(first, second)  # the largest logits tie at the cap
    return {
        "soft-cap": capped and not normed,
        "qk-norm": normed and not capped,
        "both": capped and normed,
        "neither": not (capped or normed),
    }


def shape_of_the_query_gain() -> dict[str, bool]:
    def over_all_heads(model_type: str) -> bool:
        norm = _model(model_type).layers[0].self_attn.q_norm
        return tuple(norm.weight.shape) == (4 * 16,)

    return {
        "qwen3": over_all_heads("qwen3"),
        "gemma-3": over_all_heads("gemma3_text"),
        "olmo-2": over_all_heads("olmo2"),
        "exaone-4": over_all_heads("exaone4"),
    }


def post_attention_layernorm_of_glm4() -> dict[str, bool]:
    model = _model("glm4")
    seen = _seen(
        model, norm="post_attention_layernorm", attention="self_attn", mlp="mlp"
    )
    attention_output = seen["attention_out"][0]
    return {
        "before-the-mlp": torch.equal(seen["mlp_in"], seen["norm_out"]),
        "on-the-branch": torch.equal(seen["norm_in"], attention_output),
        "on-the-mlp-output": torch.equal(seen["norm_in"], seen["mlp_out"]),
    }


def branch_that_reads_the_raw_stream() -> dict[str, bool]:
    def raw(model_type: str, **options) -> bool:
        model = _model(model_type, **options)
        stream = model.embed_tokens(torch.arange(6)[None])
        return torch.equal(_seen(model, attention="self_attn")["attention_in"], stream)

    few_experts = {"num_local_experts": 2, "num_experts_per_tok": 1}
    return {
        "llama": raw("llama"),
        "olmo-2": raw("olmo2"),
        "gpt-oss": raw("gpt_oss", **few_experts),
        "glm-4": raw("glm4"),
    }


def weight_of_zero() -> dict[str, bool]:
    x = torch.randn(5, 32, generator=torch.Generator().manual_seed(0))

    def still_normalizes(norm) -> bool:
        torch.nn.init.zeros_(norm.weight)
        return torch.allclose(norm(x), F.rms_norm(x, (32,)), atol=1e-4)

    return {
        "llama": still_normalizes(LlamaRMSNorm(32)),
        "gemma-3": still_normalizes(Gemma3RMSNorm(32)),
        "gemma-4": still_normalizes(Gemma4RMSNorm(32)),
        "olmo-2": still_normalizes(Olmo2RMSNorm(32)),
    }


def norms_in_a_cohere_block() -> dict[str, bool]:
    layer = CohereDecoderLayer(_config("cohere"), 0)
    norms = [m for m in layer.modules() if type(m).__name__.endswith("Norm")]
    x = torch.randn(5, 32, generator=torch.Generator().manual_seed(0))
    centred = all(torch.allclose(n(x + 5), n(x), atol=1e-3) for n in norms)
    return {
        "one-layer-norm": len(norms) == 1 and centred,
        "one-rms-norm": len(norms) == 1 and not centred,
        "two-layer-norms": len(norms) == 2 and centred,
        "two-rms-norms": len(norms) == 2 and not centred,
    }


def key_matrix_behind_the_latent_norm() -> dict[str, bool]:
    torch.manual_seed(0)
    ranks = {"q_lora_rank": 16, "kv_lora_rank": 8, "head_dim": 8}
    parts = {"qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8}
    config = _config("deepseek_v3", num_key_value_heads=4, **ranks | parts)
    attention = DeepseekV3Attention(config, 0)
    latent = attention.kv_a_layernorm(torch.randn(1, 1, 6, 8))
    rotary = torch.randn(1, 1, 6, 8)
    with torch.no_grad():
        before = attention.expand_kv(latent, rotary)[0][..., :8].norm()
        attention.kv_b_proj.weight.mul_(10)
        ratio = attention.expand_kv(latent, rotary)[0][..., :8].norm() / before
    return {
        "unchanged": abs(ratio.item() - 1) < 0.01,
        "root-of-ten": abs(ratio.item() - 10**0.5) < 0.01,
        "ten": abs(ratio.item() - 10) < 0.01,
    }


def constant_added_to_the_features() -> dict[str, bool]:
    x = torch.randn(5, 32, generator=torch.Generator().manual_seed(0))

    def ignores(norm) -> bool:
        return torch.allclose(norm(x + 5), norm(x), atol=1e-3)

    return {
        "t5": ignores(T5LayerNorm(32)),
        "llama": ignores(LlamaRMSNorm(32)),
        "gemma-3": ignores(Gemma3RMSNorm(32)),
        "cohere": ignores(CohereDecoderLayer(_config("cohere"), 0).input_layernorm),
    }


def _atlas(architecture: str) -> dict:
    """The atlas's row of an architecture whose layers are alike."""
    [record] = records.find("model_atlas")
    [row] = [r for r in record.rows if r["architecture"] == architecture]
    return row


def _sites(architecture: str) -> list[str]:
    """Where the norms of a layer act, and those in front of and behind the layers."""
    return [norm[0] for norm in _atlas(architecture)["norms"]]


def norms_of_a_36_layer_qwen3() -> dict[str, bool]:
    config = _config("qwen3", num_hidden_layers=36)
    with torch.device("meta"):
        model = MODEL_MAPPING[type(config)](config)
    found = sum(type(m).__name__.endswith("Norm") for m in model.modules())
    return {
        "thirty-seven": found == 37,
        "seventy-three": found == 73,
        "one-hundred-forty-five": found == 145,
        "one-hundred-eighty-one": found == 181,
    }


def one_norm_for_two_branches() -> dict[str, bool]:
    return {
        "gpt-j": "shared-in" in _sites("gptj"),
        "gpt-neox": "shared-in" in _sites("gpt_neox"),
        "bloom": "shared-in" in _sites("bloom"),
        "gpt-2": "shared-in" in _sites("gpt2"),
    }


def layer_norm_on_the_embedding() -> dict[str, bool]:
    return {
        "gpt-2": "embedding" in _sites("gpt2"),
        "bloom": "embedding" in _sites("bloom"),
        "falcon": "embedding" in _sites("falcon"),
        "opt": "embedding" in _sites("opt"),
    }


def qk_norm_behind_the_rotation() -> dict[str, bool]:
    names = {
        "qwen3": "qwen3",
        "gemma-3": "gemma3_text",
        "hunyuan": "hunyuan_v1_dense",
        "olmo-2": "olmo2",
    }
    sides = {
        name: {side for *_, side in _atlas(row)["qk"]} for name, row in names.items()
    }
    assert all(len(found) == 1 for found in sides.values())
    return {name: found == {"after"} for name, found in sides.items()}


def layer_norm_without_parameters() -> dict[str, bool]:
    def learns_nothing(architecture: str) -> bool:
        norms = _atlas(architecture)["norms"]
        assert {kind for _, _, _, kind, *_ in norms} == {"LayerNorm"}
        return all(gain == "none" and not bias for _, _, _, _, gain, bias, *_ in norms)

    return {
        "gpt-neox": learns_nothing("gpt_neox"),
        "command-r": learns_nothing("cohere"),
        "olmo": learns_nothing("olmo"),
        "mpt": learns_nothing("mpt"),
    }


def norms_on_both_ends_of_a_branch() -> dict[str, bool]:
    ends = {"attention-in", "attention-out", "ffn-in", "ffn-out"}
    return {
        "qwen3": ends <= set(_sites("qwen3")),
        "gemma-2": ends <= set(_sites("gemma2")),
        "olmo-2": ends <= set(_sites("olmo2")),
        "gpt-oss": ends <= set(_sites("gpt_oss")),
    }


def residual_of_minimax_text() -> dict[str, bool]:
    few_experts = {"num_local_experts": 2, "num_experts_per_tok": 1}
    kinds = {"layer_types": ["full_attention"] * 2, "num_hidden_layers": 2}
    model = _model("minimax", **kinds, **few_experts)
    seen = _seen(
        model,
        layer=1,
        first="input_layernorm",
        attention="self_attn",
        second="post_attention_layernorm",
    )
    added = seen["second_in"] - seen["attention_out"][0]
    tensors = {
        "stream": seen["first_in"],
        "normed": seen["first_out"],
        "embedding": model.embed_tokens(torch.arange(6)[None]),
    }
    return {n: torch.allclose(added, x, atol=1e-5) for n, x in tensors.items()}
