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


# verdict: holds-when
def batchnorm_averages_over_the_batch_dimension():
    x = randn(4, 3, 5, 7) + randn(1, 3, 5, 7, seed=1)  # images: (N, C, H, W)
    y = nn.BatchNorm2d(3, eps=1e-15, affine=False, dtype=x.dtype)(x)
    pooled = (x - x.mean((0, 2, 3), True)) / x.std(
        (0, 2, 3), correction=0, keepdim=True
    )
    batch_only = (x - x.mean(0, True)) / x.std(0, correction=0, keepdim=True)
    torch.testing.assert_close(y, pooled)
    assert (y - batch_only).abs().max() > 1


# verdict: holds
def inference_uses_running_averages():
    norm = nn.BatchNorm1d(8, dtype=torch.float64)
    for seed in range(20):
        norm(3 + 2 * randn(64, 8, seed=seed))
    norm.eval()
    x = randn(64, 8, seed=99)
    by_hand = (x - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
    torch.testing.assert_close(norm(x), by_hand)
    assert norm(x).mean() < -1  # this batch's own mean was not subtracted


# verdict: holds-when
def running_variance_is_what_normalizes():
    many = randn(10_000, 1)
    norm = nn.BatchNorm1d(1, momentum=1.0, affine=False, dtype=many.dtype)
    norm(many)
    torch.testing.assert_close(
        norm.running_var, many.var(0, correction=0), rtol=2e-4, atol=0
    )
    batch = torch.tensor([[0.0], [2.0]])
    norm = nn.BatchNorm1d(1, eps=1e-15, momentum=1.0, affine=False)
    assert norm(batch).flatten().tolist() == [-1, 1]  # biased variance: 1
    assert norm.running_var.item() == 2  # unbiased variance
    assert norm.eval()(batch).abs().max() < 0.71  # the same batch again


# verdict: holds-when
def momentum_keeps_that_share_of_the_old_average():
    norm = nn.BatchNorm1d(1, momentum=0.9)  # running_mean starts at 0
    norm(torch.tensor([[9.0], [11.0]]))
    torch.testing.assert_close(norm.running_mean, torch.tensor([9.0]))
    assert abs(norm.running_mean.item() - 1) > 7  # 0.9 of the old gives 1


# verdict: wrong
def decoding_with_a_batch_of_one_breaks_batchnorm():
    norm = nn.BatchNorm1d(16, dtype=torch.float64)
    norm(1 + 3 * randn(256, 16))
    norm.eval()
    x = randn(64, 16, seed=1)
    alone = torch.cat([norm(row[None]) for row in x])
    torch.testing.assert_close(alone, norm(x), rtol=0, atol=1e-14)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        norm.train()(x[:1])  # it does need a batch in training


# verdict: holds-when
def one_example_cannot_train_batchnorm():
    x = randn(1, 4, 50)  # one sequence of 50: (N, C, L)
    y = nn.BatchNorm1d(4, affine=False, dtype=x.dtype)(x)
    torch.testing.assert_close(y, nn.InstanceNorm1d(4)(x))
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        nn.BatchNorm1d(4)(torch.zeros(1, 4))


# verdict: wrong
def no_grad_is_enough_for_inference():
    norm = nn.BatchNorm1d(4, dtype=torch.float64)
    x = 5 + randn(32, 4)
    with torch.no_grad():
        y = norm(x)
    assert y.mean().abs() < 1e-6  # still the batch's own statistics
    assert norm.running_mean.min() > 0.4  # and the running ones have moved
    assert (norm.eval()(x) - y).abs().max() > 1


# verdict: wrong
def requires_grad_false_freezes_batchnorm():
    norm = nn.BatchNorm1d(4).requires_grad_(False)
    norm(5 + randn(32, 4, dtype=torch.float32))
    assert norm.running_mean.min() > 0.4
    frozen = nn.BatchNorm1d(4).requires_grad_(False).eval()
    frozen(5 + randn(32, 4, dtype=torch.float32))
    assert frozen.running_mean.abs().max() == 0


# verdict: wrong
def padding_is_why_text_dropped_batchnorm():
    tokens = 1 + 2 * randn(8, 512, 16)
    padded = torch.cat([tokens, torch.zeros_like(tokens)], dim=1)  # half padding
    mask = torch.arange(1024).expand(8, -1) < 512
    assert (padded.mean() - 0.5).abs() < 0.05  # the distortion is real
    real = padded[mask]
    assert (real.mean() - 1).abs() < 0.05 and (real.std() - 2).abs() < 0.05


# verdict: holds-when
def a_micro_batch_of_one_sequence_is_hopelessly_noisy():
    def noise(own, shared):  # spread of the mean of one sequence of 4096
        means = (own * randn(200, 4096) + shared * randn(200, 1, seed=1)).mean(1)
        return means.std().item()

    def lost(x):  # share of the output's energy that is not the input, standardized
        y = nn.BatchNorm1d(1, affine=False, dtype=x.dtype)(x.reshape(-1, 1)).flatten()
        return ((y - x.flatten()).square().mean() / y.square().mean()).item()

    one = randn(2, 100)  # a value for each of two sequences: only the order is left
    norm = nn.BatchNorm1d(100, affine=False, eps=1e-15, dtype=one.dtype)
    torch.testing.assert_close(norm(one).abs(), torch.ones_like(one))
    assert lost(randn(4096)) < 0.01  # one sequence of independent tokens: not hopeless
    half = 0.5**0.5
    assert lost(half * randn(4096) + half * 1.5) > 0.5  # what its tokens share is lost
    assert 0.013 < noise(1, 0) < 0.019  # independent tokens: 1/64 = 0.0156
    assert abs(noise(0.5**0.5, 0.5**0.5) - 0.7) < 0.1  # half of the variance in common


# verdict: wrong
def the_causal_mask_keeps_a_decoder_causal():
    x = randn(16, 8)  # 16 positions of one sequence
    changed = x.clone()
    changed[-1] += 10  # the last token alone
    batch_norm = nn.BatchNorm1d(8, dtype=x.dtype)
    assert (batch_norm(changed) - batch_norm(x))[0].abs().max() > 0.1
    layer_norm, rms_norm = nn.LayerNorm(8).double(), nn.RMSNorm(8).double()
    for norm in (batch_norm.eval(), layer_norm, rms_norm):
        assert torch.equal(norm(changed)[0], norm(x)[0])


# verdict: wrong
def batchnorm_compares_the_same_position_of_unrelated_sentences():
    def batch_norm(v):  # (sentence, position, feature): all tokens pooled
        return nn.BatchNorm1d(4, dtype=v.dtype)(v.flatten(0, 1)).view_as(v)

    x, order = randn(2, 6, 4), [3, 1, 5, 0, 2, 4]
    shuffled = x.clone()
    shuffled[0] = x[0, order]  # one sentence in another order
    y, z = batch_norm(x), batch_norm(shuffled)
    torch.testing.assert_close(z[1], y[1])  # position i met other partners
    torch.testing.assert_close(z[0], y[0, order])


# verdict: holds-when
def batchnorm_needs_identically_distributed_examples():
    norm = nn.BatchNorm1d(1, dtype=torch.float64)
    for step in range(400):  # two sources that come in batches of their own
        source = 10 * (step % 2)
        y = norm(source + randn(256, 1, seed=step))
        assert abs(y.mean()) < 1e-6 and abs(y.std() - 1) < 0.01
    norm.eval()
    for source in (0, 10):  # another function than the one that was trained
        assert abs(norm(source + randn(256, 1, seed=400)).mean()) > 4
    norm = nn.BatchNorm1d(1, dtype=torch.float64)
    sources = torch.cat([torch.zeros(128, 1), torch.full((128, 1), 10.0)])
    for step in range(200):  # both in every batch: still not identically distributed
        norm(sources + randn(256, 1, seed=step))
    y = norm.eval()(sources + randn(256, 1, seed=400))
    assert abs(y.mean()) < 0.05 and abs(y.std() - 1) < 0.05


# verdict: holds-when
def better_running_averages_would_close_the_gap():
    def gap(shared):  # of eval mode, with the true mean and variance, to training
        gaps = []
        for seed in range(50):
            sequence = randn(4, 1, seed=2 * seed)
            x = shared**0.5 * sequence + (1 - shared) ** 0.5 * randn(4, 128, seed=seed)
            x = x.reshape(-1, 1)  # (tokens, features)
            norm = nn.BatchNorm1d(
                1, dtype=x.dtype
            )  # fresh: the true mean 0, variance 1
            gaps.append((norm.eval()(x) - norm.train()(x)).square().mean().sqrt())
        return sum(gaps) / len(gaps)

    assert gap(0) < 0.1 and gap(0.5) > 0.25


# verdict: holds-when
def several_devices_need_synchronized_batchnorm():
    x = randn(8, 4)
    norm = nn.BatchNorm1d(4, affine=False, dtype=x.dtype)
    separate = torch.cat([norm(x[:4]), norm(x[4:])])  # runs, without a message
    assert separate[:4].mean(0).abs().max() < 1e-12
    assert (separate - norm(x)).abs().max() > 0.1  # but is another function


# verdict: wrong
def averaging_the_devices_variances_gives_the_batch_variance():
    a, b = randn(6, 1), 3 + randn(6, 1, seed=1)  # two devices
    mean_of_variances = (a.var(correction=0) + b.var(correction=0)) / 2
    between = (a.mean() - b.mean()).square() / 4
    whole = torch.cat([a, b]).var(correction=0)
    torch.testing.assert_close(mean_of_variances + between, whole)
    assert whole > 1.5 * mean_of_variances


# verdict: holds-when
def accumulation_equals_the_large_batch():
    def gradient(kind, chunks):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 4), kind(4), nn.Tanh(), nn.Linear(4, 1))
        for part in randn(16, 4, seed=1).chunk(chunks):
            (model.double()(part).square().mean() / chunks).backward()
        return model[0].weight.grad

    layer = [gradient(nn.LayerNorm, chunks) for chunks in (1, 4)]
    batch = [gradient(nn.BatchNorm1d, chunks) for chunks in (1, 4)]
    torch.testing.assert_close(*layer)
    assert (batch[0] - batch[1]).norm() > 0.1 * batch[0].norm()


