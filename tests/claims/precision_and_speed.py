"""The claims about number formats, cost and time, decided."""

import statistics
from collections import Counter

import torch
from torch import nn
from torch.nn import functional as F
from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaForCausalLM, LlamaRMSNorm
from transformers.models.t5.modeling_t5 import T5LayerNorm

from scripts.measure import records
from snippets.low_precision.naive import rms_norm_naive
from snippets.rms_norm.reference import rms_norm
from snippets.speed.byte_count import (
    ADD_THEN_NORM,
    FUSED_ADD_NORM,
    FUSED_NORM,
    HAND_LAYER_NORM,
    HAND_RMS_NORM,
    bytes_per_element,
)


def random_tokens(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator)


def measured_on_a_cpu():
    """case -> provider -> seconds: forward, float32, freed memory kept."""
    record = records.find("norm_speed_cpu")[0]  # whose facts the pages show
    found = {}
    for row in record.rows:
        if (row["mode"], row["dtype"], row["freed"]) == ("forward", "float32", "kept"):
            seconds = statistics.median(row["seconds"])
            found.setdefault(row["case"], {})[row["provider"]] = seconds
    return found


# verdict: wrong
def rms_norm_is_almost_eight_times_faster():
    # Of the record behind the page: for each shape, the seconds of each norm.
    shapes = measured_on_a_cpu().values()
    by_hand = [s["layer norm by hand"] / s["rms norm by hand"] for s in shapes]
    assert min(by_hand) < 2 and max(by_hand) > 10  # a factor belongs to a shape
    for seconds in shapes:
        no_var = seconds["layer norm by hand, no var"] / seconds["rms norm by hand"]
        assert no_var < 3
        assert seconds["nn.LayerNorm"] < seconds["rms norm by hand"]


# verdict: open
def nn_rms_norm_is_faster_than_nn_layer_norm():
    # Of the record behind the page: for each shape, the seconds of each norm.
    for seconds in measured_on_a_cpu().values():
        assert seconds["nn.RMSNorm"] > seconds["nn.LayerNorm"]


# verdict: holds-when
def layer_norm_needs_two_passes_and_rms_norm_one():
    x = 1000 + random_tokens(512).double()
    read = Counter()

    def one_by_one(norm):
        for value in x.tolist():
            read[norm] += 1
            yield value

    mean = sum(one_by_one("line by line")) / 512
    variance = sum((v - mean) ** 2 for v in one_by_one("line by line")) / 512
    welford = squares = 0.0
    for count, value in enumerate(one_by_one("Welford"), start=1):
        before = value - welford
        welford += before / count
        squares += before * (value - welford)
    square = sum(v * v for v in one_by_one("RMSNorm")) / 512
    assert read == {"line by line": 2 * 512, "Welford": 512, "RMSNorm": 512}
    for found in (mean, welford):
        assert abs(found - x.mean()) < 1e-9
    for found in (variance, squares / 512):
        assert abs(found - x.var(correction=0)) < 1e-9
    assert abs(square / x.square().mean() - 1) < 1e-12
    # Neither norm can write its first output before it has read the last input.
    for norm in (F.layer_norm, F.rms_norm):
        last_changed = torch.cat([x[:-1], x[-1:] + 100])
        assert norm(last_changed, (512,))[0] != norm(x, (512,))[0]


# verdict: wrong
def rms_norm_moves_fewer_bytes():
    def size(*tensors):
        return sum(t.numel() * t.element_size() for t in tensors)

    x, gain = random_tokens(1024, 4096), torch.ones(4096)
    bias = torch.zeros(4096)
    layer = size(x, gain, bias, *torch.native_layer_norm(x, (4096,), gain, bias, 1e-6))
    rms = size(x, gain, *torch.ops.aten._fused_rms_norm(x, [4096], gain, 1e-6))
    assert 0 < layer / rms - 1 < 0.001


# verdict: holds-when
def norms_are_bound_by_memory():
    bytes_moved = bytes_per_element(FUSED_NORM, "bfloat16")  # read x, write y
    ridges = [67e12 / 3.35e12, 67e12 / 4.8e12]  # H100, H200: float32, datasheets
    assert [round(ridge) for ridge in ridges] == [20, 14]
    for operations in (4, 7):  # RMSNorm, LayerNorm, for each element
        assert 1 <= operations / bytes_moved < 2


# verdict: wrong
def rms_norm_cuts_compute_by_15_to_30_percent():
    with torch.device("meta"):
        model = LlamaForCausalLM(LlamaConfig())  # 7B
    d, matmul = 4096, 0
    for module in model.modules():
        if isinstance(module, nn.Linear):
            matmul += 2 * module.weight.numel()  # FLOP a token
    layer_norm, rms_norm_flops = 65 * 7 * d, 65 * 4 * d
    assert layer_norm / matmul < 0.00015
    assert (layer_norm - rms_norm_flops) / matmul < 0.0001  # not 0.15


