"""NormFormer's block against an independent one, and against wrong ones."""

from itertools import product
from types import MethodType

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from snippets.normformer.block import Block
from tests.snippets.normformer.float64 import (
    ADDITIONS,
    HEADS,
    D,
    block,
    close,
    parameters,
    tokens,
)

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
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda f: f.__name__)
def test_right(check):
    check(Block)


# Wrong variants ----------------------------------------------------------------


def _attention(d, heads, switches, scaled):
    """A Block whose attention scales by scaled(self, y before out)."""

    def forward(self, x):
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        return scaled(self, q, k, v)

    model = Block(d, heads, **switches)
    model.attention.forward = MethodType(forward, model.attention)
    return model


def _mixed(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def _joined(y):
    return y.transpose(1, 2).flatten(start_dim=2)


def _scale(self):
    return 1.0 if self.head_scale is None else self.head_scale[:, None, None]


def head_scale_after_the_projection(d, heads, **switches):
    def scaled(self, q, k, v):
        y = self.out(_joined(_mixed(q, k, v)))
        if self.head_scale is None:
            return y
        y = y.unflatten(-1, (self.heads, -1)) * self.head_scale[:, None]
        return y.flatten(start_dim=2)

    return _attention(d, heads, switches, scaled)


def head_scale_with_axes_swapped(d, heads, **switches):
    """tbhd,h->tbdh, as in fairseq's first release: the features are shuffled."""

    def scaled(self, q, k, v):
        y = self.out(_joined(_mixed(q, k, v)))
        if self.head_scale is None:
            return y
        y = y.unflatten(-1, (self.heads, -1)) * self.head_scale[:, None]
        return y.transpose(-2, -1).flatten(start_dim=2)

    return _attention(d, heads, switches, scaled)


def head_scale_on_the_scores(d, heads, **switches):
    def scaled(self, q, k, v):
        return self.out(_joined(_mixed(q * _scale(self), k, v)))

    return _attention(d, heads, switches, scaled)


def head_scale_on_the_features(d, heads, **switches):
    """Repeated over the features in the wrong order: 0 1 2 0 1 2 ..."""

    def scaled(self, q, k, v):
        y = _joined(_mixed(q, k, v))
        if self.head_scale is not None:
            y = y * self.head_scale.repeat(y.shape[-1] // self.heads)
        return self.out(y)

    return _attention(d, heads, switches, scaled)


def heads_normalized(d, heads, **switches):
    """A statistic where there is only a factor."""

    def scaled(self, q, k, v):
        y = _mixed(q, k, v)
        if self.head_scale is not None:
            y = F.layer_norm(y, y.shape[-1:]) * _scale(self)
        return self.out(_joined(y))

    return _attention(d, heads, switches, scaled)


def values_normalized(d, heads, **switches):
    def scaled(self, q, k, v):
        v = F.layer_norm(v, v.shape[-1:])
        return self.out(_joined(_mixed(q, k, v) * _scale(self)))

    return _attention(d, heads, switches, scaled)


def attention_norm_before_the_projection(d, heads, **switches):
    def scaled(self, q, k, v):
        return self.out(model.output_norm(_joined(_mixed(q, k, v) * _scale(self))))

    model = _attention(d, heads, switches, scaled)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return _rest(self, x)

    model.forward = MethodType(forward, model)
    return model


def _rest(self, x):
    y = self.ffn(self.ffn_norm(x))
    return (x if self.residual_scale is None else self.residual_scale * x) + y


def _block(d, heads, switches, forward):
    model = Block(d, heads, **switches)
    model.forward = MethodType(forward, model)
    return model


def attention_norm_after_the_sum(d, heads, **switches):
    def forward(self, x):
        x = self.output_norm(x + self.attention(self.attention_norm(x)))
        return _rest(self, x)

    return _block(d, heads, switches, forward)


def pre_norm_replaced(d, heads, **switches):
    """The norm moved behind attention instead of added there."""

    def forward(self, x):
        return _rest(self, x + self.output_norm(self.attention(x)))

    return _block(d, heads, switches, forward)


def ffn_output_normalized_too(d, heads, **switches):
    def forward(self, x):
        x = x + self.output_norm(self.attention(self.attention_norm(x)))
        y = self.output_norm(self.ffn(self.ffn_norm(x)))
        return (x if self.residual_scale is None else self.residual_scale * x) + y

    return _block(d, heads, switches, forward)


def _ffn(d, heads, switches, forward):
    model = Block(d, heads, **switches)
    model.ffn.forward = MethodType(forward, model.ffn)
    return model


def ffn_norm_before_the_activation(d, heads, **switches):
    def forward(self, x):
        return self.fc2(F.gelu(self.norm(self.fc1(x))))

    return _ffn(d, heads, switches, forward)


def ffn_norm_after_the_second_layer(d, heads, **switches):
    def forward(self, x):
        y = self.fc2(F.gelu(self.fc1(x)))
        if isinstance(self.norm, nn.Identity):
            return y
        return F.layer_norm(y, y.shape[-1:], self.norm.weight[: y.shape[-1]])

    return _ffn(d, heads, switches, forward)


def ffn_norm_over_time(d, heads, **switches):
    def forward(self, x):
        hidden = F.gelu(self.fc1(x))
        if not isinstance(self.norm, nn.Identity):
            hidden = hidden - hidden.mean((1, 2), keepdim=True)
            hidden = hidden / (hidden.square().mean((1, 2), keepdim=True) + 1e-5).sqrt()
            hidden = hidden * self.norm.weight + self.norm.bias
        return self.fc2(hidden)

    return _ffn(d, heads, switches, forward)


def ffn_norm_is_rms_norm(d, heads, **switches):
    def forward(self, x):
        hidden = F.gelu(self.fc1(x))
        if not isinstance(self.norm, nn.Identity):
            hidden = F.rms_norm(hidden, hidden.shape[-1:], self.norm.weight, 1e-5)
        return self.fc2(hidden)

    return _ffn(d, heads, switches, forward)


def residual_factor_on_the_branch(d, heads, **switches):
    def forward(self, x):
        x = x + self.output_norm(self.attention(self.attention_norm(x)))
        y = self.ffn(self.ffn_norm(x))
        return x + (y if self.residual_scale is None else self.residual_scale * y)

    return _block(d, heads, switches, forward)


def residual_factor_before_the_branch_reads(d, heads, **switches):
    def forward(self, x):
        x = x + self.output_norm(self.attention(self.attention_norm(x)))
        x = x if self.residual_scale is None else self.residual_scale * x
        return x + self.ffn(self.ffn_norm(x))

    return _block(d, heads, switches, forward)


def residual_factor_on_both_branches(d, heads, **switches):
    def forward(self, x):
        y = self.output_norm(self.attention(self.attention_norm(x)))
        x = (x if self.residual_scale is None else self.residual_scale * x) + y
        return _rest(self, x)

    return _block(d, heads, switches, forward)


def residual_factor_always_on(d, heads, **switches):
    return Block(d, heads, **(switches | {"scale_resids": True}))


def head_scale_starts_at_zero(d, heads, **switches):
    model = Block(d, heads, **switches)
    if model.attention.head_scale is not None:
        nn.init.zeros_(model.attention.head_scale)
    return model


def head_scale_is_not_trained(d, heads, **switches):
    model = Block(d, heads, **switches)
    if model.attention.head_scale is not None:
        model.attention.head_scale.requires_grad_(False)
    return model


def plain_pre_norm(d, heads, **switches):
    return Block(d, heads, **dict.fromkeys(switches, False))


VARIANTS = [
    head_scale_after_the_projection,
    head_scale_with_axes_swapped,
    head_scale_on_the_scores,
    head_scale_on_the_features,
    heads_normalized,
    values_normalized,
    attention_norm_before_the_projection,
    attention_norm_after_the_sum,
    pre_norm_replaced,
    ffn_output_normalized_too,
    ffn_norm_before_the_activation,
    ffn_norm_after_the_second_layer,
    ffn_norm_over_time,
    ffn_norm_is_rms_norm,
    residual_factor_on_the_branch,
    residual_factor_before_the_branch_reads,
    residual_factor_on_both_branches,
    residual_factor_always_on,
    head_scale_starts_at_zero,
    head_scale_is_not_trained,
    plain_pre_norm,
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.__name__)
def test_known_wrong(variant, known_wrong):
    known_wrong.rejected_by(CHECKS, variant)


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
