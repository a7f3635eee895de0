NAMES = {
    "embedding": "model.embed_tokens",
    "blocks": "model.layers",
    "attention_norm": "input_layernorm",
    "attention": "self_attn",
    "q": "q_proj",
    "k": "k_proj",
    "v": "v_proj",
    "out": "o_proj",
    "ffn_norm": "post_attention_layernorm",  # before the FFN all the same
    "ffn": "mlp",
    "gate": "gate_proj",
    "up": "up_proj",
    "down": "down_proj",
    "norm": "model.norm",
    "gain": "weight",
}


def llama_name(name: str) -> str:
    """What transformers' Llama and Qwen3 call a parameter of Decoder."""
    return ".".join(NAMES.get(part, part) for part in name.split("."))
