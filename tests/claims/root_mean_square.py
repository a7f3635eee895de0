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


# verdict: holds
def rms_norm_formula():
    x, gain, eps = random_tokens(5, 64).float(), torch.linspace(0.5, 1.5, 64), 1e-3
    formula = x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * gain
    for norm in (nn.RMSNorm(64, eps=eps), LlamaRMSNorm(64, eps=eps)):
        norm.weight.data = gain
        torch.testing.assert_close(norm(x), formula)
    assert F.rms_norm(torch.zeros(64), (64,), eps=0.0).isnan().all()


# verdict: holds-when
def two_places_of_epsilon_are_one_formula():
    eps = 1e-6
    rms = torch.tensor([1.0, 2.7e-5], dtype=torch.float64)  # an ordinary, a faint input
    inside = rms / (rms.square() + eps).sqrt()  # RMS of the output
    outside = rms / (rms + eps)
    assert abs(inside[0] - outside[0]) < 1e-5
    assert inside[1] < 0.03 and outside[1] > 0.96


# verdict: holds-when
def epsilon_must_stand_inside_the_root():
    x = random_tokens(5, 64)
    x[-1] = 0  # what epsilon is for
    x.requires_grad_()
    rms = x.norm(dim=-1, keepdim=True) / math.sqrt(64)  # as the authors' code has it
    outside = x / (rms + 1e-8)
    torch.testing.assert_close(outside[:-1], F.rms_norm(x[:-1], (64,), eps=1e-8))
    assert torch.equal(outside[-1], torch.zeros(64, dtype=torch.float64))
    (gradient,) = torch.autograd.grad(outside.square().sum(), x)
    assert gradient.isfinite().all()


# verdict: holds-when
def deep_activations_have_no_mean():
    def share(vector):  # of its energy along the all-ones direction
        return (vector.mean(-1).square() / vector.square().mean(-1)).mean()

    x, d = random_tokens(1000, 512), 512
    linear = x @ random_tokens(d, d, seed=1) / math.sqrt(d)
    assert abs(share(linear) - 1 / d) < 0.2 / d  # chance
    assert abs(share(linear.relu()) - 1 / math.pi) < 0.01


# verdict: holds-when
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
    assert (naive(text) - model(text)).abs().max() > 0.5
    torch.testing.assert_close(folded(text), model(text))


# verdict: wrong
def rms_norm_gives_unit_length():
    y = F.rms_norm(random_tokens(100, 512), (512,), eps=0.0)
    torch.testing.assert_close(y.norm(dim=-1), torch.full((100,), 512**0.5).double())
    assert y.norm(dim=-1).min() > 22.6  # not 1


# verdict: holds-when
def rms_norm_keeps_the_direction():
    x = random_tokens(100, 512).float()
    gain = 2 * torch.rand(512, generator=torch.Generator().manual_seed(1))

    def cosine(y):
        return F.cosine_similarity(x.double(), y.double(), dim=-1)

    bare, scaled = F.rms_norm(x, (512,), eps=1e-6), F.rms_norm(x, (512,), gain, 1e-6)
    assert (1 - cosine(bare)).abs().max() < 1e-9
    assert cosine(scaled).max() < 0.9


# verdict: wrong
def no_information_is_lost():
    x = random_tokens(100, 512)
    once, tenfold = (F.rms_norm(c * x, (512,), eps=0.0) for c in (1, 10))
    torch.testing.assert_close(once, tenfold, rtol=1e-12, atol=0)
    # In Pre-Norm the stream still tells the two apart.
    assert not torch.allclose(x + once, 10 * x + tenfold)


# verdict: holds-when
def rms_norm_twice_is_rms_norm_once():
    def norm(x, gain):
        return F.rms_norm(x, (64,), gain, eps=1e-6)

    x, learned = random_tokens(10, 64), random_tokens(64, seed=1).exp()
    for gain in (None, torch.full_like(learned, 3.0)):
        once = norm(x, gain)
        torch.testing.assert_close(norm(once, gain), once, rtol=1e-5, atol=0)
    once = norm(x, learned)
    assert (norm(once, learned) - once).abs().max() > 1