# verdict: holds
def batchnorm_over_tokens_layernorm_over_features():
    x = 2 + 3 * randn(4, 7, 5)  # (batch, sequence, feature)
    batch = nn.BatchNorm1d(5, dtype=x.dtype)(x.transpose(1, 2)).transpose(1, 2)
    layer = nn.LayerNorm(5, dtype=x.dtype)(x)
    for y, own, other in ((batch, (0, 1), -1), (layer, -1, (0, 1))):
        assert y.mean(own).abs().max() < 1e-12
        assert (y.var(own, correction=0) - 1).abs().max() < 1e-3
        assert y.mean(other).abs().max() > 0.1  # but not over the other axes


# verdict: wrong
def batchnorm1d_takes_batch_sequence_feature():
    x = 5 * torch.arange(6.0)[:, None] + randn(4, 6, 6).float()
    norm = nn.BatchNorm1d(6, affine=False)
    direct, transposed = norm(x), norm(x.transpose(1, 2)).transpose(1, 2)
    assert direct.mean((0, 2)).abs().max() < 1e-5  # a mean for each position
    assert transposed.mean((0, 1)).abs().max() < 1e-5  # a mean for each feature
    assert (direct - transposed).abs().max() > 1
    with pytest.raises(RuntimeError):
        norm(x[:, :5])  # a sequence of 5 is refused


