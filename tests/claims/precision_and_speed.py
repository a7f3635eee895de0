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


def rms_norm_is_almost_eight_times_faster():
    # Of the record behind the page: for each shape, the seconds of each norm.
    def factors(provider):
        shapes = measured_on_a_cpu().values()
        return [seconds[provider] / seconds["rms norm by hand"] for seconds in shapes]

    by_hand = factors("layer norm by hand")
    plain, fused = factors("layer norm by hand, no var"), factors("nn.LayerNorm")
    assert min(by_hand) < 2 and max(by_hand) > 10  # a factor belongs to a shape
    assert max(plain) < 3 and max(fused) < 1
    return {
        "by hand, at every shape": all(7 < factor < 9 for factor in by_hand),
        "by hand without x.var, at any": any(7 < factor < 9 for factor in plain),
        "against nn.LayerNorm, at any": any(7 < factor < 9 for factor in fused),
    }


def nn_rms_norm_is_faster_than_nn_layer_norm():
    # Of the record behind the page: for each shape, the seconds of each norm.
    return {
        f"on the CPU measured, shape {case}": seconds["nn.RMSNorm"]
        < seconds["nn.LayerNorm"]
        for case, seconds in measured_on_a_cpu().items()
    }


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
    for found in (mean, welford):
        assert abs(found - x.mean()) < 1e-9
    for found in (variance, squares / 512):
        assert abs(found - x.var(correction=0)) < 1e-9
    assert abs(square / x.square().mean() - 1) < 1e-12

    def waits_for_the_last_input(norm):  # with its first output
        last_changed = torch.cat([x[:-1], x[-1:] + 100])
        return norm(last_changed, (512,))[0] != norm(x, (512,))[0]

    assert waits_for_the_last_input(F.layer_norm)
    return {
        "LayerNorm line by line reads twice": read["line by line"] == 2 * 512,
        "LayerNorm with Welford's update too": read["Welford"] > 512,
        "RMSNorm reads once": read["RMSNorm"] == 512,
        "RMSNorm can write at once": not waits_for_the_last_input(F.rms_norm),
    }


def rms_norm_moves_fewer_bytes():
    def size(*tensors):
        return sum(t.numel() * t.element_size() for t in tensors)

    x, gain = random_tokens(1024, 4096), torch.ones(4096)
    bias = torch.zeros(4096)
    layer = size(x, gain, bias, *torch.native_layer_norm(x, (4096,), gain, bias, 1e-6))
    rms = size(x, gain, *torch.ops.aten._fused_rms_norm(x, [4096], gain, 1e-6))
    assert layer > rms
    return {"fused, 1024 rows of 4096, over 0.1 %": layer / rms - 1 > 0.001}


def norms_are_bound_by_memory():
    bytes_moved = bytes_per_element(FUSED_NORM, "bfloat16")  # read x, write y
    rates = {"H100": 3.35e12, "H200": 4.8e12}  # bytes a second, datasheets
    most = 67e12  # float32 operations a second of both
    assert [round(most / rate) for rate in rates.values()] == [20, 14]
    launch = 5.7e-6  # of a Triton kernel, as TritonBench reports
    cases = {}
    for rows in (1, 65_536):
        for name, operations in {"RMSNorm": 4, "LayerNorm": 7}.items():
            assert 1 <= operations / bytes_moved < 2
            compute = rows * 4096 * operations / most
            for device, rate in rates.items():
                memory = rows * 4096 * bytes_moved / rate
                case = f"{name}, {rows} x 4096, {device}"
                cases[case] = memory > max(compute, launch)
    return cases


def rms_norm_cuts_compute_by_15_to_30_percent():
    with torch.device("meta"):
        model = LlamaForCausalLM(LlamaConfig())  # 7B
    d, matmul = 4096, 0
    for module in model.modules():
        if isinstance(module, nn.Linear):
            matmul += 2 * module.weight.numel()  # FLOP a token
    layer_norm, rms_norm_flops = 65 * 7 * d, 65 * 4 * d
    assert layer_norm / matmul < 0.00015
    saved = (layer_norm - rms_norm_flops) / matmul
    return {"Llama-7B, saved of its linear layers' FLOPs": saved > 0.0001}  # not 0.15


def rms_norm_speeds_inference_up_by_10_to_40_percent():
    def speed_up(share, factor):  # share: of the time spent in norms
        return 1 / (1 - share + share / factor)

    free = float("inf")  # a norm that costs nothing
    assert speed_up(0.05, free) < 1.06
    assert speed_up(0.28, free) < 1.40
    return {
        f"norms that take {share:.0%}, replaced by free ones": (
            1.10 <= speed_up(share, free) <= 1.40
        )
        for share in (0.05, 0.09, 0.28)
    }


