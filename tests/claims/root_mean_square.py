"""The claims about RMSNorm, decided."""

import copy
import inspect
import math

import torch
from torch import nn
from torch.nn import functional as F
from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaForCausalLM, LlamaRMSNorm
from transformers.models.nanochat.modeling_nanochat import NanoChatRMSNorm
from transformers.models.t5.modeling_t5 import T5LayerNorm

from snippets.rms_norm.folding import centre_stream, swap_norms
from snippets.rms_norm.small_decoder import SmallDecoder


def random_tokens(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def rms_norm_formula():
    x, gain, eps = random_tokens(5, 64).float(), torch.linspace(0.5, 1.5, 64), 1e-3
    formula = x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * gain
    norms = {"nn.RMSNorm": nn.RMSNorm(64, eps=eps), "Llama": LlamaRMSNorm(64, eps=eps)}
    for norm in norms.values():
        norm.weight.data = gain
    assert F.rms_norm(torch.zeros(64), (64,), eps=0.0).isnan().all()
    return {
        name: torch.allclose(norm(x), formula, atol=1e-6)
        for name, norm in norms.items()
    }


def two_places_of_epsilon_are_one_formula():
    eps = 1e-6
    rms = torch.tensor([1.0, 2.7e-5], dtype=torch.float64)  # an ordinary, a faint input
    inside = rms / (rms.square() + eps).sqrt()  # RMS of the output
    outside = rms / (rms + eps)
    assert inside[1] < 0.03 and outside[1] > 0.96
    same = (inside - outside).abs() < 1e-5
    return {"an RMS of 1": same[0], "an RMS of 2.7e-5": same[1]}


def epsilon_must_stand_inside_the_root():
    x = random_tokens(5, 64)
    x[-1] = 0  # what epsilon is for
    x.requires_grad_()

    def outside(x, eps):
        rms = x.norm(dim=-1, keepdim=True) / math.sqrt(64)  # as in the authors' code
        return x / (rms + eps)

    y = outside(x, 1e-8)
    torch.testing.assert_close(y[:-1], F.rms_norm(x[:-1], (64,), eps=1e-8))
    (gradient,) = torch.autograd.grad(y.square().sum(), x)
    faint, llama = 1e-4 * random_tokens(5, 64), LlamaRMSNorm(64, eps=1e-6).double()
    return {
        "a Llama checkpoint, its output for faint inputs": (
            (llama(faint) - outside(faint, 1e-6)).abs().max() > 0.1
        ),
        "in general, the output for a row of zeros": not torch.equal(y[-1], 0 * x[-1]),
        "in general, the gradient there": not gradient.isfinite().all(),
    }


def deep_activations_have_no_mean():
    def share(vector):  # of its energy along the all-ones direction
        return (vector.mean(-1).square() / vector.square().mean(-1)).mean()

    x, d = random_tokens(1000, 512), 512
    linear = x @ random_tokens(d, d, seed=1) / math.sqrt(d)
    assert share(linear) > 0.8 / d  # about 1 / d by chance
    assert abs(share(linear.relu()) - 1 / math.pi) < 0.01
    return {
        "after a linear layer with random weights": share(linear) < 1.2 / d,
        "after a ReLU": share(linear.relu()) < 1.2 / d,
    }


def a_finished_model_takes_rms_norm_for_layer_norm():
    torch.manual_seed(0)
    model = SmallDecoder(d=32, layers=2, heads=2, context=16).double()
    for parameter in model.parameters():  # gains and biases too
        nn.init.normal_(parameter, std=0.3)
    text = torch.arange(16)[None]

    naive, folded = copy.deepcopy(model), copy.deepcopy(model)
    swap_norms(naive)
    centre_stream(folded)
    swap_norms(folded)

    def change(swapped):
        return (swapped(text) - model(text)).abs().max()

    return {
        "the weights as they are": change(naive) < 0.5,
        "the stream centred, the biases moved": change(folded) < 1e-7,
    }


def rms_norm_gives_unit_length():
    length = F.rms_norm(random_tokens(100, 512), (512,), eps=0.0).norm(dim=-1)
    assert (length - 512**0.5).abs().max() < 1e-6
    return {"512 features": length.min() < 22.6}


def rms_norm_keeps_the_direction():
    x = random_tokens(100, 512).float()
    gain = 2 * torch.rand(512, generator=torch.Generator().manual_seed(1))

    def cosine(gain):
        y = F.rms_norm(x, (512,), gain, 1e-6)
        return F.cosine_similarity(x.double(), y.double(), dim=-1)

    return {
        "no gain": (1 - cosine(None)).abs().max() < 1e-9,
        "a gain of 3 for all features": (1 - cosine(0 * gain + 3)).abs().max() < 1e-9,
        "gains spread over 0 to 2": cosine(gain).max() > 0.9,
    }


def no_information_is_lost():
    x = random_tokens(100, 512)
    once, tenfold = (F.rms_norm(c * x, (512,), eps=0.0) for c in (1, 10))
    # In Pre-Norm the stream still tells the two apart.
    assert not torch.allclose(x + once, 10 * x + tenfold)
    return {"x and 10 x leave apart": (once - tenfold).abs().max() > 1e-12}


def rms_norm_twice_is_rms_norm_once():
    x, learned = random_tokens(10, 64), random_tokens(64, seed=1).exp()
    gains = {
        "no gain": None,
        "a gain of 3 for all features": torch.full_like(learned, 3.0),
        "a learned gain": learned,
    }

    def change(gain):
        once = F.rms_norm(x, (64,), gain, eps=1e-6)
        twice = F.rms_norm(once, (64,), gain, eps=1e-6)
        return (twice - once).abs().max()

    assert change(learned) > 1
    return {name: change(gain) < 1e-4 for name, gain in gains.items()}


def layer_norm_keeps_the_direction():
    def cosine(x):
        return F.cosine_similarity(F.layer_norm(x, (512,)), x, dim=-1)

    x = 2 + 5 * random_tokens(1000, 512)
    share = x.mean(-1).square() / x.square().mean(-1)
    torch.testing.assert_close(cosine(x), (1 - share).sqrt())
    assert abs(cosine(x).mean() - 0.93) < 0.01
    stream = sum(random_tokens(1000, 512, seed=seed) for seed in range(8))
    return {
        "a stream of random writes": cosine(stream).min() > 0.98,
        "a mean of 2, a deviation of 5": cosine(x).min() > 0.98,
    }


def rms_norm_sets_the_variance_to_one():
    cases = {}
    for mean, least in ((0, 0.99), (2, 0.9)):
        x = mean + 5 * random_tokens(100, 512)
        y = F.rms_norm(x, (512,), eps=0.0)
        variance = y.var(-1, correction=0)
        torch.testing.assert_close(variance, 1 - y.mean(-1).square())
        cases[f"a mean of {mean}, a deviation of 5"] = variance.mean() > least
    return cases


def variance_in_the_code_is_the_variance():
    line = "variance = hidden_states.pow(2).mean(-1, keepdim=True)"
    assert line in inspect.getsource(LlamaRMSNorm.forward)
    x = 2 + random_tokens(10, 64)
    centred = x - x.mean(-1, keepdim=True)
    torch.testing.assert_close(centred.pow(2).mean(-1), centred.var(-1, correction=0))
    ratio = x.pow(2).mean(-1) / x.var(-1, correction=0)
    return {"features of mean 2, variance 1": ratio.min() < 3}  # it is about 5


def without_a_gain_the_model_can_express_less():
    x, gain = random_tokens(10, 64), 0.5 + random_tokens(64, seed=1).abs()
    weight = random_tokens(48, 64, seed=2)  # the linear layer that reads the norm
    with_gain = F.rms_norm(x, (64,), gain, 1e-6) @ weight.T
    folded = F.rms_norm(x, (64,), None, 1e-6) @ (weight * gain).T
    assert not list(NanoChatRMSNorm().parameters())
    bare = F.rms_norm(x, (64,), None, 0.0)  # a query and a key: nothing reads them
    gained = F.rms_norm(x, (64,), torch.full((64,), 3.0, dtype=x.dtype), 0.0)
    assert (gained @ gained.T).max() > 500
    return {
        "queries and keys": (bare @ bare.T).max() <= 64.001,
        "a linear layer after the norm": (folded - with_gain).abs().max() > 1e-9,
    }


def one_plus_gamma_starts_as_the_identity():
    x = 2 + 5 * random_tokens(10, 64).float()
    gemma, llama = GemmaRMSNorm(64, eps=1e-6), LlamaRMSNorm(64, eps=1e-6)
    assert (gemma.weight == 0).all() and (llama.weight == 1).all()
    assert torch.equal(gemma(x), llama(x))
    change = (gemma(x) - x).norm() / x.norm()
    return {"a mean of 2, a deviation of 5": change < 0.7}


def one_plus_gamma_is_only_notation():
    gain, x = random_tokens(8).float(), random_tokens(5, 8, seed=1).float()
    gemma, llama = GemmaRMSNorm(8, eps=1e-6), LlamaRMSNorm(8, eps=1e-6)
    gemma.weight.data, llama.weight.data = gain - 1, gain
    plain, offset = (nn.Parameter(value) for value in (torch.ones(8), torch.zeros(8)))
    optimizer = torch.optim.SGD([plain, offset], lr=0.1, weight_decay=0.1)
    plain.grad, offset.grad = torch.zeros(8), torch.zeros(8)  # decay acts alone
    for _ in range(200):
        optimizer.step()
    assert torch.equal(1 + offset, torch.ones(8))  # gain stays at 1
    return {
        "what the layer computes": torch.allclose(gemma(x), llama(x), atol=1e-6),
        "the gain after weight decay": plain.max() > 0.14,  # on its way to 0
    }


def rms_norm_halves_the_norm_parameters():
    def count(norm):
        return sum(p.numel() for p in norm.parameters())

    half = count(nn.RMSNorm(4096))
    assert half == 4096
    whole = {
        "nn.LayerNorm by default": count(nn.LayerNorm(4096)),
        "nn.LayerNorm without a bias": count(nn.LayerNorm(4096, bias=False)),
    }
    assert list(whole.values()) == [2 * 4096, 4096]
    return {name: 2 * half == parameters for name, parameters in whole.items()}


def llama_7b_spends_262_thousand_parameters_on_norms():
    with torch.device("meta"):
        model = LlamaForCausalLM(LlamaConfig())  # the defaults are the 7B model
    norms = [m for m in model.modules() if isinstance(m, LlamaRMSNorm)]
    assert len(norms) == 2 * 32 + 1
    inside = sum(norm.weight.numel() for norm in norms[:-1])
    total = sum(norm.weight.numel() for norm in norms)
    assert total == 266_240
    return {
        "inside the layers": inside == 32 * 2 * 4096 == 262_144,
        "with the final norm": total == 262_144,
    }


def saved_parameters_are_a_reason_for_rms_norm():
    with torch.device("meta"):
        model = LlamaForCausalLM(LlamaConfig())
    norms = [m for m in model.modules() if isinstance(m, LlamaRMSNorm)]
    saved = sum(norm.weight.numel() for norm in norms)  # biases would be as many
    total = sum(p.numel() for p in model.parameters())
    assert total == 6_738_415_616
    assert saved == 266_240 and saved / total > 3.9e-5
    return {"Llama-7B, over 0.004 %": saved / total > 4.0e-5}


def t5_layer_norm_is_layer_norm():
    x = 2 + random_tokens(10, 64).float()
    t5 = T5LayerNorm(64, eps=1e-6)
    torch.testing.assert_close(t5(x), nn.RMSNorm(64, eps=1e-6)(x))
    layer_norm = nn.LayerNorm(64, eps=1e-6, bias=False)
    centred = x - x.mean(-1, keepdim=True)
    torch.testing.assert_close(t5(centred), layer_norm(x))  # what it leaves out
    return {"features of mean 2": (t5(x) - layer_norm(x)).abs().max() < 0.5}


def rms_norm_ignores_a_shift():
    x, d = random_tokens(10, 64), (64,)
    assert (F.layer_norm(x + 5, d) - F.layer_norm(x, d)).abs().max() < 1e-9
    change = (F.rms_norm(x + 5, d) - F.rms_norm(x, d)).abs().max()
    return {"5 added to all features": change < 1}


def rms_norm_ignores_every_rescaling():
    def norm(x):
        return F.rms_norm(x, (64,), eps=1e-6)

    x = random_tokens(10, 64)
    torch.testing.assert_close(norm(-8 * x), -norm(x), rtol=1e-5, atol=0)
    assert norm(1e-4 * x).abs().max() < 0.2 * norm(x).abs().max()  # epsilon rules
    return {
        f"a factor of {factor:g}": torch.allclose(norm(factor * x), norm(x), atol=0)
        for factor in (8, -8, 1e-4)
    }


def rms_may_run_over_the_sequence_too():
    x = random_tokens(7, 16)  # (time, features) of one sequence
    longer = x.clone()
    longer[-1] *= 10  # the last token alone
    per_token = F.rms_norm(longer, (16,)) - F.rms_norm(x, (16,))
    whole = F.rms_norm(longer, (7, 16)) - F.rms_norm(x, (7, 16))
    assert (per_token[0] == 0).all()
    return {"the first token does not see the last": whole[0].abs().max() < 0.5}


def the_root_may_be_detached():
    x, g = random_tokens(10, 64).requires_grad_(), random_tokens(10, 64, seed=1)
    rms = x.square().mean(-1, keepdim=True).sqrt()
    (full,) = torch.autograd.grad((x / rms * g).sum(), x)
    (detached,) = torch.autograd.grad((x / rms.detach() * g).sum(), x)
    # The output does not change along x, so no gradient may point there.
    assert (full * x).sum(-1).abs().max() < 1e-12
    return {"no gradient along x": (detached * x).sum(-1).abs().max() < 1}


def gradients_keep_their_size():
    def gradient(x):
        x = x.clone().requires_grad_()
        y = F.rms_norm(x, (64,), eps=0.0)
        return torch.autograd.grad((y * random_tokens(10, 64, seed=1)).sum(), x)[0]

    x = random_tokens(10, 64)
    small, large = gradient(x), gradient(2 * x)
    torch.testing.assert_close(large, small / 2)
    outputs = [F.rms_norm(v, (64,), eps=0.0) for v in (x, 2 * x)]
    torch.testing.assert_close(*outputs)  # it is the output that stays
    return {"an input twice as large": torch.allclose(large, small)}


def some_features_estimate_the_root_as_well():
    def size(x, count=16):  # the median RMS of the output
        y = x / x[:, :count].square().mean(-1, keepdim=True).sqrt()
        return y.square().mean(-1).sqrt().median()

    even = random_tokens(1000, 256)
    loud = even.clone()
    loud[:, -1] *= 50  # one outlier that the first 16 features do not see
    return {
        "16 of 256 features, all alike": abs(size(even) - 1) < 0.05,
        "an outlier among the others": size(loud) < 2,
    }
