"""A tiny, random instance of an architecture: no download, no tokenizer.

Only sizes are changed, and no switch but those that tests/atlas/test_tiny.py
lists with their reason: what the block computes is what the class does by
default. Weights and stored buffers are random, so that all
tensors differ and no factor is one by accident.
"""

import inspect
import zlib

HIDDEN, HEADS, KV_HEADS, HEAD, FFN, VOCABULARY = 64, 4, 2, 24, 80, 131
LAYERS = 4
MOST_LAYERS = 8  # where the kinds of layers need more than LAYERS
BATCH, TOKENS = 2, 11

# Sizes by field name; a field that a configuration lacks is not set.
SIZES = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "d_embed"), HIDDEN),
    **dict.fromkeys(("emb_dim", "embedding_size", "word_embed_proj_dim"), HIDDEN),
    **dict.fromkeys(("lru_width", "cross_attention_hidden_size"), HIDDEN),
    **dict.fromkeys(("adapter_in_dim", "adapter_out_dim"), HIDDEN),
    **dict.fromkeys(("adapter_input_size", "audio_hidden_size"), HIDDEN),
    **dict.fromkeys(
        (
            "num_attention_heads",
            "n_head",
            "n_heads",
            "num_heads",
            "encoder_attention_heads",
            "decoder_attention_heads",
            "num_encoder_attention_heads",
            "num_decoder_attention_heads",
        ),
        HEADS,
    ),
    **dict.fromkeys(
        ("num_key_value_heads", "num_kv_heads", "n_head_kv", "kv_n_heads"), KV_HEADS
    ),
    **dict.fromkeys(("head_dim", "d_kv", "attention_head_dim", "kv_channels"), HEAD),
    **dict.fromkeys(("global_head_dim", "swa_head_dim"), HEAD),
    **dict.fromkeys(("v_head_dim", "swa_v_head_dim"), HEAD),
    **dict.fromkeys(
        (
            "intermediate_size",
            "ffn_dim",
            "n_inner",
            "d_ff",
            "d_inner",
            "dim_ff",
            "encoder_ffn_dim",
            "decoder_ffn_dim",
            "ffn_hidden_size",
            "moe_intermediate_size",
            "shared_intermediate_size",
            "intermediate_size_mlp",
            "shared_expert_intermediate_size",
            "moe_shared_expert_intermediate_size",
            "expert_ffn_hidden_size",
            "prefix_dense_intermediate_size",
        ),
        FFN,
    ),
    **dict.fromkeys(
        (
            "num_hidden_layers",
            "n_layer",
            "n_layers",
            "num_layers",
            "encoder_layers",
            "decoder_layers",
            "num_encoder_layers",
            "num_decoder_layers",
        ),
        LAYERS,
    ),
    "vocab_size": VOCABULARY,
    "vocab_size_per_layer_input": VOCABULARY,
    "hidden_size_per_layer_input": 16,
    **dict.fromkeys(
        ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"), 64
    ),
    **dict.fromkeys(("max_target_positions", "max_source_positions"), 64),
    "max_encoder_position_embeddings": 64,
    "max_decoder_position_embeddings": 64,
    **dict.fromkeys(
        (
            "num_experts",
            "num_local_experts",
            "n_routed_experts",
            "moe_num_experts",
            "num_routed_experts",
        ),
        4,
    ),
    **dict.fromkeys(
        ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k"), 2
    ),
    **dict.fromkeys(("top_k_experts", "router_top_k"), 2),
    **dict.fromkeys(("n_group", "topk_group"), 1),
    "q_lora_rank": 20,
    "kv_lora_rank": 28,
    "o_lora_rank": 12,
    "o_groups": 2,
    "qk_nope_head_dim": 24,
    "qk_rope_head_dim": 8,
    "qk_head_dim": 32,
    "index_n_heads": 2,
    "index_head_dim": 16,
    "index_topk": 4,
    "sliding_window": 6,
    "local_window": 6,
    "attention_window": 6,
    **dict.fromkeys(("mamba_d_state", "state_size", "ssm_state_size"), 8),
    **dict.fromkeys(("mamba_n_heads", "mamba_num_heads"), 8),
    **dict.fromkeys(("mamba_d_head", "mamba_head_dim"), 16),
    **dict.fromkeys(("mamba_n_groups", "n_groups", "mamba_ngroups"), 2),
    **dict.fromkeys(("mamba_chunk_size", "chunk_size"), 8),
    "mamba_dt_rank": 5,
    "time_step_rank": 5,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_conv_kernel_dim": 4,
    "conv_L_cache": 3,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
