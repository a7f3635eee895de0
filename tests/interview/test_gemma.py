"""What the question on porting Gemma 3 says of its class, on a tiny instance."""

import copy

import pytest
import torch
from torch import nn
from transformers import Gemma3ForCausalLM, Gemma3TextConfig
from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm


@pytest.fixture(scope="module")
def gemma():
    """float32, gains drawn at random, a scale that is not the head's width."""
    config = Gemma3TextConfig(
        vocab_size=61,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        query_pre_attn_scalar=12,
    )
    torch.manual_seed(0)
    model = Gemma3ForCausalLM(config).eval()
    for norm in norms(model):
        nn.init.normal_(norm.weight, std=0.5)
    return model


def norms(model):
    return [m for m in model.modules() if isinstance(m, Gemma3RMSNorm)]


def looked_at(model):
    """Input and output of the first norm, the logits."""
    seen = []
    hook = norms_of_first(model).register_forward_hook(
        lambda module, inputs, output: seen.extend([inputs[0], output])
    )
    tokens = torch.arange(20).view(2, 10) * 7 % 61
    with torch.no_grad():
        logits = model(tokens).logits
    hook.remove()
    return *seen, logits


def norms_of_first(model):
    return model.model.layers[0].input_layernorm


def no_one(model):
    for norm in norms(model):
        norm.weight.data -= 1


def no_factor(model):
    model.model.embed_tokens.embed_scale.fill_(1)


def width_of_the_head(model):
    for layer in model.model.layers:
        layer.self_attn.scaling = 8**-0.5


def places_of_llama(model):
    for layer in model.model.layers:
        layer.pre_feedforward_layernorm = layer.post_attention_layernorm
        layer.post_attention_layernorm = nn.Identity()
        layer.post_feedforward_layernorm = nn.Identity()


@pytest.mark.parametrize(
    "fault", [no_one, no_factor, width_of_the_head, places_of_llama]
)
def test_each_fault_moves_the_logits(fault, gemma):
    broken = copy.deepcopy(gemma)
    fault(broken)
    right, wrong = looked_at(gemma)[2], looked_at(broken)[2]
    assert (wrong - right).norm() > 0.05 * right.norm()


def test_the_first_norm_hides_a_forgotten_factor(gemma):
    broken = copy.deepcopy(gemma)
    no_factor(broken)
    (x, y, _), (x_wrong, y_wrong, _) = looked_at(gemma), looked_at(broken)
    assert torch.allclose(x, 32**0.5 * x_wrong)
    assert (y - y_wrong).abs().max() < 1e-2 * y.abs().max()


def test_a_forgotten_one_shows_at_the_first_norm(gemma):
    broken = copy.deepcopy(gemma)
    no_one(broken)
    (x, y, _), (x_wrong, y_wrong, _) = looked_at(gemma), looked_at(broken)
    assert torch.equal(x, x_wrong)
    assert (y - y_wrong).norm() > 0.5 * y.norm()


def test_the_head_reads_the_table_without_the_factor(gemma):
    assert gemma.lm_head.weight is gemma.model.embed_tokens.weight
    assert float(gemma.model.embed_tokens.embed_scale) == pytest.approx(32**0.5)
