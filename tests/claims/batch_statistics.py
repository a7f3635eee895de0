import pytest
import torch
from torch import nn
from transformers.models.bert.modeling_bert import BertConfig, BertLayer
from transformers.models.deepseek_v3.modeling_deepseek_v3 import (
    DeepseekV3Config,
    DeepseekV3DecoderLayer,
)
from transformers.models.deepseek_v32.modeling_deepseek_v32 import (
    DeepseekV32Config,
    DeepseekV32Indexer,
)
from transformers.models.gpt2.modeling_gpt2 import GPT2Block, GPT2Config
from transformers.models.llama.modeling_llama import LlamaConfig, LlamaDecoderLayer
from transformers.models.qwen3.modeling_qwen3 import Qwen3Config, Qwen3DecoderLayer


def randn(*shape: int, seed: int = 0, dtype=torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=dtype)


def batchnorm_averages_over_the_batch_dimension():
    def over(x, *axes):  # normalized by statistics over these axes
        std = x.std(axes, correction=0, keepdim=True)
        return (x - x.mean(axes, keepdim=True)) / std

    rows = randn(4, 3)  # (N, C)
    flat = nn.BatchNorm1d(3, eps=1e-15, affine=False, dtype=rows.dtype)(rows)
    x = randn(4, 3, 5, 7) + randn(1, 3, 5, 7, seed=1)  # images: (N, C, H, W)
    y = nn.BatchNorm2d(3, eps=1e-15, affine=False, dtype=x.dtype)(x)
    torch.testing.assert_close(y, over(x, 0, 2, 3))
    return {
        "(batch, feature)": torch.allclose(flat, over(rows, 0)),
        "images": (y - over(x, 0)).abs().max() < 1,
    }