NOT_SIZES = {"pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"}

# Dependent or unusual fields, by model type.
MLA = dict(head_dim=8, num_key_value_heads=HEADS, v_head_dim=HEAD)
WHERE_NONE = {"num_key_value_heads": HEADS}  # what the class makes of None
SHARED_CACHE = dict(
    num_hidden_layers=4,
    layer_types=["sliding_attention", "full_attention"] * 2,
    num_kv_shared_layers=2,
)
ROPE = dict(rope_type="default", rope_theta=1e4)


def _sections(*sizes: int, **others) -> dict:
    """RoPE of three axes, whose sections fill half a tiny head."""
    return dict(rope_parameters=ROPE | dict(mrope_section=list(sizes))) | others


SPECIAL: dict[str, dict] = {
    "blt": dict(encoder_hash_byte_group_vocab=50),  # 3 GB of tables else
    "chameleon": dict(vocabulary_map={"<image>": 3}),
    "codegen": dict(rotary_dim=8),
    "cohere_compass_text": dict(
        layer_types=["sliding_attention", "full_attention"] * 2,
        rope_parameters=dict.fromkeys(["sliding_attention", "full_attention"], ROPE),
    ),
    "cosmos3_edge_text": _sections(4, 4, 4),
    "dbrx": dict(attn_config=dict(kv_n_heads=KV_HEADS, rope_theta=1e4, clip_qkv=8)),
    "deepseek_v2": dict(num_experts_per_tok=2, first_k_dense_replace=1),
    "deepseek_v4": dict(
        compress_rates=dict(
            compressed_sparse_attention=4, heavily_compressed_attention=5
        )
    ),
    "dots1": dict(n_routed_experts=4, n_shared_experts=1, num_experts_per_tok=2),
    "ernie4_5_vl_moe_text": _sections(3, 3, 2),
    "esm": dict(vocab_size=VOCABULARY, mask_token_id=3, pad_token_id=1),
    "falcon_h1": dict(mamba_d_ssm=128),
    "gemma3n_text": SHARED_CACHE
    | dict(intermediate_size=FFN, laurel_rank=8, activation_sparsity_pattern=None),
    "glm4v_moe_text": dict(
        rope_parameters=ROPE | dict(mrope_section=[1, 1, 2], partial_rotary_factor=0.5)
    ),
    "glm4v_text": _sections(2, 3, 3),
    "glm5_next_text": dict(index_topk=16, num_key_value_heads=HEADS),
    "glm_ocr_text": _sections(2, 3, 3),
    "gptj": dict(rotary_dim=8),
    "granitemoehybrid": dict(layer_types=["mamba", "attention"] * 2),
    "helium": dict(head_dim=16),
    "hunyuan_v1_dense": dict(head_dim=HEAD),
    "hunyuan_v1_moe": dict(head_dim=HEAD, num_experts=4, moe_topk=2),
    "hunyuan_vl_text": _sections(3, 3, 3, 3, head_dim=HEAD),
    "jamba": dict(attn_layer_period=2, attn_layer_offset=1, expert_layer_offset=1),
    "lfm2_moe": dict(layer_types=["conv", "full_attention"] * 2),
    "mamba2": dict(num_heads=8, head_dim=16),
    "ministral": dict(head_dim=HEAD),
    "paddleocr_vl_text": _sections(4, 4, 4),
    **dict.fromkeys(
        ("qwen2_5_omni_text", "qwen2_5_vl_text", "qwen2_vl_text"), _sections(2, 3, 3)
    ),
    "qwen4_exp_text": dict(
        indexer_n_heads=2,
        indexer_kv_heads=1,
        indexer_head_dim=32,
        indexer_budget=8,
        indexer_compress_ratio=2,
        hc_lowrank=12,
        heads_per_ngram=2,
        ngram_vocab_size_base=50,
        make_ngram_vocab_size_divisible_by=2,
        split_ngram_parts=2,
        ple_embed_dim=16,
    ),
    "reformer": dict(
        is_decoder=True,
        axial_pos_embds=False,
        attn_layers=["local", "lsh", "local", "lsh"],
        attention_head_size=16,
        feed_forward_size=FFN,
        local_attn_chunk_length=11,
        lsh_attn_chunk_length=11,
        num_buckets=2,
        num_hashes=1,
    ),
    "gemma4_assistant_text": dict(hidden_size_per_layer_input=0),
    "step3p5": dict(sliding_window=6),
    "zamba": dict(layers_block_type=["mamba", "hybrid"] * 2),
    "zaya": dict(num_experts_per_tok=1),
}

