import torch
from torch import nn
from torch.nn import functional as F
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextRMSNorm

from snippets.normalized_transformer.sphere import slerp, step_towards, unit
from snippets.norms_beyond_the_decoder.attention import (
    causal_logits,
    gated_attention,
    sink_attention,
)
from snippets.norms_beyond_the_decoder.delta_rule import delta_rule, l2_norm
from snippets.norms_beyond_the_decoder.gated import gated_rms_norm
from snippets.rms_norm.reference import RMSNorm, rms_norm
from snippets.without_normalization.reference import DynamicTanh
from snippets.without_normalization.stack import stack as norm_free_stack
from snippets.zero_centred_and_mixed.mixed import hybrid_norm
from snippets.zero_centred_and_mixed.zero_centred import ZeroCentredRMSNorm


def layer_norm_acts_like_a_tanh():
    torch.manual_seed(0)
    tokens = torch.randn(3, 512, dtype=torch.float64)
    tokens *= torch.tensor([0.5, 4.0, 16.0])[:, None]
    slopes, bends = [], []
    for x in tokens:
        y, centred = F.layer_norm(x, (512,)), x - x.mean()
        slope = (centred @ y) / (centred @ centred)
        bends.append(not torch.allclose(y, slope * centred))  # else a straight line
        slopes.append(slope)
    return {
        "a single token gives a bend": any(bends),
        "three tokens, flatter for a louder one": slopes[0]
        > 5 * slopes[1]
        > 15 * slopes[2],
    }


def dyt_does_what_a_norm_does():
    torch.manual_seed(0)
    norm, dyt = RMSNorm(512), DynamicTanh(512)
    x = torch.randn(512)
    sizes = [(norm(s * x).norm() / norm(x).norm()).item() for s in (0.1, 10)]
    assert all(abs(size - 1) < 1e-3 for size in sizes)
    louder = x.clone()
    louder[0] = 100.0  # one loud feature
    assert (norm(louder)[1:] - norm(x)[1:]).abs().max() > 1
    size, others, beside = dyt(x).norm(), dyt(x)[1:], dyt(louder)[1:]
    return {
        "a tenth of x, the size stays": dyt(0.1 * x).norm() > 0.2 * size,
        "ten times x, the size stays": dyt(10 * x).norm() < 2 * size,
        "a loud feature changes the others": not torch.equal(beside, others),
    }


def dyt_is_a_drop_in_replacement():
    torch.manual_seed(0)
    embedding = 0.02 * torch.randn(16, 4096)
    norm, dyt = RMSNorm(4096), DynamicTanh(4096)

    def size(y):
        return y.square().mean().sqrt()

    assert size(norm(embedding)) > 0.95
    assert size(dyt(embedding)) < 0.02
    scaled = dyt(4096**0.5 * embedding)  # the paper's factor for embeddings
    return {
        "embeddings as they are": 0.3 < size(dyt(embedding)) < 1,
        "embeddings times √d": 0.3 < size(scaled) < 1,
    }


def a_branch_that_starts_at_zero_cannot_learn():
    generator = torch.Generator().manual_seed(1)
    x, target = torch.randn(2, 32, 64, generator=generator, dtype=torch.float64)
    still = {}
    for both in (False, True):
        model = norm_free_stack("ReZero", 4)  # every alpha is 0
        if both:
            for block in model:
                nn.init.zeros_(block.body[-1].weight)
        for _ in range(2):
            model.zero_grad()
            (model(x) - target).square().sum().backward()
            with torch.no_grad():
                for block in model:
                    block.alpha -= 1e-5 * block.alpha.grad
        still[both] = model[0].body[0].weight.grad.norm() == 0
    assert still[True]  # the last matrix is zero as well
    return {"only the factor is zero": still[False]}


def ngpt_divides_its_logits_by_the_root_of_the_width():
    torch.manual_seed(0)
    width, keys = 64, 128
    k = unit(torch.randn(keys, width, dtype=torch.float64))
    q = unit(k + 0.05 * torch.randn(keys, width, dtype=torch.float64))
    own = torch.arange(keys)
    right = (q @ k.T * width**0.5).softmax(dim=-1)[own, own].mean()
    habit = (q @ k.T / width**0.5).softmax(dim=-1)[own, own].mean()
    assert right > 0.8
    average = 1 / keys  # the weight of a key that is not told from the others
    return {"divided, a query finds its key": habit > 1.2 * average}


