"""NormFormer's block against an independent one, and against wrong ones."""

from itertools import product

import torch
from torch import nn
from torch.nn import functional as F

from snippets.normformer.block import Block
from tests.same_results import of_module
from tests.snippets.normformer.float64 import (
    ADDITIONS,
    HEADS,
    D,
    block,
    close,
    parameters,
    tokens,
)
from tests.wrong import suite

FULL = dict.fromkeys(ADDITIONS, True)
NORMFORMER = FULL | {"scale_resids": False}


def run(implementation, switches, x, seed=0, dtype=torch.float64):
    """Output, and gradients by name (x's too), of a filled block."""
    p = parameters(Block(D, HEADS, **switches), seed)
    model = implementation(D, HEADS, **switches).double()
    model.load_state_dict(p, strict=False)
    model = model.to(dtype)
    x = x.to(dtype).requires_grad_()
    y = model(x)
    y.backward(torch.linspace(-1, 1, y.numel()).reshape(y.shape).to(y.dtype))
    found = {name: each.grad for name, each in model.named_parameters()}
    return y.detach(), found | {"x": x.grad}, p


def expect(x, p):
    leaves = {name: value.clone().requires_grad_() for name, value in p.items()}
    leaves["x"] = x.clone().requires_grad_()
    y = block(leaves["x"], {k: v for k, v in leaves.items() if k != "x"})
    upstream = torch.linspace(-1, 1, y.numel()).reshape(y.shape).double()
    found = torch.autograd.grad(y, list(leaves.values()), upstream)
    return y.detach(), dict(zip(leaves, found, strict=True))


def check(implementation, switches, shape=(2, 5), **options):
    x = tokens(shape, **options)
    y, gradients, p = run(implementation, switches, x)
    expected, expected_gradients = expect(x, p)
    close(y, expected, 1e-11, "output")
    for name, wanted in expected_gradients.items():
        assert gradients.get(name) is not None, f"{name} has no gradient"
        close(gradients[name], wanted, 1e-10, name)


def check_normformer(implementation):
    check(implementation, NORMFORMER)
    check(implementation, NORMFORMER, shape=(1, 1), offset=20.0)
    check(implementation, NORMFORMER, shape=(3, 7), seed=1)


def check_with_the_optional_factor(implementation):
    check(implementation, FULL)


def check_every_combination(implementation):
    for chosen in product((False, True), repeat=4):
        check(implementation, dict(zip(ADDITIONS, chosen, strict=True)))


def check_parameters(implementation):
    """Every addition brings exactly its own parameters, and starts neutral."""
    shapes = {
        "scale_heads": {"attention.head_scale": (HEADS,)},
        "scale_attn": {"output_norm.weight": (D,), "output_norm.bias": (D,)},
        "scale_fc": {"ffn.norm.weight": (4 * D,), "ffn.norm.bias": (4 * D,)},
        "scale_resids": {"residual_scale": (D,)},
    }
    off = implementation(D, HEADS, **dict.fromkeys(ADDITIONS, False))
    base = {name: tuple(p.shape) for name, p in off.named_parameters()}
    extra = base.keys() & {key for added in shapes.values() for key in added}
    assert not extra, f"{extra} although switched off"
    for name, added in shapes.items():
        on = implementation(D, HEADS, **{n: n == name for n in ADDITIONS})
        found = {key: tuple(p.shape) for key, p in on.named_parameters()}
        assert found == base | added, name
        for key, parameter in on.named_parameters():
            if key in added:
                start = 0.0 if key.endswith("bias") else 1.0
                assert bool((parameter == start).all()), f"{key} at the start"
                assert parameter.requires_grad, key


def check_causal(implementation):
    torch.manual_seed(0)
    model, x = implementation(D, HEADS, **FULL).double(), tokens((2, 6))
    other = x.clone()
    other[:, -1] += 1
    past = model(other)[:, :-1] - model(x)[:, :-1]
    assert float(past.detach().abs().max()) < 1e-12


def check_dtypes(implementation):
    for dtype, rtol in ((torch.float32, 2e-5), (torch.bfloat16, 0.1)):
        x = tokens()
        y, _, p = run(implementation, NORMFORMER, x, dtype=dtype)
        assert y.dtype == dtype
        close(y, expect(x, p)[0], rtol, str(dtype))


CHECKS = [
    check_normformer,
    check_with_the_optional_factor,
    check_every_combination,
    check_parameters,
    check_causal,
    check_dtypes,
    *of_module(lambda kind: kind(D, HEADS, **FULL).double(), tokens((2, 5))),
]


# Wrong variants ----------------------------------------------------------------


test_right, test_known_wrong = suite(Block, CHECKS)


# What the page says ------------------------------------------------------------


def test_all_off_is_the_torch_pre_norm_layer():
    off = dict.fromkeys(ADDITIONS, False)
    ours = Block(D, HEADS, **off).double()
    theirs = nn.TransformerEncoderLayer(
        D, HEADS, 4 * D, 0.0, F.gelu, batch_first=True, norm_first=True
    ).double()
    p = parameters(ours)
    ours.load_state_dict(p)
    theirs.load_state_dict(
        {
            "self_attn.in_proj_weight": p["attention.qkv.weight"],
            "self_attn.in_proj_bias": p["attention.qkv.bias"],
            "self_attn.out_proj.weight": p["attention.out.weight"],
            "self_attn.out_proj.bias": p["attention.out.bias"],
            "linear1.weight": p["ffn.fc1.weight"],
            "linear1.bias": p["ffn.fc1.bias"],
            "linear2.weight": p["ffn.fc2.weight"],
            "linear2.bias": p["ffn.fc2.bias"],
            "norm1.weight": p["attention_norm.weight"],
            "norm1.bias": p["attention_norm.bias"],
            "norm2.weight": p["ffn_norm.weight"],
            "norm2.bias": p["ffn_norm.bias"],
        }
    )
    x = tokens()
    mask = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    close(ours(x), theirs(x, src_mask=mask, is_causal=True).detach(), 1e-12, "output")


def test_input_is_unchanged():
    x = tokens()
    before = x.clone()
    Block(D, HEADS, **FULL).double()(x)
    assert torch.equal(x, before)


def test_head_scales_absorbed_by_the_projection():
    model, x = Block(D, HEADS, **FULL).double(), tokens()
    model.load_state_dict(parameters(model))
    expected = model(x).detach()
    with torch.no_grad():
        scale = model.attention.head_scale.repeat_interleave(D // HEADS)
        model.attention.out.weight.mul_(scale)
        model.attention.head_scale.fill_(1)
    close(model(x), expected, 1e-12, "output")