def inference_uses_running_averages():
    norm = nn.BatchNorm1d(8, dtype=torch.float64)
    for seed in range(20):
        norm(3 + 2 * randn(64, 8, seed=seed))
    norm.eval()
    x = randn(64, 8, seed=99)
    by_hand = (x - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
    assert norm(x).mean() < -1  # this batch's own mean was not subtracted
    return {"a batch unlike the others": torch.allclose(norm(x), by_hand)}


def running_variance_is_what_normalizes():
    many = randn(10_000, 1)
    norm = nn.BatchNorm1d(1, momentum=1.0, affine=False, dtype=many.dtype)
    norm(many)
    biased = many.var(0, correction=0)
    batch = torch.tensor([[0.0], [2.0]])
    pair = nn.BatchNorm1d(1, eps=1e-15, momentum=1.0, affine=False)
    assert pair(batch).flatten().tolist() == [-1, 1]  # biased variance: 1
    assert pair.running_var.item() == 2  # unbiased variance
    assert pair.eval()(batch).abs().max() < 0.71  # the same batch again
    return {
        "10,000 values": torch.allclose(norm.running_var, biased, rtol=2e-4, atol=0),
        "the values 0 and 2": pair.running_var == batch.var(correction=0),
    }


def momentum_keeps_that_share_of_the_old_average():
    def keras(old, batch):  # as its documentation has it
        return 0.9 * old + (1 - 0.9) * batch.mean(0)

    old, batch = torch.zeros(1), torch.tensor([[9.0], [11.0]])  # their mean is 10
    norm = nn.BatchNorm1d(1, momentum=0.9)
    assert torch.equal(norm.running_mean, old)
    norm(batch)
    torch.testing.assert_close(norm.running_mean, torch.tensor([9.0]))
    kept = torch.tensor([1.0])  # nine tenths of 0 and a tenth of 10
    return {
        "Keras": torch.allclose(keras(old, batch), kept),
        "PyTorch": torch.allclose(norm.running_mean, kept),
    }


def decoding_with_a_batch_of_one_breaks_batchnorm():
    norm = nn.BatchNorm1d(16, dtype=torch.float64)
    norm(1 + 3 * randn(256, 16))
    norm.eval()
    x = randn(64, 16, seed=1)
    alone = torch.cat([norm(row[None]) for row in x])
    together = norm(x)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        norm.train()(x[:1])  # it does need a batch in training
    return {"eval mode, rows one by one": (alone - together).abs().max() > 1e-14}


def one_example_cannot_train_batchnorm():
    def refused(example):
        try:
            nn.BatchNorm1d(4)(example)
        except ValueError as error:
            return "more than 1 value per channel" in str(error)
        return False

    x = randn(1, 4, 50)  # one sequence of 50: (N, C, L)
    y = nn.BatchNorm1d(4, affine=False, dtype=x.dtype)(x)
    torch.testing.assert_close(y, nn.InstanceNorm1d(4)(x))
    return {
        "one value per feature": refused(torch.zeros(1, 4)),
        "a sequence of 50": refused(x.float()),
    }


def no_grad_is_enough_for_inference():
    norm = nn.BatchNorm1d(4, dtype=torch.float64)
    x = 5 + randn(32, 4)
    with torch.no_grad():
        y = norm(x)
    assert y.mean().abs() < 1e-6  # still the batch's own statistics
    moved = norm.running_mean.min()
    return {
        "the output is that of eval mode": (norm.eval()(x) - y).abs().max() < 1,
        "running statistics stay": moved < 0.4,
    }


def requires_grad_false_freezes_batchnorm():
    norm = nn.BatchNorm1d(4).requires_grad_(False)
    norm(5 + randn(32, 4, dtype=torch.float32))
    frozen = nn.BatchNorm1d(4).requires_grad_(False).eval()
    frozen(5 + randn(32, 4, dtype=torch.float32))
    assert frozen.running_mean.abs().max() == 0  # eval mode is what freezes them
    return {"running statistics stay": norm.running_mean.min() < 0.4}


def padding_is_why_text_dropped_batchnorm():
    tokens = 1 + 2 * randn(8, 512, 16)
    padded = torch.cat([tokens, torch.zeros_like(tokens)], dim=1)  # half padding
    mask = torch.arange(1024).expand(8, -1) < 512
    assert (padded.mean() - 0.5).abs() < 0.05  # the distortion is real
    real = padded[mask]
    return {
        "the mean stays wrong under a mask": (real.mean() - 1).abs() > 0.05,
        "the deviation stays wrong under a mask": (real.std() - 2).abs() > 0.05,
    }


def a_micro_batch_of_one_sequence_is_hopelessly_noisy():
    def noise(own, shared):  # spread of the mean of one sequence of 4096
        means = (own * randn(200, 4096) + shared * randn(200, 1, seed=1)).mean(1)
        return means.std().item()

    def lost(x):  # share of the output's energy that is not the input, standardized
        y = nn.BatchNorm1d(1, affine=False, dtype=x.dtype)(x.reshape(-1, 1)).flatten()
        return ((y - x.flatten()).square().mean() / y.square().mean()).item()

    half = 0.5**0.5
    assert 0.013 < noise(1, 0) < 0.019  # independent tokens: 1/64 = 0.0156
    assert abs(noise(half, half) - 0.7) < 0.1  # half of the variance in common
    one = randn(2, 100)  # a value for each of two sequences
    norm = nn.BatchNorm1d(100, affine=False, eps=1e-15, dtype=one.dtype)
    only_the_order = torch.allclose(norm(one).abs(), torch.ones_like(one))
    independent, alike = randn(4096), half * randn(4096) + half * 1.5
    assert lost(independent) < 0.01
    return {
        "one value a sequence and feature: only the order is left": only_the_order,
        "4096 independent tokens": lost(independent) > 0.5,
        "4096 tokens with half in common": lost(alike) > 0.5,  # what they share
    }


def the_causal_mask_keeps_a_decoder_causal():
    x = randn(16, 8)  # 16 positions of one sequence
    changed = x.clone()
    changed[-1] += 10  # the last token alone
    norms = {
        "LayerNorm": nn.LayerNorm(8),
        "RMSNorm": nn.RMSNorm(8),
        "BatchNorm in training": nn.BatchNorm1d(8),
        "BatchNorm in eval mode": nn.BatchNorm1d(8).eval(),
    }
    return {
        name: torch.equal(norm(changed)[0], norm(x)[0])
        for name, norm in ((name, norm.double()) for name, norm in norms.items())
    }


def batchnorm_compares_the_same_position_of_unrelated_sentences():
    def batch_norm(v):  # (sentence, position, feature): all tokens pooled
        return nn.BatchNorm1d(4, dtype=v.dtype)(v.flatten(0, 1)).view_as(v)

    x, order = randn(2, 6, 4), [3, 1, 5, 0, 2, 4]
    shuffled = x.clone()
    shuffled[0] = x[0, order]  # one sentence in another order
    y, z = batch_norm(x), batch_norm(shuffled)
    torch.testing.assert_close(z[0], y[0, order])
    return {"new partners at a position change a token": not torch.allclose(z[1], y[1])}


def batchnorm_needs_identically_distributed_examples():
    def off(y):  # not standardized
        return bool(abs(y.mean()) > 0.05 or abs(y.std() - 1) > 0.05)

    norm = nn.BatchNorm1d(1, dtype=torch.float64)
    training = []
    for step in range(400):  # two sources that come in batches of their own
        source = 10 * (step % 2)
        y = norm(source + randn(256, 1, seed=step))
        assert abs(y.mean()) < 1e-6
        training.append(off(y))
    norm.eval()
    apart = [norm(source + randn(256, 1, seed=400)) for source in (0, 10)]
    assert all(abs(y.mean()) > 4 for y in apart)  # another function than in training
    norm = nn.BatchNorm1d(1, dtype=torch.float64)
    sources = torch.cat([torch.zeros(128, 1), torch.full((128, 1), 10.0)])
    for step in range(200):  # both in every batch: still not identically distributed
        norm(sources + randn(256, 1, seed=step))
    mixed = norm.eval()(sources + randn(256, 1, seed=400))
    return {
        "a batch is one source, training goes wrong": any(training),
        "a batch is one source, eval mode goes wrong": all(map(off, apart)),
        "both in every batch, eval mode goes wrong": off(mixed),
    }


def better_running_averages_would_close_the_gap():
    def gap(shared):  # of eval mode, with the true mean and variance, to training
        gaps = []
        for seed in range(50):
            sequence = randn(4, 1, seed=2 * seed)
            x = shared**0.5 * sequence + (1 - shared) ** 0.5 * randn(4, 128, seed=seed)
            x = x.reshape(-1, 1)  # (tokens, features)
            norm = nn.BatchNorm1d(1, dtype=x.dtype)  # fresh: true mean, true variance
            gaps.append((norm.eval()(x) - norm.train()(x)).square().mean().sqrt())
        return sum(gaps) / len(gaps)

    return {
        "independent tokens": gap(0) < 0.1,
        "tokens that share half of their variance": gap(0.5) < 0.25,
    }


def several_devices_need_synchronized_batchnorm():
    def separate(norm, x):  # two devices, without a message
        return torch.cat([norm(x[:4]), norm(x[4:])])

    x = randn(8, 4)
    batch = nn.BatchNorm1d(4, affine=False, dtype=x.dtype)
    layer = nn.LayerNorm(4, dtype=x.dtype)
    y = separate(batch, x)
    torch.testing.assert_close(separate(layer, x), layer(x))
    return {
        "to give the result of the whole batch": (y - batch(x)).abs().max() > 0.1,
        "to normalize each device's part": y[:4].mean(0).abs().max() > 1e-12,
    }


def averaging_the_devices_variances_gives_the_batch_variance():
    a, b = randn(6, 1), 3 + randn(6, 1, seed=1)  # two devices
    mean_of_variances = (a.var(correction=0) + b.var(correction=0)) / 2
    between = (a.mean() - b.mean()).square() / 4
    whole = torch.cat([a, b]).var(correction=0)
    torch.testing.assert_close(mean_of_variances + between, whole)
    return {"two devices, means 3 apart": whole < 1.5 * mean_of_variances}


def accumulation_equals_the_large_batch():
    def gradient(kind, chunks):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 4), kind(4), nn.Tanh(), nn.Linear(4, 1))
        for part in randn(16, 4, seed=1).chunk(chunks):
            (model.double()(part).square().mean() / chunks).backward()
        return model[0].weight.grad

    layer = [gradient(nn.LayerNorm, chunks) for chunks in (1, 4)]
    batch = [gradient(nn.BatchNorm1d, chunks) for chunks in (1, 4)]
    return {
        "with LayerNorm": torch.allclose(*layer),
        "with BatchNorm": (batch[0] - batch[1]).norm() < 0.1 * batch[0].norm(),
    }