# verdict: holds-when
def layer_norm_keeps_the_direction():
    x = 2 + 5 * random_tokens(1000, 512)
    cosine = F.cosine_similarity(F.layer_norm(x, (512,)), x, dim=-1)
    share = x.mean(-1).square() / x.square().mean(-1)
    torch.testing.assert_close(cosine, (1 - share).sqrt())
    assert abs(cosine.mean() - 0.93) < 0.01
    stream = sum(random_tokens(1000, 512, seed=seed) for seed in range(8))
    kept = F.cosine_similarity(F.layer_norm(stream, (512,)), stream, dim=-1)
    assert kept.min() > 0.98  # a stream of random writes


# verdict: holds-when
def rms_norm_sets_the_variance_to_one():
    for mean in (0.0, 2.0):
        x = mean + 5 * random_tokens(100, 512)
        y = F.rms_norm(x, (512,), eps=0.0)
        variance = y.var(-1, correction=0)
        torch.testing.assert_close(variance, 1 - y.mean(-1).square())
        assert variance.mean() > 0.99 if mean == 0 else variance.mean() < 0.9


# verdict: wrong
def variance_in_the_code_is_the_variance():
    line = "variance = hidden_states.pow(2).mean(-1, keepdim=True)"
    assert line in inspect.getsource(LlamaRMSNorm.forward)
    x = 2 + random_tokens(10, 64)
    variance = x.pow(2).mean(-1, keepdim=True)
    assert (variance > 3 * x.var(-1, correction=0, keepdim=True)).all()
    centred = x - x.mean(-1, keepdim=True)
    torch.testing.assert_close(centred.pow(2).mean(-1), centred.var(-1, correction=0))


# verdict: holds-when
def without_a_gain_the_model_can_express_less():
    x, gain = random_tokens(10, 64), 0.5 + random_tokens(64, seed=1).abs()
    weight = random_tokens(48, 64, seed=2)  # the linear layer that reads the norm
    with_gain = F.rms_norm(x, (64,), gain, 1e-6) @ weight.T
    folded = F.rms_norm(x, (64,), None, 1e-6) @ (weight * gain).T
    torch.testing.assert_close(folded, with_gain)
    assert not list(NanoChatRMSNorm().parameters())
    bare = F.rms_norm(x, (64,), None, 0.0)  # a query and a key: nothing reads them
    gained = F.rms_norm(x, (64,), torch.full((64,), 3.0, dtype=x.dtype), 0.0)
    assert (bare @ bare.T).max() <= 64.001 < 500 < (gained @ gained.T).max()


# verdict: wrong
def one_plus_gamma_starts_as_the_identity():
    x = 2 + 5 * random_tokens(10, 64).float()
    gemma, llama = GemmaRMSNorm(64, eps=1e-6), LlamaRMSNorm(64, eps=1e-6)
    assert (gemma.weight == 0).all() and (llama.weight == 1).all()
    assert torch.equal(gemma(x), llama(x))
    assert (gemma(x) - x).norm() > 0.7 * x.norm()


# verdict: holds-when
def one_plus_gamma_is_only_notation():
    plain, offset = (nn.Parameter(value) for value in (torch.ones(8), torch.zeros(8)))
    optimizer = torch.optim.SGD([plain, offset], lr=0.1, weight_decay=0.1)
    plain.grad, offset.grad = torch.zeros(8), torch.zeros(8)  # decay acts alone
    for _ in range(200):
        optimizer.step()
    assert plain.max() < 0.14  # gain on its way to 0
    assert torch.equal(1 + offset, torch.ones(8))  # gain stays at 1


# verdict: holds-when
def rms_norm_halves_the_norm_parameters():
    def count(norm):
        return sum(p.numel() for p in norm.parameters())

    assert count(nn.RMSNorm(4096)) == 4096
    assert count(nn.LayerNorm(4096)) == 2 * 4096
    assert count(nn.LayerNorm(4096, bias=False)) == 4096


# verdict: holds-when
def llama_7b_spends_262_thousand_parameters_on_norms():
    with torch.device("meta"):
        model = LlamaForCausalLM(LlamaConfig())  # the defaults are the 7B model
    norms = [m for m in model.modules() if isinstance(m, LlamaRMSNorm)]
    assert len(norms) == 2 * 32 + 1
    assert sum(norm.weight.numel() for norm in norms[:-1]) == 262_144
    assert sum(norm.weight.numel() for norm in norms) == 266_240