def the_choice_of_norm_matters_more_than_fusing():
    fused = bytes_per_element(FUSED_NORM)  # LayerNorm and RMSNorm alike
    rms, layer = bytes_per_element(HAND_RMS_NORM), bytes_per_element(HAND_LAYER_NORM)
    assert (rms, layer) == (9 * fused, 5 * fused)
    apart, fused_add = (
        bytes_per_element(ADD_THEN_NORM),
        bytes_per_element(FUSED_ADD_NORM),
    )
    assert apart / fused_add == 1.25
    return {
        "by hand in bfloat16, RMSNorm moves less": rms < layer,
        "fusing it saves less than choosing": rms - fused < abs(layer - rms),
        "fusing the addition saves a detail": 1 - fused_add / apart < 0.1,
    }


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
    return {f"in {dtype}": rms < layer for dtype, (rms, layer) in moved.items()}


def squaring_300_overflows_float16():
    assert torch.finfo(torch.float16).max == 65504
    values = torch.tensor([255.875, 256.0, 300.0], dtype=torch.float16)
    *limit, overflows = values.square().isinf().tolist()
    assert limit == [False, True]
    return {"300 in float16": overflows}


def overflow_in_rms_norm_gives_nan():
    x = random_tokens(3, 64).half()
    x[1, 0] = 300
    x.requires_grad_()
    y = rms_norm_naive(x, torch.ones(64).half(), eps=1e-6)  # no upcast
    (gradient,) = torch.autograd.grad(y.float().square().sum(), x)
    assert (y[1] == 0).all() and (gradient[1] == 0).all()
    assert (y[[0, 2]] != 0).all()  # the other rows do not notice
    infinite = x.detach() * float("inf")
    assert rms_norm_naive(infinite, torch.ones(64).half(), 1e-6).isnan().all()
    return {
        "a feature of 300, the output": y.isnan().any(),
        "a feature of 300, the gradient": gradient.isnan().any(),
    }


def the_sum_of_squares_is_what_overflows():
    squares = torch.full((4096,), 200.0, dtype=torch.float16).square()
    assert squares.isfinite().all()
    mean = squares.mean()  # torch adds in float32, then divides
    assert mean == 40_000
    return {
        "4096 squares of 200, the sum in float16": squares.sum().isinf(),
        "4096 squares of 200, PyTorch's mean": mean.isinf(),
    }


def a_tiny_epsilon_prevents_division_by_zero():
    eps = torch.tensor([1e-6, 1e-8, 1e-12])
    assert (eps.half() == 0).tolist() == [False, True, True]
    zero = torch.zeros(1, 8)
    one = torch.ones(8)
    y = {
        "1e-12 added in float32": rms_norm(zero.half(), eps=1e-12),
        "1e-12 added in bfloat16": rms_norm_naive(
            zero.bfloat16(), one.bfloat16(), 1e-12
        ),
        "1e-12 added in float16": rms_norm_naive(zero.half(), one.half(), eps=1e-12),
    }
    assert y["1e-12 added in float16"].isnan().all()
    return {where: (row == 0).all() for where, row in y.items()}


def type_as_keeps_the_dtype():
    def norm(x, weight):
        wide = x.float()
        normed = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
        return weight * normed.type_as(x)

    x, gain = random_tokens(4, 64).bfloat16(), torch.ones(64)
    assert rms_norm(x, gain).dtype == torch.bfloat16  # cast comes last
    return {
        "bfloat16 input and weight": norm(x, gain.bfloat16()).dtype == torch.bfloat16,
        "float32 weight": norm(x, gain).dtype == torch.bfloat16,  # mixed precision
    }


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
    ratio = error(llama(x)) / error(gemma(x))
    assert ratio < 1.5  # about the root of 2
    other = (llama(x) != gemma(x)).float().mean()
    llama.weight.data, gemma.weight.data = torch.ones_like(gain), 0 * offset
    return {
        "gain one, the outputs": torch.equal(llama(x), gemma(x)),
        "other gains, the outputs": other < 0.2,
        "other gains, the error": ratio < 1.3,
    }


def llama_rms_norm_is_t5_layer_norm():
    x, gain = random_tokens(64, 256).bfloat16(), 1 + random_tokens(256, seed=1) / 4
    llama, t5 = LlamaRMSNorm(256, eps=1e-6), T5LayerNorm(256, eps=1e-6)
    cases = {}
    for dtype in (torch.bfloat16, torch.float32):  # the last as in mixed precision
        llama.weight.data = t5.weight.data = gain.to(dtype)
        cases[f"bfloat16 input, gain in {dtype}"] = torch.equal(llama(x), t5(x))
    wide = rms_norm(x.float(), gain, 1e-6)
    torch.testing.assert_close(t5(x), wide)  # T5 rounds nowhere
    return cases


def bfloat16_underflows_in_rms_norm():
    faint, large = torch.tensor([1e-4, 300.0]).bfloat16()
    assert faint.half().square() == 0 and large.half().square().isinf()
    assert torch.finfo(torch.bfloat16).eps == 8 * torch.finfo(torch.float16).eps
    return {
        "the square of 1e-4 underflows": faint.square() == 0,
        "the square of 300 overflows": large.square().isinf(),
    }


