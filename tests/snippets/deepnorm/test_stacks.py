"""What the page says about updates, a thousand layers and the shifted norm."""

import pytest
import torch
from torch.nn import functional as F
from transformers import MiniMaxConfig
from transformers.models.minimax.modeling_minimax import MiniMaxDecoderLayer

from snippets.deepnorm.block import DeepNorm
from snippets.deepnorm.stacks import stack


def change(placement, layers, seed, names=("branch",), signs=False):
    torch.manual_seed(seed)
    blocks = stack(placement, layers, d=16)
    x, target = torch.randn(2, 2, 8, 16, dtype=torch.float64)
    x = F.layer_norm(x, (16,))
    y = blocks(x)
    (y * target).sum(-1).mean().backward()
    with torch.no_grad():
        for name, parameter in blocks.named_parameters():
            if any(part in name for part in names):
                slope = parameter.grad
                parameter -= 1e-6 * (slope.sign() if signs else slope)
        return float((blocks(x) - y).square().mean().sqrt()) / 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_sgd_moves_the_matrices_alike_at_every_depth(seed):
    shallow, deep = (change("DeepNorm", n, seed) for n in (6, 48))
    assert 0.5 < deep / shallow < 1.5
    for placement in ("Post-Norm", "Pre-Norm"):
        assert change(placement, 48, seed) > 10 * deep


def test_gains_grow_with_depth_and_signs_with_its_root():
    gains = [change("DeepNorm", n, 0, ("norm",)) for n in (6, 54)]
    assert 5 < gains[1] / gains[0] < 18  # 9 times the layers
    signs = [change("DeepNorm", n, 0, signs=True) for n in (6, 54)]
    assert 2 < signs[1] / signs[0] < 4.5  # √9


def misplaced(self, x):
    """The widely copied line: α on the branch."""
    return self.norm(x + self.alpha * self.branch(x))


@pytest.mark.parametrize("seed", range(2))
def test_misplaced_alpha_loses_the_bound(seed, monkeypatch):
    """4 N β² α² = 2 N: the change grows with depth, as the page says."""
    right = [change("DeepNorm", n, seed) for n in (4, 32)]
    monkeypatch.setattr(DeepNorm, "forward", misplaced)
    wrong = [change("DeepNorm", n, seed) for n in (4, 32)]
    assert 0.5 < right[1] / right[0] < 1.5
    assert wrong[1] / wrong[0] > 4


@pytest.mark.parametrize("seed", range(2))
def test_gradients_at_200_layers(seed):
    ratio, spread, cosine = {}, {}, {}
    for placement in ("Post-Norm", "DeepNorm"):
        torch.manual_seed(seed)
        blocks = stack(placement, 200, d=16)
        x, target = torch.randn(2, 1, 8, 16, dtype=torch.float64)
        x = F.layer_norm(x, (16,))
        y = blocks(x)
        (y * target).sum(-1).mean().backward()
        sizes = [block.branch.down.weight.grad.norm() for block in blocks[1::2]]
        ratio[placement] = float(sizes[0] / sizes[-1])
        distance = (y - y.mean(1, keepdim=True)).square().mean().sqrt()
        spread[placement] = float(distance.detach())
        cosine[placement] = float(F.cosine_similarity(y, x, -1).mean().detach())
    assert ratio["Post-Norm"] < 1e-3 and spread["Post-Norm"] < 1e-3
    assert abs(cosine["Post-Norm"]) < 0.3
    assert 0.5 < ratio["DeepNorm"] < 2 and spread["DeepNorm"] > 0.5
    assert cosine["DeepNorm"] > 0.99


def test_stack_shapes():
    assert len(stack("Pre-Norm", 3, 8)) == 7  # two sublayers each, a final norm
    assert len(stack("DeepNorm", 3, 8)) == len(stack("Post-Norm", 3, 8)) == 6
    assert stack("DeepNorm", 8, 8)[0].alpha == 2.0
    assert stack("Post-Norm", 8, 8)[0].alpha == 1.0


def test_minimax_takes_its_residual_behind_the_norm():
    """x ← α N(x) + β F(N(x)): DeepNorm, cut in front of the norm."""
    config = MiniMaxConfig(
        hidden_size=16,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        num_local_experts=2,
        num_experts_per_tok=1,
        vocab_size=11,
        layer_types=["full_attention"],
        full_attn_alpha_factor=3.5,
        mlp_alpha_factor=2.5,
        full_attn_beta_factor=0.7,
        mlp_beta_factor=0.6,
    )
    config._attn_implementation = "eager"
    layer = MiniMaxDecoderLayer(config, 0)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3 + 0.1)
    x = torch.randn(2, 5, 16)
    angles = torch.zeros(1, 5, 8)
    rotary = angles.cos(), angles.sin()
    h = layer.input_layernorm(x)
    attention = layer.self_attn(
        hidden_states=h, position_embeddings=rotary, attention_mask=None
    )[0]
    h = layer.post_attention_layernorm(3.5 * h + 0.7 * attention)
    wanted = 2.5 * h + 0.6 * layer.mlp(h)
    actual = layer(x, position_embeddings=rotary)
    assert torch.allclose(actual, wanted, atol=1e-5)