COUNTS = {"mamba_n_groups", "n_groups", "mamba_ngroups"}  # one stays one


def seed_of(architecture: str) -> int:
    return zlib.crc32(architecture.encode())


def _kinds(default, layers: int) -> dict[str, list]:
    """Per-layer lists cut to a few layers that show every combination."""
    lists = {
        name: list(value)
        for name, value in vars(default).items()
        if isinstance(value, (list, tuple)) and len(value) == layers and layers > 1
        if all(isinstance(item, (str, int, bool, float)) for item in value)
    }
    if not lists:
        return {}
    rows = list(zip(*lists.values(), strict=True))
    texts = [tuple(v for v in row if isinstance(v, (str, bool))) for row in rows]
    chosen = sorted({texts.index(text) for text in texts})[:MOST_LAYERS]
    for i in range(layers):
        if len(chosen) >= LAYERS:
            break
        if i not in chosen:
            chosen.append(i)
    chosen.sort()
    return {name: [values[i] for i in chosen] for name, values in lists.items()}


def settings(default, architecture: str = "") -> dict:
    """Keyword arguments that make a configuration like this one tiny."""
    config_class = type(default)
    fields = _fields(default)
    sub = getattr(config_class, "sub_configs", None) or {}
    found = {}
    mapped = set(getattr(config_class, "attribute_map", {}) or {})
    for name, value in SIZES.items():
        if name not in fields or name in sub:
            continue
        if name in mapped and config_class.attribute_map[name] in SIZES:
            continue
        try:
            old = getattr(default, name, None)
        except Exception:  # differs between layers
            old = value
        if old is None and name in WHERE_NONE:
            found[name] = WHERE_NONE[name]
        elif name in NOT_SIZES:
            if isinstance(old, int) and old >= VOCABULARY:
                found[name] = value
        elif isinstance(old, bool) or old == 0:  # zero switches something off
            continue
        elif isinstance(old, (int, float)):
            found[name] = min(old, value) if name in COUNTS else value
    layers = getattr(default, "num_hidden_layers", None)
    if isinstance(layers, int):
        lists = _kinds(default, layers)
        if lists:
            found |= lists
            count = len(next(iter(lists.values())))
            for name in ("num_hidden_layers", "n_layer", "num_layers"):
                if name in found:
                    found[name] = count
    if "qk_rope_head_dim" in found and "kv_lora_rank" in found:
        found |= {k: v for k, v in MLA.items() if k in found}
    for name in sub:
        inner = getattr(default, name, None)
        if inner is not None and name in fields:
            kind = type(inner)
            found[name] = kind(**_given(inner) | settings(inner, kind.model_type))
    return found | SPECIAL.get(architecture, {})


