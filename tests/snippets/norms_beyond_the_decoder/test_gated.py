"""Gated RMSNorm in groups, and the norms on dt, B and C."""

import pytest
import torch
from transformers import FalconMambaConfig, JambaConfig, Mamba2Config
from transformers.models.bamba.modeling_bamba import BambaRMSNormGated
from transformers.models.falcon_h1.modeling_falcon_h1 import FalconH1RMSNormGated
from transformers.models.falcon_mamba.modeling_falcon_mamba import FalconMambaMixer
from transformers.models.jamba.modeling_jamba import JambaMambaMixer
from transformers.models.kimi_linear.modeling_kimi_linear import (
    KimiLinearRMSNormGated,
)
from transformers.models.mamba2.modeling_mamba2 import (
    Mamba2Mixer,
    MambaRMSNormGated,
)
from transformers.models.nemotron_h.modeling_nemotron_h import (
    NemotronHRMSNormGated,
)
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextRMSNormGated
from transformers.models.zamba2.modeling_zamba2 import Zamba2RMSNormGated

from snippets.norms_beyond_the_decoder.gated import gated_rms_norm
from snippets.norms_beyond_the_decoder.state_space import normed_parameters
from snippets.rms_norm.reference import rms_norm
from tests.same_results import on_views
from tests.snippets.norms_beyond_the_decoder.float64 import (
    DTYPES,
    assert_close,
    draw,
    gated,
    grouped,
    same_gradients,
    silu,
)
from tests.wrong import suite

CASES = (  # shape, groups, eps
    ((1,), 1, 1e-5),
    ((2, 6), 1, 1e-5),
    ((2, 6), 2, 1e-2),
    ((3, 1, 15), 5, 1e-5),
    ((2, 3, 21), 3, 1e-6),
)


def gains(d):
    return draw(d, seed=9, scale=0.5, offset=0.7)


def check_values(function):
    for shape, groups, eps in CASES:
        for before in (False, True):
            x, gate = draw(*shape, offset=0.3), draw(*shape, seed=1, scale=2)
            gain = gains(shape[-1])
            y = function(x, gate, gain, groups, before, eps)
            assert_close(y, gated(x, gate, gain, groups, before, eps), 1e-11)


def check_gradients(function):
    for shape, groups, eps in CASES[1:]:
        for before in (False, True):
            inputs = (draw(*shape), draw(*shape, seed=1), gains(shape[-1]))
            options = (groups, before, eps)
            same_gradients(
                lambda x, z, g, o=options: function(x, z, g, *o),
                lambda x, z, g, o=options: gated(x, z, g, *o),
                inputs,
            )


def check_defaults(function):
    x, gate = draw(3, 8, scale=1e-3), draw(3, 8, seed=1)
    expected = gated(x, gate, torch.ones(8), 1, False, 1e-5)
    assert_close(function(x, gate), expected, 1e-11)


def check_low_precision(function):
    for dtype in DTYPES[1:]:
        unit = torch.finfo(dtype).eps
        for before in (False, True):
            x = draw(5, 36, scale=30, dtype=dtype)
            gate = draw(5, 36, seed=1, scale=3, dtype=dtype)
            gain = gains(36).to(dtype)
            y = function(x, gate, gain, 4, before)
            assert y.dtype == dtype, y.dtype
            wide = (part.double() for part in (x, gate, gain))
            expected = gated(*wide, 4, before, 1e-5)
            floor = torch.finfo(dtype).smallest_normal
            assert_close(y, expected, 0.51 * unit, floor)


def check_far_groups_do_not_meet(function):
    x, gate = draw(2, 8), draw(2, 8, seed=1)
    other = x.clone()
    other[:, :4] *= 50
    for before in (False, True):
        a, b = (function(each, gate, None, 2, before) for each in (x, other))
        assert torch.equal(a[:, 4:], b[:, 4:]), "groups share their statistics"


GATED = [
    check_values,
    check_defaults,
    check_gradients,
    check_low_precision,
    check_far_groups_do_not_meet,
    on_views(draw(2, 3, 8), draw(2, 3, 8, seed=1), gains(8), 2),
]


# Wrong variants ----------------------------------------------------------------


test_gated, test_gated_known_wrong = suite(gated_rms_norm, GATED)


# The classes of transformers ---------------------------------------------------

GATE_FIRST = (
    MambaRMSNormGated,
    Zamba2RMSNormGated,
    BambaRMSNormGated,
    NemotronHRMSNormGated,
)


def both(module, groups, before, dtype, d=24):
    with torch.no_grad():
        module.weight.copy_(gains(d))
    module.to(dtype)
    x = draw(2, 5, d, scale=3, dtype=dtype)
    gate = draw(2, 5, d, seed=1, scale=2, dtype=dtype)
    theirs = module(x, gate)
    ours = gated_rms_norm(
        x, gate, module.weight, groups, before, module.variance_epsilon
    )
    roundings = 3 if dtype in DTYPES[1:] else 8
    return assert_close(theirs, ours, roundings * torch.finfo(dtype).eps, 1e-7)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kind", GATE_FIRST, ids=lambda k: k.__name__)