# verdict: holds-when
def only_the_axis_differs():
    x = 1 + 2 * randn(6, 6)
    batch, layer = nn.BatchNorm1d(6).double(), nn.LayerNorm(6).double()
    torch.testing.assert_close(batch(x.T).T, layer(x))  # the same arithmetic
    assert set(batch.state_dict()) - set(layer.state_dict()) == {
        "running_mean",
        "running_var",
        "num_batches_tracked",
    }
    assert (batch.eval()(x.T).T - layer.eval()(x)).abs().max() > 0.5
    with torch.no_grad():  # gain and bias belong to features in both
        batch.train().weight[0] = layer.weight[0] = 9
    assert (batch(x.T).T - layer(x)).abs().max() > 1


# verdict: holds
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

    assert max(effect(lambda h: h)) < 1e-9  # directly
    assert max(effect(lambda h: stream + h)) < 1e-9  # through a residual sum
    assert min(effect(torch.relu)) > 0.1


# verdict: holds-when
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
    torch.testing.assert_close(folded(x), norm(linear(x)))
    layer = nn.LayerNorm(3).double()  # its scale is another for each input
    scales = layer(linear(x)).std(-1) / linear(x).std(-1)
    assert scales.max() > 2 * scales.min()


# verdict: holds-when
def mean_and_variance_are_constants_in_the_backward_pass():
    def gradient(training):  # of a loss on the first example alone
        x = randn(8, 3).requires_grad_()
        norm = nn.BatchNorm1d(3, dtype=x.dtype).train(training)
        norm(x)[0].pow(3).sum().backward()
        return x.grad

    assert gradient(training=False)[1:].abs().max() == 0
    assert gradient(training=True)[1:].abs().min() > 0
    assert gradient(training=True).sum(0).abs().max() < 1e-12


# verdict: holds
def groupnorm_and_instancenorm_ignore_the_batch():
    x = 3 + randn(4, 8, 5, 5)
    for norm in (nn.GroupNorm(2, 8), nn.InstanceNorm2d(8)):
        torch.testing.assert_close(norm.double()(x)[:1], norm(x[:1]))
    torch.testing.assert_close(nn.GroupNorm(8, 8).double()(x), nn.InstanceNorm2d(8)(x))
    batch_norm = nn.BatchNorm2d(8, dtype=x.dtype)
    assert (batch_norm(x)[:1] - batch_norm(x[:1])).abs().max() > 0.1


# verdict: holds
def gpt_and_bert_use_layernorm_llama_and_qwen_rmsnorm():
    def norms(block, config):
        with torch.device("meta"):  # the shapes of the real model, no memory
            modules = block(config(), layer_idx=0).modules()
            return {type(m).__name__ for m in modules if "Norm" in type(m).__name__}

    assert norms(BertLayer, BertConfig) == {"LayerNorm"}
    assert norms(GPT2Block, GPT2Config) == {"LayerNorm"}
    assert norms(LlamaDecoderLayer, LlamaConfig) == {"LlamaRMSNorm"}
    assert norms(Qwen3DecoderLayer, Qwen3Config) == {"Qwen3RMSNorm"}
    assert norms(DeepseekV3DecoderLayer, DeepseekV3Config) == {"DeepseekV3RMSNorm"}
    assert norms(DeepseekV32Indexer, DeepseekV32Config) == {"LayerNorm"}