def _fields(config) -> set[str]:
    """Names that a configuration's class takes."""
    kind = type(config)
    fields = set(inspect.signature(kind.__init__).parameters)
    fields |= set(getattr(kind, "__dataclass_fields__", {}))
    return fields | set(vars(config)) | set(getattr(kind, "attribute_map", {}))


def _given(config) -> dict:
    """What a composite sets in one of its parts: where it leaves the part's class."""
    plain, fields = vars(type(config)()), _fields(config)
    return {
        name: value
        for name, value in vars(config).items()
        if name in fields and not name.startswith("_") and plain.get(name) != value
    }


def configuration(architecture: str, deeper: bool = False):
    """The tiny configuration of a model type; with twice as many layers if deeper."""
    config_class = _config_class(architecture)
    config = config_class(**settings(config_class(), architecture))
    wanted = getattr(model_class(architecture), "config_class", None)
    if wanted is not None and not isinstance(config, wanted):
        # The model type is a composite's, the class is that of its text part.
        for name in config.sub_configs or {}:
            if isinstance(getattr(config, name, None), wanted):
                config = getattr(config, name)
                break
    for name in NOT_SIZES:  # wrappers that look for it in the wrong place
        if not hasattr(config, name):
            setattr(config, name, None)
    if deeper:
        layers = config.num_hidden_layers
        for name, value in vars(config).items():
            if isinstance(value, list) and len(value) == layers:
                setattr(config, name, value * 2)
        config.num_hidden_layers = 2 * layers
    config._attn_implementation = "eager"
    return config


# Text decoders that no mapping of causal models lists, and encoders in wide use.
OTHERS = {
    "chameleon": "ChameleonForConditionalGeneration",
    "cosmos3_edge_text": "Cosmos3EdgeTextModel",
    "ernie4_5_vl_moe_text": "Ernie4_5_VLMoeTextModel",
    "glm4v_moe_text": "Glm4vMoeTextModel",
    "glm4v_text": "Glm4vTextModel",
    "glm5_next_text": "Glm5NextTextModel",
    "glm_ocr_text": "GlmOcrTextModel",
    "granite4_vision_text": "Granite4VisionTextModel",
    "granite_docling_text": "GraniteDoclingTextModel",
    "hunyuan_vl_text": "HunYuanVLTextModel",
    "mistral4": "Mistral4ForCausalLM",
    "mistral_large4_text": "MistralLarge4TextModel",
    "molmo2_text": "Molmo2TextModel",
    "muse_glimmer_text": "MuseGlimmerTextModel",
    "muse_spark_text": "MuseSparkTextModel",
    "paddleocr_vl_text": "PaddleOCRTextModel",
    "qwen2_5_omni_text": "Qwen2_5OmniThinkerTextModel",
    "qwen2_5_vl_text": "Qwen2_5_VLTextModel",
    "qwen2_vl_text": "Qwen2VLTextModel",
    "qwen3_omni_moe_text": "Qwen3OmniMoeThinkerTextModel",
    "qwen3_vl_moe_text": "Qwen3VLMoeTextModel",
    "qwen3_vl_text": "Qwen3VLTextModel",
    "step3p5": "Step3p7TextModel",
    **{
        "albert": "AlbertForMaskedLM",
        "deberta-v2": "DebertaV2ForMaskedLM",
        "distilbert": "DistilBertForMaskedLM",
        "esm": "EsmForMaskedLM",
        "eurobert": "EuroBertForMaskedLM",
        "gte": "GteForMaskedLM",
        "jina_embeddings_v3": "JinaEmbeddingsV3ForMaskedLM",
        "longformer": "LongformerForMaskedLM",
        "modernbert": "ModernBertForMaskedLM",
        "mpnet": "MPNetForMaskedLM",
        "nomic_bert": "NomicBertForMaskedLM",
    },
}