# verdict: open
def rms_norm_speeds_inference_up_by_10_to_40_percent():
    def speed_up(share, factor):  # share: of the time spent in norms
        return 1 / (1 - share + share / factor)

    free = float("inf")  # a norm that costs nothing
    assert speed_up(0.05, free) < 1.06
    assert speed_up(0.09, free) < 1.10 and speed_up(0.28, free) < 1.40


# verdict: open
def the_choice_of_norm_matters_more_than_fusing():
    fused = bytes_per_element(FUSED_NORM)  # LayerNorm and RMSNorm alike
    assert bytes_per_element(HAND_RMS_NORM) == 9 * fused
    assert bytes_per_element(HAND_LAYER_NORM) == 5 * fused
    fused_add = bytes_per_element(FUSED_ADD_NORM)
    assert bytes_per_element(ADD_THEN_NORM) / fused_add == 1.25


# verdict: holds-when
def rms_norm_by_hand_moves_less_memory():
    moved = {
        dtype: (
            bytes_per_element(HAND_RMS_NORM, dtype),
            bytes_per_element(HAND_LAYER_NORM, dtype),
        )
        for dtype in ("float32", "bfloat16")
    }
    assert moved["float32"] == (28, 40)
    assert moved["bfloat16"] == (36, 20)  # the upcast is written out


# verdict: holds
def squaring_300_overflows_float16():
    largest = torch.finfo(torch.float16).max
    assert largest == 65504
    values = torch.tensor([255.875, 256.0, 300.0], dtype=torch.float16)
    assert values.square().isfinite().tolist() == [True, False, False]


# verdict: wrong
def overflow_in_rms_norm_gives_nan():
    x = random_tokens(3, 64).half()
    x[1, 0] = 300
    x.requires_grad_()
    y = rms_norm_naive(x, torch.ones(64).half(), eps=1e-6)  # no upcast
    (gradient,) = torch.autograd.grad(y.float().square().sum(), x)
    assert not y.isnan().any() and not gradient.isnan().any()
    assert (y[1] == 0).all() and (gradient[1] == 0).all()
    assert (y[[0, 2]] != 0).all()  # the other rows do not notice
    infinite = x.detach() * float("inf")
    assert rms_norm_naive(infinite, torch.ones(64).half(), 1e-6).isnan().all()


# verdict: holds-when
def the_sum_of_squares_is_what_overflows():
    squares = torch.full((4096,), 200.0, dtype=torch.float16).square()
    assert squares.isfinite().all() and squares.sum().isinf()
    assert squares.mean() == 40_000  # torch adds in float32, then divides


# verdict: holds-when
def a_tiny_epsilon_prevents_division_by_zero():
    eps = torch.tensor([1e-6, 1e-8, 1e-12])
    assert (eps.half() == 0).tolist() == [False, True, True]
    zero = torch.zeros(1, 8)
    one = torch.ones(8)
    assert rms_norm_naive(zero.half(), one.half(), eps=1e-12).isnan().all()
    assert (rms_norm(zero.half(), eps=1e-12) == 0).all()  # added in float32
    assert (rms_norm_naive(zero.bfloat16(), one.bfloat16(), 1e-12) == 0).all()


# verdict: holds-when
def type_as_keeps_the_dtype():
    def norm(x, weight):
        wide = x.float()
        normed = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
        return weight * normed.type_as(x)

    x = random_tokens(4, 64).bfloat16()
    assert norm(x, torch.ones(64).bfloat16()).dtype == torch.bfloat16
    assert norm(x, torch.ones(64)).dtype == torch.float32  # as in mixed precision
    assert rms_norm(x, torch.ones(64)).dtype == torch.bfloat16  # cast comes last


# verdict: wrong
def the_order_of_cast_and_gain_does_not_matter():
    x = random_tokens(256, 512).bfloat16()
    gain = (
        0.5 + torch.rand(512, generator=torch.Generator().manual_seed(1))
    ).bfloat16()
    offset = gain - 1  # exact here
    llama, gemma = LlamaRMSNorm(512, eps=1e-6), GemmaRMSNorm(512, eps=1e-6)
    llama.weight.data, gemma.weight.data = gain, offset
    exact = rms_norm(x.double(), gain.double(), 1e-6)

    def error(y):
        return (y.double() - exact).norm() / exact.norm()

    assert (offset.float() + 1 == gain.float()).all()
    assert (llama(x) != gemma(x)).float().mean() > 0.2
    assert 1.3 < error(llama(x)) / error(gemma(x)) < 1.5  # about the root of 2


