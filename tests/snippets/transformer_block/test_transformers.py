"""The decoder is LlamaForCausalLM and Qwen3ForCausalLM of transformers.

Weights copied, gains not one, nothing downloaded. transformers computes norms and
rotary angles in float32 even for float64 input; patched to float64, the models
agree to rounding; untouched, to what float32 allows.
"""

import pytest
import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)
from transformers.models.llama import modeling_llama
from transformers.models.qwen3 import modeling_qwen3

from snippets.transformer_block.decoder import Decoder
from snippets.transformer_block.first_difference import first_difference
from snippets.transformer_block.llama_names import llama_name
from snippets.transformer_block.norm_calls import norm_calls
from tests.snippets.transformer_block import float64
from tests.snippets.transformer_block.float64 import PLAIN, QK, close
from tests.snippets.transformer_block.wrong_decoder import norm_returns_float32
from tests.wrong import variants

MODELS = {
    "llama": (PLAIN, LlamaConfig, LlamaForCausalLM),
    "qwen3": (QK, Qwen3Config, Qwen3ForCausalLM),
}


def pair(name, dtype=torch.float64, attention="eager", implementation=Decoder):
    """Our model and theirs with the same parameters."""
    sizes, config, model = MODELS[name]
    p = float64.parameters(sizes)
    theirs = model(
        config(
            vocab_size=sizes.vocabulary,
            hidden_size=sizes.d,
            intermediate_size=sizes.hidden,
            num_hidden_layers=sizes.blocks,
            num_attention_heads=sizes.heads,
            num_key_value_heads=sizes.kv_heads,
            head_dim=sizes.width,
            rms_norm_eps=sizes.eps,
            rope_parameters={"rope_type": "default", "rope_theta": sizes.base},
            tie_word_embeddings=True,
            attn_implementation=attention,
            use_cache=False,
        )
    ).to(dtype)
    report = theirs.load_state_dict(
        {llama_name(key): value for key, value in p.items()}, strict=False
    )
    assert report.missing_keys == ["lm_head.weight"], "tied, so it may be missing"
    assert not report.unexpected_keys
    ours = implementation(sizes).to(dtype)
    ours.load_state_dict(p, strict=False)
    return ours, theirs, float64.tokens(sizes, (2, 11))


@pytest.fixture
def wide(monkeypatch):
    """transformers with norms and rotary angles in float64."""

    def norm(self, x):
        square = x.pow(2).mean(-1, keepdim=True)
        return self.weight * (x * torch.rsqrt(square + self.variance_epsilon))

    def angles(self, x, position_ids):
        half = self.config.head_dim // 2
        base = self.config.rope_parameters["rope_theta"]
        exponent = torch.arange(half, dtype=torch.float64) / half
        angle = position_ids[..., None].double() / base**exponent
        angle = torch.cat((angle, angle), dim=-1)
        return angle.cos(), angle.sin()

    for module, start in ((modeling_llama, "Llama"), (modeling_qwen3, "Qwen3")):
        monkeypatch.setattr(getattr(module, f"{start}RMSNorm"), "forward", norm)
        monkeypatch.setattr(
            getattr(module, f"{start}RotaryEmbedding"), "forward", angles
        )


def compare(ours, theirs, ids, logits_rtol, gradient_rtol):
    ours_logits, their_logits = ours(ids), theirs(ids).logits
    close(ours_logits, their_logits.detach().double(), logits_rtol, "logits")
    ours_loss = float64.loss(ours_logits, ids)
    their_loss = float64.loss(their_logits, ids)
    close(ours_loss, their_loss.detach().double(), logits_rtol, "loss")
    ours_loss.backward()
    their_loss.backward()
    found = dict(theirs.named_parameters())
    names = [llama_name(name) for name, _ in ours.named_parameters()]
    assert sorted(names) == sorted(found), "the same parameters, tied head included"
    for name, parameter in ours.named_parameters():
        expected = found[llama_name(name)].grad.double()
        close(parameter.grad, expected, gradient_rtol, name)


@pytest.mark.parametrize("attention", ("eager", "sdpa"))
@pytest.mark.parametrize("name", MODELS)
def test_float64(name, attention, wide):
    # Eager attention takes its softmax in float32.
    tight = attention == "sdpa"
    compare(
        *pair(name, attention=attention), *((1e-10, 1e-9) if tight else (1e-5,) * 2)
    )


@pytest.mark.parametrize("attention", ("eager", "sdpa"))
@pytest.mark.parametrize("name", MODELS)
def test_float32(name, attention):
    compare(*pair(name, torch.float32, attention), 2e-5, 1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_bfloat16(name):
    """Rounded at other places: near, but not the same bits."""
    ours, theirs, ids = pair(name, torch.bfloat16)
    y = theirs(ids).logits
    assert ours(ids).dtype == y.dtype == torch.bfloat16
    close(ours(ids), y.detach().double(), 0.1, "logits")


@pytest.mark.parametrize("name", MODELS)
def test_their_own_loss(name):
    ours, theirs, ids = pair(name, torch.float32)
    expected = theirs(ids, labels=ids).loss.detach().double()
    close(float64.loss(ours(ids), ids), expected, 1e-5, "loss")


@pytest.mark.parametrize("name", MODELS)
def test_norm_by_norm(name):
    """The page's tool sees the same norms in the same order in both."""
    ours, theirs, ids = pair(name, torch.float32)
    a, b = norm_calls(ours, ids), norm_calls(theirs, ids)
    assert len(a) == (4 if name == "qwen3" else 2) * len(ours.blocks) + 1
    assert [llama_name(f"{call.name}.gain") for call in a] == [
        f"{call.name}.weight" for call in b
    ]
    assert first_difference(a, b) == "all norms agree"


WRONG = variants(Decoder, functions=[norm_returns_float32])
AFTER_THE_LAST_NORM = {"head_is_a_copy", "logits_capped"}
BACKWARD_ONLY = {"statistics_detached"}
LOW_PRECISION_ONLY = {"norm_returns_float32", "rotary_angles_in_low_precision"}
HIDDEN = AFTER_THE_LAST_NORM | BACKWARD_ONLY | LOW_PRECISION_ONLY


GAINS_ONLY = {
    "gain_ignored",
    "norms_of_the_branches_swapped",
    "one_norm_for_all_blocks",
    "one_norm_for_both_branches",
    "one_norm_for_queries_and_keys",
}


def test_gains_of_one_hide_bugs():
    """The page's advice: compare with gains that are not one."""
    p, ids = float64.parameters(QK), float64.tokens(QK)
    p = {k: torch.ones_like(v) if v.ndim == 1 else v for k, v in p.items()}

    def watched(implementation):
        model = implementation(QK)
        model.load_state_dict(p, strict=False)
        return norm_calls(model, ids)

    expected = watched(Decoder)
    unseen = {
        variant.__name__
        for variant in WRONG
        if first_difference(expected, watched(variant.make())) == "all norms agree"
    }
    assert unseen - HIDDEN == GAINS_ONLY


@pytest.mark.parametrize("variant", WRONG, ids=lambda v: v.__name__)
def test_tool_finds_the_variant(variant):
    """Every wrong decoder of this page differs at some norm, or is known not to."""
    ours, theirs, ids = pair("qwen3", torch.float32, implementation=variant.make())
    found = first_difference(norm_calls(theirs, ids), norm_calls(ours, ids))
    assert (found == "all norms agree") == (variant.__name__ in HIDDEN), found