def test_classes_that_gate_first(kind, dtype):
    for groups in (1, 4):
        both(kind(24, group_size=24 // groups, eps=1e-5), groups, False, dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_qwen3_next_norms_first(dtype):
    both(Qwen3NextRMSNormGated(24, eps=1e-6), 1, True, dtype)


@pytest.mark.parametrize("before", (False, True))
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_falcon_h1_has_both_orders(before, dtype):
    module = FalconH1RMSNormGated(24, 1e-5, n_groups=4, norm_before_gate=before)
    both(module, 4, before, dtype)


def test_kimi_linear_norms_first_and_opens_with_a_sigmoid():
    module = KimiLinearRMSNormGated(24)
    with torch.no_grad():
        module.weight.copy_(gains(24))
    x, gate = draw(3, 24, dtype=torch.float32), draw(3, 24, seed=1, dtype=torch.float32)
    expected = rms_norm(x, gains(24).float(), 1e-6) * torch.sigmoid(gate)
    assert_close(module(x, gate), expected, 1e-5, 1e-6)


def test_mamba2_has_one_group_for_each_of_b_and_c():
    config = Mamba2Config(
        hidden_size=32, num_heads=8, head_dim=8, n_groups=4, state_size=8
    )
    norm = Mamba2Mixer(config, layer_idx=0).norm
    assert norm.group_size == 64 // 4
    assert norm.variance_epsilon == 1e-5
    assert Mamba2Config().n_groups == 8


# dt, B and C -------------------------------------------------------------------


def check_parts(function):
    projected = draw(2, 3, 4 + 2 * 7, scale=3)
    given = (gains(4), gains(7), draw(7, seed=3, offset=2))
    for eps in (1e-6, 1e-2):
        for made in (given, (None,) * 3):
            parts = function(projected, 4, 7, made, eps)
            pieces = (projected[..., :4], projected[..., 4:11], projected[..., 11:])
            for part, piece, gain in zip(parts, pieces, made, strict=True):
                expected = grouped(piece, 1, eps)
                expected = expected if gain is None else expected * gain
                assert_close(part, expected, 1e-11)


def check_parts_default(function):
    projected = draw(5, 14, scale=1e-3)
    for part, piece in zip(
        function(projected, 2, 6), projected.split((2, 6, 6), -1), strict=True
    ):
        assert_close(part, grouped(piece, 1, 1e-6), 1e-11)


def check_parts_low_precision(function):
    for dtype in DTYPES[1:]:
        projected = draw(5, 14, scale=300, dtype=dtype)
        parts = function(projected, 2, 6)
        for part, piece in zip(parts, projected.split((2, 6, 6), -1), strict=True):
            assert part.dtype == dtype
            unit = torch.finfo(dtype).eps
            assert_close(part, grouped(piece.double(), 1, 1e-6), 0.51 * unit, 1e-7)


PARTS = [
    check_parts,
    check_parts_default,
    check_parts_low_precision,
    on_views(draw(2, 3, 18), 4, 7),
]


test_parameters, test_parameters_known_wrong = suite(normed_parameters, PARTS)


def _captured(mixer, x):
    """What x_proj gives, and what the three norms make of it."""
    seen = {}
    names = ("x_proj", "dt_layernorm", "b_layernorm", "c_layernorm")
    for name in names:
        getattr(mixer, name).register_forward_hook(
            lambda module, inputs, output, name=name: seen.update({name: output})
        )
    with torch.no_grad():
        mixer.eval()(x)
    return [seen[name] for name in names]


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16), ids=str)
def test_jamba_learns_the_gains(dtype):
    config = JambaConfig(
        hidden_size=16, mamba_dt_rank=3, mamba_d_state=5, use_mamba_kernels=False
    )
    mixer = JambaMambaMixer(config, layer_idx=0).to(dtype)
    norms = (mixer.dt_layernorm, mixer.b_layernorm, mixer.c_layernorm)
    with torch.no_grad():
        for norm in norms:
            norm.weight.copy_(gains(norm.weight.numel()))
    projected, *theirs = _captured(mixer, draw(2, 6, 16, dtype=dtype))
    ours = normed_parameters(
        projected, 3, 5, tuple(norm.weight for norm in norms), config.rms_norm_eps
    )
    for a, b in zip(theirs, ours, strict=True):
        assert_close(a, b, 3 * torch.finfo(dtype).eps, 1e-7)


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16), ids=str)
def test_falcon_mamba_has_no_gains(dtype):
    config = FalconMambaConfig(hidden_size=16, state_size=5, time_step_rank=3)
    mixer = FalconMambaMixer(config, layer_idx=0, initialize_mixer_weights=False)
    with torch.no_grad():
        mixer.init_falcon_mamba_weights()
    learned = {name for name, _ in mixer.named_parameters()}
    assert not any("layernorm" in name for name in learned)
    projected, *theirs = _captured(mixer.to(dtype), draw(2, 6, 16, dtype=dtype))
    ours = normed_parameters(projected, 3, 5, eps=config.mixer_rms_eps)
    for a, b in zip(theirs, ours, strict=True):
        assert_close(a, b, 2 * torch.finfo(dtype).eps, 1e-7)


# What the page says ------------------------------------------------------------


def test_a_gate_that_is_the_same_everywhere_is_undone_by_a_norm_behind_it():
    x = draw(4, 32)
    for level in (-1.0, 0.5, 8.0):
        gate = torch.full_like(x, level)
        first = gated_rms_norm(x, gate, eps=0.0)
        assert_close(first.abs(), rms_norm(x, eps=0.0).abs(), 1e-11)
        last = gated_rms_norm(x, gate, norm_before_gate=True, eps=0.0)
        assert_close(last, rms_norm(x, eps=0.0) * silu(gate), 1e-11)


def test_without_norms_a_step_grows_with_the_fourth_power():
    from snippets.norms_beyond_the_decoder.powers import first_output, x

    for norms, power in ((False, 4), (True, 1)):
        sizes = [first_output(s * x, norms).norm() for s in (1e3, 1e4)]
        slope = torch.log10(sizes[1] / sizes[0])
        assert abs(slope - power) < 0.01