def ngpt_moves_along_the_arc():
    torch.manual_seed(0)
    h, target = unit(torch.randn(2, 512, dtype=torch.float64))

    def off_the_arc(step):
        angle = [torch.arccos((step * end).sum()) for end in (h, target)]
        return sum(angle) - torch.arccos((h * target).sum())

    gap = step_towards(h, target, 0.05) - slerp(h, target, 0.05)
    assert gap.norm() > 0.01  # on the arc, but slower
    alpha = torch.rand(512, dtype=torch.float64)  # one per feature, as in nGPT
    return {
        "a single α": off_the_arc(step_towards(h, target, 0.05)).abs() < 1e-6,
        "an α for each feature": off_the_arc(step_towards(h, target, alpha)) < 0.1,
    }


def ngpt_needs_no_scale_for_its_logits():
    words = 50304
    logits = torch.full((words,), -1.0, dtype=torch.float64)
    logits[0] = 1.0  # the best that cosines can do
    assert -(20 * logits).log_softmax(dim=0)[0] < 0.01
    return {"the least loss, 50,304 tokens": -logits.log_softmax(dim=0)[0] < 8}


def zero_centred_rms_norm_subtracts_the_mean():
    norm = Qwen3NextRMSNorm(4)
    assert torch.equal(norm.weight, torch.zeros(4))  # this is what is centred
    x = torch.tensor([3.0, 5.0, 4.0, 8.0])
    assert torch.allclose(norm(x), rms_norm(x))
    y = norm(x)
    return {
        "the mean is gone": y.mean() < 0.9,
        "the same as LayerNorm": torch.allclose(y, F.layer_norm(x, (4,)), atol=0.5),
    }


def gains_must_not_be_decayed():
    gains = []
    for norm in (RMSNorm(4), ZeroCentredRMSNorm(4)):
        optimizer = torch.optim.AdamW(norm.parameters(), lr=0.1, weight_decay=0.1)
        (stored,) = norm.parameters()
        for _ in range(500):
            stored.grad = torch.zeros_like(stored)  # the loss does not care
            optimizer.step()
        gains.append(norm(torch.ones(4))[0].item())
    plain, zero_centred = gains
    return {
        "a plain gain, decay silences it": plain < 0.01,
        "a gain stored less one, decay silences it": abs(zero_centred - 1) > 1e-3,
    }


def hybridnorm_ends_in_post_norm():
    torch.manual_seed(0)
    network = hybrid_norm(32, heads=4, layers=1)[0][1]
    x = torch.randn(1, 5, 32)
    network.body[-1].weight.data *= 100
    size = network(x).square().mean().sqrt()
    nn.init.zeros_(network.body[-1].weight)
    assert torch.allclose(network(9 * x), network(x), atol=1e-4)
    assert torch.allclose(network(x), rms_norm(x))  # the residual is normed
    return {"a loud branch, the output has size one": size < 5}


def gate_and_norm_commute():
    x = torch.randn(4, 32, generator=torch.Generator().manual_seed(0))
    closed = torch.full_like(x, -4.0)  # SiLU: -0.07 for every feature
    first = gated_rms_norm(x, closed)
    last = gated_rms_norm(x, closed, norm_before_gate=True)
    assert first.square().mean().sqrt() > 0.99
    assert last.square().mean().sqrt() < 0.1
    return {"a gate that closes all features": torch.allclose(first, last)}


def l2_norm_of_the_delta_rule_is_qk_norm():
    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 400, 16, generator=generator, dtype=torch.float64)
    ones = torch.ones(400, 1, dtype=torch.float64)
    largest = {}
    for length in (1.0, 3.0):
        _, state = delta_rule(q, length * l2_norm(k), v, 0.9 * ones[:, 0], ones)
        largest[length] = state.abs().max()
    assert largest[1.0] <= 1e10
    far = causal_logits(q[None], 1e6 * k[None]).softmax(dim=-1) @ v[None]
    assert far.abs().max() <= v.abs().max()  # softmax: an average all the same
    return {"long keys, the state stays bounded as attention does": largest[3.0] < 1e10}


def an_attention_sink_is_no_gate():
    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 2, 9, 8, generator=generator, dtype=torch.float64)
    sink = torch.tensor([-1.0, 2.0], dtype=torch.float64)
    reads = causal_logits(q, k).logsumexp(dim=-1, keepdim=True) - sink[:, None, None]
    gap = sink_attention(q, k, v, sink) - gated_attention(q, k, v, reads)
    one_feature = torch.randn(2, 9, 8, generator=generator, dtype=torch.float64)
    ratio = gated_attention(q, k, v, one_feature) / sink_attention(q, k, v, sink)
    return {
        "a gate that reads logits and sink": gap.abs().max() > 1e-12,
        "a gate for each feature": ratio.std(dim=-1).min() > 0.01,  # a sink has one
    }