# verdict: wrong
def saved_parameters_are_a_reason_for_rms_norm():
    with torch.device("meta"):
        model = LlamaForCausalLM(LlamaConfig())
    norms = [m for m in model.modules() if isinstance(m, LlamaRMSNorm)]
    saved = sum(norm.weight.numel() for norm in norms)  # biases would be as many
    total = sum(p.numel() for p in model.parameters())
    assert total == 6_738_415_616
    assert saved == 266_240 and 3.9e-5 < saved / total < 4.0e-5


# verdict: wrong
def t5_layer_norm_is_layer_norm():
    x = 2 + random_tokens(10, 64).float()
    t5 = T5LayerNorm(64, eps=1e-6)
    torch.testing.assert_close(t5(x), nn.RMSNorm(64, eps=1e-6)(x))
    layer_norm = nn.LayerNorm(64, eps=1e-6, bias=False)
    assert (t5(x) - layer_norm(x)).abs().max() > 0.5
    centred = x - x.mean(-1, keepdim=True)
    torch.testing.assert_close(t5(centred), layer_norm(x))  # what it leaves out


# verdict: wrong
def rms_norm_ignores_a_shift():
    x, d = random_tokens(10, 64), (64,)
    assert (F.layer_norm(x + 5, d) - F.layer_norm(x, d)).abs().max() < 1e-9
    assert (F.rms_norm(x + 5, d) - F.rms_norm(x, d)).abs().max() > 1


# verdict: holds-when
def rms_norm_ignores_every_rescaling():
    def norm(x):
        return F.rms_norm(x, (64,), eps=1e-6)

    x = random_tokens(10, 64)
    torch.testing.assert_close(norm(8 * x), norm(x), rtol=1e-5, atol=0)
    torch.testing.assert_close(norm(-8 * x), -norm(x), rtol=1e-5, atol=0)
    assert norm(1e-4 * x).abs().max() < 0.2 * norm(x).abs().max()  # epsilon rules


# verdict: wrong
def rms_may_run_over_the_sequence_too():
    x = random_tokens(7, 16)  # (time, features) of one sequence
    longer = x.clone()
    longer[-1] *= 10  # the last token alone
    per_token = F.rms_norm(longer, (16,)) - F.rms_norm(x, (16,))
    whole = F.rms_norm(longer, (7, 16)) - F.rms_norm(x, (7, 16))
    assert (per_token[0] == 0).all()
    assert whole[0].abs().max() > 0.5  # the first token has seen the last


# verdict: wrong
def the_root_may_be_detached():
    x, g = random_tokens(10, 64).requires_grad_(), random_tokens(10, 64, seed=1)
    rms = x.square().mean(-1, keepdim=True).sqrt()
    (full,) = torch.autograd.grad((x / rms * g).sum(), x)
    (detached,) = torch.autograd.grad((x / rms.detach() * g).sum(), x)
    # The output does not change along x, so no gradient may point there.
    assert (full * x).sum(-1).abs().max() < 1e-12
    assert (detached * x).sum(-1).abs().max() > 1


# verdict: wrong
def gradients_keep_their_size():
    def gradient(x):
        x = x.clone().requires_grad_()
        y = F.rms_norm(x, (64,), eps=0.0)
        return torch.autograd.grad((y * random_tokens(10, 64, seed=1)).sum(), x)[0]

    x = random_tokens(10, 64)
    torch.testing.assert_close(gradient(2 * x), gradient(x) / 2)
    outputs = [F.rms_norm(v, (64,), eps=0.0) for v in (x, 2 * x)]
    torch.testing.assert_close(*outputs)  # it is the output that stays


# verdict: holds-when
def some_features_estimate_the_root_as_well():
    def partial(x, count=16):
        return x / x[:, :count].square().mean(-1, keepdim=True).sqrt()

    even = random_tokens(1000, 256)
    loud = even.clone()
    loud[:, -1] *= 50  # one outlier that the first 16 features do not see
    size = [partial(x).square().mean(-1).sqrt().median() for x in (even, loud)]
    assert abs(size[0] - 1) < 0.05
    assert size[1] > 2