def architectures() -> dict[str, str]:
    """Model types with their class: causal, encoder-decoder, and `OTHERS`."""
    from transformers.models.auto import modeling_auto as auto

    found = dict(auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    found |= auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
    names = {n: c if isinstance(c, str) else c[0] for n, c in found.items()}
    return dict(sorted((OTHERS | names).items()))


def class_name(architecture: str) -> str:
    return architectures()[architecture]


def model_class(architecture: str):
    import transformers

    return getattr(transformers, class_name(architecture))


def _config_class(architecture: str):
    from transformers import CONFIG_MAPPING

    if architecture in OTHERS:
        return model_class(architecture).config_class
    return CONFIG_MAPPING[architecture]


def effective_start(model) -> dict[str, float]:
    """Means of the vectors as the class initialises them, by parameter."""
    return {
        name: p.detach().mean().item()
        for name, p in model.named_parameters()
        if p.ndim == 1
    }


def stored(model) -> dict:
    """Parameters, and the buffers of real numbers that a checkpoint holds."""
    kept = set(model.state_dict())
    found = dict(model.named_parameters())
    for name, buffer in model.named_buffers():
        if name in kept and buffer.is_floating_point() and "running_" not in name:
            found[name] = buffer
    return found


def randomise(model, seed: int) -> None:
    """Random weights: matrices of unit gain, vectors around where they were."""
    import torch

    random = torch.Generator().manual_seed(seed)
    for name, p in stored(model).items():
        noise = torch.randn(p.shape, generator=random).to(p.dtype)
        with torch.no_grad():
            if name.endswith("bias"):
                p.copy_(0.2 * noise)
            elif name.endswith("weight") and p.ndim == 1:
                p.copy_(1 + 0.3 * noise)
            elif p.ndim > 1 and p.shape[-1] > 1:
                p.copy_(noise / p.shape[-1] ** 0.5)
            else:
                p.add_(0.2 * noise)


def inputs(model, config, seed: int) -> dict:
    """Random tokens, for the encoder and the decoder where there are two."""
    import torch

    random = torch.Generator().manual_seed(seed)

    def tokens(count=TOKENS):
        text = getattr(config, "get_text_config", lambda: config)()
        most = min(getattr(text, "vocab_size", VOCABULARY) or VOCABULARY, VOCABULARY)
        rows = BATCH * getattr(config, "num_codebooks", 1)
        return torch.randint(3, most, (rows, count), generator=random)

    wanted = inspect.signature(model.forward).parameters
    given = {}
    if "input_ids" in wanted:
        given["input_ids"] = tokens()
    if "input_features" in wanted and config.model_type in ("whisper",):
        length = 2 * config.max_source_positions
        shape = (BATCH, config.num_mel_bins, length)
        given["input_features"] = torch.randn(shape, generator=random)
    if "decoder_input_ids" in wanted:
        given["decoder_input_ids"] = tokens(TOKENS - 2)
    crossed = any(name.endswith("encoder_attn") for name, _ in model.named_modules())
    if crossed and "decoder_input_ids" not in wanted:  # what no encoder here gives
        memory = torch.randn(BATCH, TOKENS - 4, HIDDEN, generator=random)
        if "encoder_hidden_states" in wanted:
            given["encoder_hidden_states"] = memory
        elif "encoder_outputs" in wanted:
            given["encoder_outputs"] = (memory,)
    if "use_cache" in wanted:
        given["use_cache"] = False
    return given


def build(architecture: str, deeper: bool = False):
    """(model, inputs, vectors at initialisation), the same every time."""
    import torch

    seed = seed_of(architecture)
    torch.manual_seed(seed)
    config = configuration(architecture, deeper)
    model = model_class(architecture)(config).eval().float()
    if architecture == "xmod":
        model.set_default_language("en_XX")
    start = effective_start(model)
    randomise(model, seed)
    return model, inputs(model, config, seed), start
