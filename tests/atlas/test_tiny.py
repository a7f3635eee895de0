"""The tiny configurations differ from the defaults in sizes, and in nothing else."""

import pytest

pytest.importorskip("transformers")

import torch
from torch import nn

from scripts.experiments.atlas import tiny

# Sizes that are said by model type, and what belongs to sizes.
ALSO_SIZES = {
    *("head_dim", "layer_types", "num_kv_shared_layers", "rope_parameters"),
    "partial_rotary_factor",  # a ratio of two sizes
    *{name for special in tiny.SPECIAL.values() for name in special},
}
SIZES_WITHIN = ("rope_parameters", "compress_rates", "per_layer_config")
NEEDED = "the class does not run with its default, None"
WIDTH = "None stands for a size"
INDEXER = ("n_heads", "kv_heads", "head_dim", "budget", "compress_ratio")
# What is set and is no size, with the reason.
SWITCHES = {
    ("blt", "global_config.encoder_cross_output_size"): WIDTH,
    ("chameleon", "image_token_id"): "a token of the smaller vocabulary",
    ("chameleon", "vocabulary_map"): "a token of the smaller vocabulary",
    ("dbrx", "attn_config.clip_qkv"): NEEDED,
    ("dbrx", "attn_config.rope_theta"): "the class does not run without one",
    ("deepseek_v2", "num_experts_per_tok"): NEEDED,
    **dict.fromkeys(
        (
            ("dots1", "n_routed_experts"),
            ("dots1", "n_shared_experts"),
            ("dots1", "num_experts_per_tok"),
        ),
        NEEDED,
    ),
    ("esm", "mask_token_id"): "a token of the smaller vocabulary",
    ("esm", "vocab_size"): NEEDED,
    ("hunyuan_v1_dense", "head_dim"): WIDTH,
    ("hunyuan_v1_moe", "head_dim"): WIDTH,
    ("hunyuan_vl_text", "head_dim"): WIDTH,
    ("hyperclovax", "attention_multiplier"): "one over the root of the head's width",
    ("lfm2_moe", "layer_types"): NEEDED,
    ("ministral", "head_dim"): WIDTH,
    ("moshi", "audio_vocab_size"): WIDTH,
    **{
        (name, f"indexer_{size}"): NEEDED  # its full layers have no other attention
        for name in ("qwen4_exp", "qwen4_exp_text")
        for size in INDEXER
    },
    ("recurrent_gemma", "final_w_init_variance_scale"): "two over the layers",
    ("reformer", "is_decoder"): "the class asks for it",
    ("reformer", "axial_pos_embds"): "its shape follows the length of the text",
    ("reformer", "num_buckets"): "None stands for a number that follows the length",
    ("step3p5", "sliding_window"): NEEDED,
    ("youtu", "embedding_initializer_range"): "follows from the width",
    ("youtu", "initializer_range"): "follows from the width",
}
REFUSE = {"gemma4_assistant", "nemo_speechlm"}  # unresolved in the atlas


def different(default: dict, small: dict, path: str = ""):
    """(path, default, small) of fields that differ in more than a size."""
    for name in sorted(default.keys() | small.keys()):
        old, new, at = default.get(name), small.get(name), f"{path}{name}"
        if isinstance(old, dict) and isinstance(new, dict):
            if name not in SIZES_WITHIN:
                yield from different(old, new, f"{at}.")
        elif old != new and not is_size(name, old, new):
            yield at, old, new


def is_size(name: str, old, new) -> bool:
    if name.startswith("_") or name in tiny.NOT_SIZES:
        return True
    if isinstance(old, bool) or isinstance(new, bool):
        return False
    if isinstance(old, list) and isinstance(new, list):  # cut to the layers
        return all(item in old for item in new) or len(old) != len(new)
    if name in tiny.SIZES or name in ALSO_SIZES:
        absent = (old is None and name not in tiny.WHERE_NONE) or new is None
        return not absent and not isinstance(new, str)
    return isinstance(old, int) and isinstance(new, int)  # follows from sizes


def switches(architecture: str) -> list[str]:
    config = tiny.configuration(architecture)
    default = tiny._config_class(architecture)()
    if type(default) is not type(config):  # the text part of a composite
        names = default.sub_configs
        default = next(
            p for n in names if type(p := getattr(default, n)) is type(config)
        )
    return [
        f"{architecture}: {at} {old!r} -> {new!r}"
        for at, old, new in different(default.to_dict(), config.to_dict())
        if (architecture, at) not in SWITCHES
    ]


def test_no_switch_is_changed(no_violations):
    """In any architecture; the differences that there are have a reason above."""
    asked = set(tiny.architectures())
    assert {name for name, _ in SWITCHES} | REFUSE <= asked
    no_violations(said for name in sorted(asked - REFUSE) for said in switches(name))


def test_each_difference_that_has_a_reason_is_one(monkeypatch):
    known = dict(SWITCHES)
    monkeypatch.setattr(f"{__name__}.SWITCHES", {})
    for architecture, at in known:
        assert any(f": {at} " in said for said in switches(architecture)), at


def test_what_counts_as_a_switch():
    found = list(different({"a": True, "b": {"c": 1e-5}}, {"a": False, "b": {}}))
    assert [at for at, *_ in found] == ["a", "b.c"]
    assert not list(different({"hidden_size": 4096}, {"hidden_size": 64}))
    assert list(different({"rms_norm_eps": 1e-5}, {"rms_norm_eps": 1e-6}))


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.register_buffer("layer_scalar", torch.ones(1))
        self.register_buffer("angles", torch.ones(4), persistent=False)
        self.register_buffer("steps", torch.zeros(1, dtype=torch.long))


def test_what_a_checkpoint_stores_is_random_and_nothing_else():
    module = Scaled()
    tiny.randomise(module, 0)
    assert module.layer_scalar != 1 and (module.weight != 1).all()
    assert (module.angles == 1).all() and module.steps == 0


def test_a_composite_s_values_survive():
    for name in ("glmasr", "voxtral"):  # the text model's class says 1e-6
        text = tiny.configuration(name).get_text_config()
        assert text.rms_norm_eps == 1e-5, name
    decoder = tiny.configuration("encoder-decoder").decoder
    assert decoder.is_decoder and decoder.add_cross_attention


def test_a_deeper_instance_has_twice_the_layers():
    for name in ("minicpm3", "beam"):
        layers = tiny.configuration(name).num_hidden_layers
        config = tiny.configuration(name, deeper=True)
        assert config.num_hidden_layers == 2 * layers
        assert len(getattr(config, "layer_types", None) or [0] * 2 * layers) == (
            2 * layers
        )


def test_every_text_decoder_of_an_image_and_text_model_is_covered(no_violations):
    """Their own decoders; the others use one that has a row already."""
    from transformers import CONFIG_MAPPING
    from transformers.models.auto import modeling_auto as auto

    known = tiny.architectures()
    for name in auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES:
        if name in known or name in LEFT_OUT:
            continue
        try:
            text = CONFIG_MAPPING[name]().get_text_config().model_type
        except Exception:  # needs a library that is not installed
            continue
        if text not in known and text not in LEFT_OUT:
            no_violations([f"{name}: {text} has no row"])


# Decoders of models that read one kind of picture, or write no text.
LEFT_OUT = {
    *("blip_text_model", "deepseek_ocr2_text", "diffusion_gemma_text", "evolla"),
    *("idefics", "kosmos_2_text_model", "kosmos_2_5_text_model", "pi0", "udop"),
    *("pix2struct_text_model", "pp_formulanet_text", "unlimited_ocr_text"),
}