def batchnorm_over_tokens_layernorm_over_features():
    x = 2 + 3 * randn(4, 7, 5)  # (batch, sequence, feature)
    batch = nn.BatchNorm1d(5, dtype=x.dtype)(x.transpose(1, 2)).transpose(1, 2)
    layer = nn.LayerNorm(5, dtype=x.dtype)(x)
    tokens, features = (0, 1), -1
    assert batch.mean(features).abs().max() > 0.1  # not over the other axes
    assert layer.mean(tokens).abs().max() > 0.1

    def standardized(y, axes):
        variance = y.var(axes, correction=0)
        return y.mean(axes).abs().max() < 1e-12 and (variance - 1).abs().max() < 1e-3

    return {
        "BatchNorm, over batch and sequence": standardized(batch, tokens),
        "LayerNorm, over features": standardized(layer, features),
    }


def batchnorm1d_takes_batch_sequence_feature():
    x = 5 * torch.arange(6.0)[:, None] + randn(4, 6, 6).float()
    norm = nn.BatchNorm1d(6, affine=False)
    direct, transposed = norm(x), norm(x.transpose(1, 2)).transpose(1, 2)
    assert direct.mean((0, 2)).abs().max() < 1e-5  # a mean for each position
    assert transposed.mean((0, 1)).abs().max() < 1e-5  # a mean for each feature

    def accepted(v):
        try:
            norm(v)
        except RuntimeError:
            return False
        return True

    return {
        "a sequence of 5, 6 features": accepted(x[:, :5]),
        "a sequence of 6, 6 features": (direct - transposed).abs().max() < 1,
    }


