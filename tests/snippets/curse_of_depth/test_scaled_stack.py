"""scale_norms and scale_writers on a whole decoder."""

import copy

import pytest
import torch
from torch.nn import functional as F

from snippets.curse_of_depth.depth_scaling import scale_norms, scale_writers
from snippets.pre_norm_vs_post_norm.trial import fresh, random_text
from tests.wrong import suite

NAME = "Pre-Norm with final norm"


def by_hand(decoder, text):
    """LNS written out layer by layer, as the authors' code does it."""
    x = decoder.embedding(text)
    for layer in range(1, len(decoder.blocks) // 2 + 1):
        for block in decoder.blocks[2 * layer - 2 : 2 * layer]:
            x = x + block.sublayer(block.norm(x) / layer**0.5)
    return decoder.head(decoder.norm(x))


def _pair(apply, layers=5, gain=True):
    plain = fresh(NAME, layers, 0)
    if gain:
        for module in plain.modules():
            if hasattr(module, "gain"):
                torch.nn.init.uniform_(module.gain, 0.5, 1.5)
    scaled = copy.deepcopy(plain)
    apply(scaled)
    return plain, scaled


def check_logits(apply):
    torch.manual_seed(0)
    plain, scaled = _pair(apply)
    text = random_text(0)
    gap = (scaled(text) - by_hand(plain, text)).abs().max()
    assert float(gap.detach()) < 1e-10, f"logits off by {float(gap.detach()):.2g}"


def check_gradients(apply):
    torch.manual_seed(0)
    plain, scaled = _pair(apply)
    text = random_text(0)
    losses = by_hand(plain, text), scaled(text)
    slopes = []
    for model, logits in zip((plain, scaled), losses, strict=True):
        loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), text[:, 1:].flatten())
        slopes.append(torch.autograd.grad(loss, list(model.parameters())))
    for one, two in zip(*slopes, strict=True):
        assert one.shape == two.shape
        assert torch.allclose(one, two, rtol=1e-8, atol=1e-12)


def check_first_layer_untouched(apply):
    plain, scaled = _pair(apply, layers=1)
    text = random_text(1)
    assert torch.equal(plain(text), scaled(text))


CHECKS = [check_logits, check_gradients, check_first_layer_untouched]


test_right, test_known_wrong = suite(scale_norms, CHECKS)


def test_attention_logits_shrink_with_the_layer():
    """Queries and keys both carry the factor: scores are divided by the layer."""
    plain, scaled = _pair(scale_norms, layers=4)
    for layer in (1, 2, 4):
        x = torch.randn(2, 3, 32, generator=torch.Generator().manual_seed(layer))
        scores = []
        for model in (plain, scaled):
            block = model.blocks[2 * layer - 2]
            q, k, _ = block.sublayer.reader(block.norm(x.double())).chunk(3, dim=-1)
            scores.append(q @ k.transpose(1, 2))
        assert torch.allclose(scores[0] / layer, scores[1])


def test_scale_writers_is_gpt2s_initialization():
    """Against transformers: only the writers, by 1 / sqrt(2 layers)."""
    from transformers import GPT2Config, GPT2Model

    plain, scaled = _pair(scale_writers, layers=8, gain=False)
    for (name, one), two in zip(
        plain.named_parameters(), scaled.parameters(), strict=True
    ):
        wanted = one / 4 if name.endswith("writer.weight") else one
        assert torch.allclose(wanted, two), name
    torch.manual_seed(0)
    config = GPT2Config(n_layer=8, n_embd=64, n_head=2, vocab_size=11, n_positions=8)
    block = GPT2Model(config).h[0]
    for writer, reader in (
        (block.attn.c_proj, block.attn.c_attn),
        (block.mlp.c_proj, block.mlp.c_fc),
    ):
        ratio = (reader.weight.std() / writer.weight.std()).item()
        assert ratio == pytest.approx(4, rel=0.05)