# verdict: holds-when
def llama_rms_norm_is_t5_layer_norm():
    x, gain = random_tokens(64, 256).bfloat16(), 1 + random_tokens(256, seed=1) / 4
    llama, t5 = LlamaRMSNorm(256, eps=1e-6), T5LayerNorm(256, eps=1e-6)
    llama.weight.data = t5.weight.data = gain.bfloat16()
    assert torch.equal(llama(x), t5(x))
    llama.weight.data = t5.weight.data = gain  # float32, as in mixed precision
    assert not torch.equal(llama(x), t5(x))
    wide = rms_norm(x.float(), gain, 1e-6)
    torch.testing.assert_close(t5(x), wide)  # T5 rounds nowhere


# verdict: wrong
def bfloat16_underflows_in_rms_norm():
    faint, large = torch.tensor([1e-4, 300.0]).bfloat16()
    assert faint.square() > 0 and large.square().isfinite()
    assert faint.half().square() == 0 and large.half().square().isinf()
    assert torch.finfo(torch.bfloat16).eps == 8 * torch.finfo(torch.float16).eps


# verdict: holds-when
def bfloat16_makes_the_upcast_unnecessary():
    x, gain = random_tokens(256, 512).bfloat16(), torch.ones(512).bfloat16()
    for scale in (1e-4, 1.0, 1e4):
        row = x * scale
        exact = rms_norm(row.double(), eps=1e-12)

        def error(y, exact=exact):
            return ((y.double() - exact).norm() / exact.norm()).item()

        naive = error(rms_norm_naive(row, gain, 1e-12))
        assert 1.3 * error(rms_norm(row, eps=1e-12)) < naive < 0.01


# verdict: wrong
def rms_norm_is_safer_than_layer_norm_in_half_precision():
    def layer_norm_naive(x):
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()

    x = random_tokens(3, 64).half()
    x[1, 0] = 400
    assert (rms_norm_naive(x, torch.ones(64).half(), 1e-5)[1] == 0).all()
    assert (layer_norm_naive(x)[1] == 0).all()  # the same failure
    shifted = (300 + random_tokens(3, 64)).half()
    assert (rms_norm_naive(shifted, torch.ones(64).half(), 1e-5) == 0).all()
    assert 0.9 < layer_norm_naive(shifted).float().std() < 1.1
    for norm in (F.rms_norm, F.layer_norm):
        assert (norm(x, (64,), eps=1e-5)[1] != 0).any()  # the same cure: float32


# verdict: holds-when
def default_epsilon_follows_the_dtype():
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        row = torch.full((8,), 2.0**-10, dtype=dtype)
        y = F.rms_norm(row, (8,))[0].item()
        used = (2.0**-10 / y) ** 2 - 2.0**-20  # y = x / sqrt(x² + eps)
        assert abs(used / torch.finfo(torch.float32).eps - 1) < 0.2
        own = torch.finfo(dtype).eps
        assert dtype == torch.float32 or own > 1000 * used


# verdict: holds-when
def one_epsilon_is_as_good_as_another():
    def ratio(size):  # of the outputs for the two, at an input of that RMS
        row = torch.full((8,), size, dtype=torch.float64)
        small, large = (rms_norm(row, eps=eps)[0] for eps in (1e-6, 1e-5))
        return small / large

    assert 1 < ratio(1.0) < 1 + 1e-5
    assert 1.04 < ratio(0.01) < 1.05
    assert ratio(0.001) > 2


# verdict: holds-when
def float32_rms_norm_cannot_overflow():
    x = torch.full((1, 8), 1e20)
    assert x.isfinite().all() and x.square().isinf().all()
    assert 3.4e38 < torch.finfo(torch.float32).max < 3.41e38
    assert torch.tensor([1.8e19, 1.9e19]).square().isinf().tolist() == [False, True]
    assert (rms_norm(x) == 0).all()
    assert (F.rms_norm(x, (8,), eps=1e-6) == 0).all()
    torch.testing.assert_close(rms_norm(x.double()), torch.ones(1, 8).double())


# verdict: wrong
def a_bfloat16_accumulator_is_enough():
    total = torch.zeros((), dtype=torch.bfloat16)
    ones = torch.ones(4096, dtype=torch.bfloat16)
    for one in ones:  # a kernel that keeps its sum in bfloat16
        total = total + one
    assert total == 256
    assert ones.sum() == 4096  # torch adds in float32 and rounds once


# verdict: wrong
def one_plus_offset_may_be_added_in_bfloat16():
    offset = torch.tensor([2.0**-8, 15.8125]).bfloat16()
    assert (1 + offset).tolist() == [1.0, 16.75]
    assert (1 + offset.float()).tolist() == [1.00390625, 16.8125]


# verdict: wrong
def a_high_correlation_proves_a_kernel_right():
    x, total = random_tokens(4096), torch.zeros((), dtype=torch.bfloat16)
    for square in x.square().bfloat16():  # a kernel whose sum stalls
        total = total + square
    wrong, right = x / (total.float() / 4096).sqrt(), rms_norm(x)
    assert torch.corrcoef(torch.stack([wrong, right]))[0, 1] > 0.9999
    assert wrong.norm() / right.norm() > 1.4