def only_the_axis_differs():
    x = 1 + 2 * randn(6, 6)
    batch, layer = nn.BatchNorm1d(6).double(), nn.LayerNorm(6).double()
    assert set(batch.state_dict()) - set(layer.state_dict()) == {
        "running_mean",
        "running_var",
        "num_batches_tracked",
    }
    cases = {"training, gains of one": torch.allclose(batch(x.T).T, layer(x))}
    gap = (batch.eval()(x.T).T - layer.eval()(x)).abs().max()
    cases["eval mode"] = gap < 0.5
    with torch.no_grad():  # gain and bias belong to features in both
        batch.train().weight[0] = layer.weight[0] = 9
    gap = (batch(x.T).T - layer(x)).abs().max()
    return cases | {"training, a learned gain": gap < 1}


def a_bias_before_batchnorm_is_useless():
    x, stream = randn(16, 4), randn(16, 3, seed=1)

    def effect(between):  # of the bias: its gradient, and its change of the output
        torch.manual_seed(0)
        linear, norm = nn.Linear(4, 3).double(), nn.BatchNorm1d(3).double()
        y = norm(between(linear(x)))
        y.pow(3).sum().backward()
        assert linear.weight.grad.abs().max() > 1
        with torch.no_grad():
            linear.bias += 7
        change = (norm(between(linear(x))) - y).abs().max()
        return linear.bias.grad.abs().max(), change

    assert min(effect(torch.relu)) > 0.1  # behind an activation it counts
    return {
        "directly": max(effect(lambda h: h)) < 1e-9,
        "through a residual sum": max(effect(lambda h: stream + h)) < 1e-9,
    }


def batchnorm_is_free_at_inference():
    linear, norm = nn.Linear(4, 3).double(), nn.BatchNorm1d(3).double()
    norm(2 + 3 * randn(64, 3))
    norm.eval()
    scale = norm.weight / (norm.running_var + norm.eps).sqrt()
    folded = nn.Linear(4, 3).double()
    with torch.no_grad():
        folded.weight.copy_(scale[:, None] * linear.weight)
        folded.bias.copy_(scale * (linear.bias - norm.running_mean) + norm.bias)
    x = randn(16, 4, seed=1)
    y, once = norm(linear(x)), folded(x)
    layer = nn.LayerNorm(3).double()  # its scale is another for each input
    scales = layer(linear(x)).std(-1) / linear(x).std(-1)
    assert scales.max() > 2 * scales.min()
    return {
        "folded into the layer before it": torch.allclose(once, y),
        "in plain PyTorch, no operation more": y.grad_fn.name() == once.grad_fn.name(),
    }


def mean_and_variance_are_constants_in_the_backward_pass():
    def gradient(training):  # of a loss on the first example alone
        x = randn(8, 3).requires_grad_()
        norm = nn.BatchNorm1d(3, dtype=x.dtype).train(training)
        norm(x)[0].pow(3).sum().backward()
        return x.grad

    assert gradient(training=True).sum(0).abs().max() < 1e-12
    others = {mode: gradient(mode)[1:].abs() for mode in (False, True)}
    return {
        "eval mode": others[False].max() == 0,
        "training": others[True].min() == 0,
    }


def groupnorm_and_instancenorm_ignore_the_batch():
    x = 3 + randn(4, 8, 5, 5)
    torch.testing.assert_close(nn.GroupNorm(8, 8).double()(x), nn.InstanceNorm2d(8)(x))
    batch_norm = nn.BatchNorm2d(8, dtype=x.dtype)
    assert (batch_norm(x)[:1] - batch_norm(x[:1])).abs().max() > 0.1
    return {
        type(norm).__name__: torch.allclose(norm.double()(x)[:1], norm(x[:1]))
        for norm in (nn.GroupNorm(2, 8), nn.InstanceNorm2d(8))
    }


def gpt_and_bert_use_layernorm_llama_and_qwen_rmsnorm():
    def norms(block, config):
        with torch.device("meta"):  # the shapes of the real model, no memory
            modules = block(config(), layer_idx=0).modules()
            return {type(m).__name__ for m in modules if "Norm" in type(m).__name__}

    assert norms(DeepseekV32Indexer, DeepseekV32Config) == {"LayerNorm"}
    deepseek = norms(DeepseekV3DecoderLayer, DeepseekV3Config)
    return {
        "BERT": norms(BertLayer, BertConfig) == {"LayerNorm"},
        "GPT-2": norms(GPT2Block, GPT2Config) == {"LayerNorm"},
        "Llama": norms(LlamaDecoderLayer, LlamaConfig) == {"LlamaRMSNorm"},
        "Qwen3": norms(Qwen3DecoderLayer, Qwen3Config) == {"Qwen3RMSNorm"},
        "DeepSeek-V3": deepseek == {"DeepseekV3RMSNorm"},
    }
