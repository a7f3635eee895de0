"""plain_gains on a checkpoint like Gemma's, to the last bit."""

import pytest
import torch

from snippets.coding.plain_gains import plain_gains
from tests.snippets.coding.cases import expect, has_dtype, numbers, unchanged

JUDGED = plain_gains
GAINS = {
    "model.layers.0.input_layernorm.weight": torch.bfloat16,
    "model.layers.0.self_attn.q_norm.weight": torch.bfloat16,
    "model.layers.0.pre_feedforward_layernorm.weight": torch.float16,
    "model.norm.weight": torch.float32,
}
OTHERS = {
    "model.embed_tokens.weight": (5, 4),
    "model.layers.0.self_attn.q_proj.weight": (4, 4),
    "model.layers.0.self_attn.q_proj.bias": (4,),
    "model.layers.0.norm_router.weight": (4,),
    "model.layers.0.self_attn.q_norm.weight_scale": (1,),
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
    found = plain_gains(state)
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
    found = plain_gains(state)
    expect(set(found) == set(state), "names of the result", f"{sorted(found)}")
    for name in OTHERS:
        good = found[name] is state[name]
        expect(good, name, "is not the same tensor as before")


def check_unchanged(plain_gains):
    state = _state()
    names, tensors = list(state), list(state.values())
    with unchanged("the checkpoint", *tensors):
        found = plain_gains(state)
    expect(found is not state, "the result", "is the checkpoint itself")
    same = list(state) == names and all(
        a is b for a, b in zip(tensors, state.values(), strict=True)
    )
    expect(same, "the checkpoint", "holds other tensors than before")


CHECKS = [check_gains, check_others, check_unchanged]


def _converted(state, change, chosen=lambda name: name.endswith("norm.weight")):
    return {n: change(v) if chosen(n) else v for n, v in state.items()}


def one_added_in_the_stored_dtype(state):
    return _converted(state, lambda v: (1 + v).float())


def rounded_back_to_the_stored_dtype(state):
    return _converted(state, lambda v: (1 + v.float()).to(v.dtype))


def cast_without_the_one(state):
    return _converted(state, lambda v: v.float())


def one_subtracted(state):
    return _converted(state, lambda v: v.float() - 1)


def every_vector_is_a_gain(state):
    return {n: 1 + v.float() if v.ndim == 1 else v for n, v in state.items()}


def only_names_with_layernorm(state):
    return _converted(state, lambda v: 1 + v.float(), lambda n: "layernorm" in n)


def every_name_with_norm(state):
    return _converted(state, lambda v: 1 + v.float(), lambda n: "norm" in n)


def every_name_that_holds_the_ending(state):
    return _converted(state, lambda v: 1 + v.float(), lambda n: "norm.weight" in n)


def writes_into_the_checkpoint(state):
    for name in state:
        if name.endswith("norm.weight"):
            state[name] = 1 + state[name].float()
    return dict(state)


VARIANTS = [
    one_added_in_the_stored_dtype,
    rounded_back_to_the_stored_dtype,
    cast_without_the_one,
    one_subtracted,
    every_vector_is_a_gain,
    only_names_with_layernorm,
    every_name_with_norm,
    every_name_that_holds_the_ending,
    writes_into_the_checkpoint,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)