def bfloat16_makes_the_upcast_unnecessary():
    x, gain = random_tokens(256, 512).bfloat16(), torch.ones(512).bfloat16()
    cases = {}
    for scale in (1e-4, 1.0, 1e4):
        row = x * scale
        exact = rms_norm(row.double(), eps=1e-12)

        def error(y, exact=exact):
            return ((y.double() - exact).norm() / exact.norm()).item()

        naive, upcast = rms_norm_naive(row, gain, 1e-12), rms_norm(row, eps=1e-12)
        cases[f"range, at an RMS of {scale:g}"] = error(naive) < 0.01
        cases[f"accuracy, at {scale:g}"] = error(naive) < 1.3 * error(upcast)
    return cases


def rms_norm_is_safer_than_layer_norm_in_half_precision():
    def layer_norm_naive(x):
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()

    one = torch.ones(64).half()
    x = random_tokens(3, 64).half()
    x[1, 0] = 400
    shifted = (300 + random_tokens(3, 64)).half()
    large = rms_norm_naive(x, one, 1e-5)[1], layer_norm_naive(x)[1]
    mean = rms_norm_naive(shifted, one, 1e-5), layer_norm_naive(shifted)
    wide = F.rms_norm(x, (64,), eps=1e-5)[1], F.layer_norm(x, (64,), eps=1e-5)[1]
    assert not large[1].any() and 0.9 < mean[1].float().std() < 1.1
    assert wide[0].any()
    return {
        "in float16, a feature of 400: RMSNorm survives": large[0].any(),
        "in float16, a mean of 300: RMSNorm survives": mean[0].any(),
        "in float32, a feature of 400: LayerNorm fails": not wide[1].any(),
    }


def default_epsilon_follows_the_dtype():
    cases = {}
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        row = torch.full((8,), 2.0**-10, dtype=dtype)
        y = F.rms_norm(row, (8,))[0].item()
        used = (2.0**-10 / y) ** 2 - 2.0**-20  # y = x / sqrt(x² + eps)
        assert abs(used / torch.finfo(torch.float32).eps - 1) < 0.2
        cases[f"{dtype}"] = abs(used / torch.finfo(dtype).eps - 1) < 0.2
    return cases


def one_epsilon_is_as_good_as_another():
    def ratio(size):  # of the outputs for the two, at an input of that RMS
        row = torch.full((8,), size, dtype=torch.float64)
        small, large = (rms_norm(row, eps=eps)[0] for eps in (1e-6, 1e-5))
        return small / large

    assert ratio(1.0) > 1 and ratio(0.01) < 1.05
    return {
        "an RMS of 1": ratio(1.0) < 1 + 1e-5,
        "an RMS of 0.01": ratio(0.01) < 1.04,
        "an RMS of 0.001": ratio(0.001) < 2,
    }


def float32_rms_norm_cannot_overflow():
    assert 3.4e38 < torch.finfo(torch.float32).max < 3.41e38
    cases = {}
    for size in (1.8e19, 1.9e19, 1e20):
        x = torch.zeros(1, 8)
        x[0, 0] = size
        exact = rms_norm(x.double()).float()
        y, theirs = rms_norm(x), F.rms_norm(x, (8,), eps=1e-6)
        assert x.square().isinf().any() == (size > 1.8e19)
        assert (y == 0).all() == (theirs == 0).all() == (size > 1.8e19)
        cases[f"a feature of {size:g}"] = torch.allclose(y, exact)
    return cases


def a_bfloat16_accumulator_is_enough():
    total = torch.zeros((), dtype=torch.bfloat16)
    ones = torch.ones(4096, dtype=torch.bfloat16)
    for one in ones:  # a kernel that keeps its sum in bfloat16
        total = total + one
    assert ones.sum() == 4096  # torch adds in float32 and rounds once
    return {"the sum of 4096 ones": total > 256}


def one_plus_offset_may_be_added_in_bfloat16():
    offset = torch.tensor([2.0**-8, 15.8125]).bfloat16()
    right = (1 + offset.float()).tolist()
    assert right == [1.00390625, 16.8125]
    gain = (1 + offset).tolist()
    assert gain == [1.0, 16.75]
    return {
        "an offset of 1/256": gain[0] == right[0],
        "an offset of 15.8125": gain[1] == right[1],
    }


def a_high_correlation_proves_a_kernel_right():
    x, total = random_tokens(4096), torch.zeros((), dtype=torch.bfloat16)
    for square in x.square().bfloat16():  # a kernel whose sum stalls
        total = total + square
    wrong, right = x / (total.float() / 4096).sqrt(), rms_norm(x)
    assert torch.corrcoef(torch.stack([wrong, right]))[0, 1] > 0.9999
    return {"a sum that stalls in bfloat16": wrong.norm() / right.norm() < 1.4}
