"""plain_gains on a checkpoint with norms of both conventions, to the last bit."""

import pytest
import torch
from torch import nn
from transformers import (
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    Qwen3NextConfig,
    Qwen3NextForCausalLM,
)
from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm
from transformers.models.qwen3_next.modeling_qwen3_next import (
    Qwen3NextRMSNorm,
    Qwen3NextRMSNormGated,
)

from snippets.coding.plain_gains import plain_gains
from tests.same_results import on_views
from tests.snippets.coding.cases import expect, gains, has_dtype, numbers, unchanged
from tests.wrong import rejects, variants

JUDGED = plain_gains
GAINS = {
    "model.layers.0.input_layernorm.weight": torch.bfloat16,
    "model.layers.0.self_attn.q_norm.weight": torch.bfloat16,
    "model.layers.0.pre_feedforward_layernorm.weight": torch.float16,
    "model.norm.weight": torch.float32,
}
NORMS = {name.removesuffix(".weight") for name in GAINS}
OTHERS = {
    "model.embed_tokens.weight": (5, 4),
    "model.layers.0.self_attn.q_proj.weight": (4, 4),
    "model.layers.0.self_attn.q_proj.bias": (4,),
    "model.layers.0.norm_router.weight": (4,),
    "model.layers.0.self_attn.q_norm.weight_scale": (1,),
    "model.layers.1.linear_attn.norm.weight": (4,),
    "model.vision_tower.post_layernorm.weight": (4,),
    "model.vision_tower.post_layernorm.bias": (4,),
}


def _state():
    state = {n: numbers((4,), dtype=t, seed=len(n)) for n, t in GAINS.items()}
    for name in GAINS:
        state[name][1] = 0.00390625  # 1 + this is 1 in bfloat16
        state[name][2] = 15.8125  # 16.8125 needs more than 8 bits
    others = {n: numbers(s).to(torch.bfloat16) for n, s in OTHERS.items()}
    return state | others


def check_gains(plain_gains):
    state = _state()
    found = plain_gains(state, set(NORMS))
    for name in GAINS:
        case = f"{name} in {state[name].dtype}"
        expect(name in found, case, "is missing in the result")
        has_dtype("the gain", found[name], torch.float32, case)
        for offset, gain in zip(state[name], found[name], strict=True):
            wanted = float(torch.tensor(1 + float(offset), dtype=torch.float32))
            words = f"w = {float(offset)} became {float(gain)}, expected {wanted}"
            expect(float(gain) == wanted, case, words)


def check_others(plain_gains):
    state = _state()
    found = plain_gains(state, set(NORMS))
    expect(set(found) == set(state), "names of the result", f"{sorted(found)}")
    for name in OTHERS:
        good = found[name] is state[name]
        expect(good, name, "is not the same tensor as before")


def check_unchanged(plain_gains):
    state, norms = _state(), set(NORMS)
    names, tensors = list(state), list(state.values())
    with unchanged("the checkpoint", *tensors):
        found = plain_gains(state, norms)
    expect(norms == NORMS, "the set of norms", "was changed")
    expect(found is not state, "the result", "is the checkpoint itself")
    same = list(state) == names and all(
        a is b for a, b in zip(tensors, state.values(), strict=True)
    )
    expect(same, "the checkpoint", "holds other tensors than before")


check_views = on_views(
    gains(5), call=lambda plain, w: plain({"norm.weight": w}, {"norm"})["norm.weight"]
)

CHECKS = [check_gains, check_others, check_unchanged, check_views]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(plain_gains, CHECKS)


SMALL = {
    "vocab_size": 7,
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 4,
}


def gemma():
    vision = {k: SMALL[k] for k in list(SMALL)[1:5]} | {"image_size": 8}
    config = Gemma3Config(
        text_config=SMALL,
        vision_config=vision | {"patch_size": 4},
        mm_tokens_per_image=4,
    )
    return Gemma3ForConditionalGeneration(config), Gemma3RMSNorm


def qwen():
    config = Qwen3NextConfig(
        **SMALL,
        layer_types=["linear_attention", "full_attention"],
        num_experts=2,
        num_experts_per_tok=1,
        moe_intermediate_size=8,
        shared_expert_intermediate_size=8,
        linear_num_key_heads=1,
        linear_num_value_heads=2,
        linear_key_head_dim=4,
        linear_value_head_dim=4,
    )
    return Qwen3NextForCausalLM(config), Qwen3NextRMSNorm


@pytest.mark.parametrize(
    ("make", "plain"),
    [
        (gemma, "model.vision_tower.post_layernorm.weight"),
        (qwen, "model.layers.0.linear_attn.norm.weight"),
    ],
)
def test_only_classes_tell_the_norms_apart(make, plain):
    """As drawn, every gain of a model is one, however it is stored."""
    model, zero_centred = make()
    kinds = (zero_centred, nn.LayerNorm, Qwen3NextRMSNormGated)
    modules = dict(model.named_modules())
    every = {f"{n}.weight" for n, m in modules.items() if isinstance(m, kinds)}
    norms = {n for n, m in modules.items() if isinstance(m, zero_centred)}
    found = plain_gains(model.state_dict(), norms)
    assert len(norms) > 4 and plain in every
    assert all(bool((found[name] == 1).all()) for name in every)
    guess = {wrong.__name__: wrong for wrong in variants(plain_gains)}
    by_name = guess["every_name_that_ends_in_norm_weight"].make()
    guessed = by_name(model.state_dict(), norms)
    assert bool((guessed[plain] == 2).all())
