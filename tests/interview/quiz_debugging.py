"""The keys of the quiz on debugging: each bug is planted and observed."""

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from snippets.qk_norm.rope import rotate
from snippets.rms_norm.reference import rms_norm
from snippets.transformer_block.decoder import Decoder, Sizes
from snippets.transformer_block.first_difference import first_difference
from snippets.transformer_block.norm_calls import norm_calls


def _decoder() -> tuple[Decoder, Tensor]:
    torch.manual_seed(0)
    model = Decoder(Sizes(32, 2, 4, 2, 8, 64, 50))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3) if parameter.ndim > 1 else parameter.uniform_(0.5, 1.5)
    return model, torch.randint(50, (2, 12))


def final_norm_forgotten() -> dict[str, bool]:
    torch.manual_seed(0)
    stream, head = 5 * torch.randn(100, 16), torch.randn(50, 16)
    right = F.linear(rms_norm(stream, torch.full((16,), 2.0)), head)
    wrong = F.linear(stream, head)  # no norm, no gain
    same_words = torch.equal(right.argmax(-1), wrong.argmax(-1))
    same_odds = torch.allclose(right.softmax(-1), wrong.softmax(-1), atol=1e-3)
    return {
        "nothing": same_words and same_odds,
        "probabilities": same_words and not same_odds,
        "words": not same_words,
        "nan": bool(wrong.softmax(-1).isnan().any()),
    }


def offsets_of_zero_read_as_gains() -> dict[str, bool]:
    model, tokens = _decoder()
    before = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).item()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("gain"):
                parameter.zero_()
    after = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).item()
    return {
        "uniform": abs(after - math.log(50)) < 1e-5,
        "nan": math.isnan(after),
        "unchanged": abs(after - before) < 1e-5,
        "zero": abs(after) < 1e-5,
    }


def one_sequence_in_batchnorm() -> dict[str, bool]:
    torch.manual_seed(0)
    norm, x = nn.BatchNorm1d(8), 3 + torch.randn(1, 8, 16)
    try:
        y = norm(x)
    except ValueError:
        y = None
    positions = F.layer_norm(x, (16,))  # each channel over its positions
    stored = nn.BatchNorm1d(8).eval()(x)
    return {
        "error": y is None,
        "positions": y is not None and torch.allclose(y, positions, atol=1e-4),
        "stored": y is not None and torch.allclose(y, stored, atol=1e-4),
        "zeros": y is not None and bool((y.abs() < 1e-4).all()),
    }


def padding_row_behind_the_root() -> dict[str, bool]:
    torch.manual_seed(0)
    weight = torch.randn(4, 4, requires_grad=True)
    x = torch.randn(3, 4)
    x[2] = 0  # padding
    h = x @ weight
    y = h / (h.square().mean(-1, keepdim=True).sqrt() + 1e-6)
    (y.square() * torch.tensor([[1.0], [1.0], [0.0]])).sum().backward()
    clean = torch.autograd.grad(rms_norm(x[:2] @ weight).square().sum(), weight)[0]
    return {
        "as-without": torch.allclose(weight.grad, clean, atol=1e-4),
        "zero": bool((weight.grad == 0).all()),
        "infinite": bool(weight.grad.isinf().any()),
        "nan": bool(weight.grad.isnan().all()),
    }


def caller_whose_tensor_changes() -> dict[str, bool]:
    def norm_in_place(x: Tensor) -> Tensor:
        wide = x.float()
        wide.mul_(torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6))
        return wide.to(x.dtype)

    def changes(dtype: torch.dtype) -> bool:
        x = torch.tensor([1.0, 2.0, 4.0], dtype=dtype)
        before = x.clone()
        norm_in_place(x)
        return not torch.equal(x, before)

    narrow, wide = changes(torch.bfloat16), changes(torch.float32)
    found = (narrow, wide)
    return {
        "bfloat16": found == (True, False),
        "float32": found == (False, True),
        "both": found == (True, True),
        "neither": found == (False, False),
    }


def first_norm_that_disagrees() -> dict[str, bool]:
    model, tokens = _decoder()
    expected = norm_calls(model, tokens)

    def accuses(part: str) -> bool:
        """Is the feed-forward norm of block 1 the first to read something else?"""
        port = copy.deepcopy(model)
        with torch.no_grad():
            port.get_parameter(part).mul_(1.5)
        found = first_difference(expected, norm_calls(port, tokens))
        return found.startswith("blocks.1.ffn_norm: input")

    return {
        "feed-forward-before": accuses("blocks.0.ffn.down.weight"),
        "attention-norm": accuses("blocks.1.attention_norm.gain"),
        "attention": accuses("blocks.1.attention.out.weight"),
        "feed-forward-norm": accuses("blocks.1.ffn_norm.gain"),
    }


def test_that_finds_a_statistic_over_time() -> dict[str, bool]:
    torch.manual_seed(0)
    x = torch.randn(2, 6, 16)

    def wrong(x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean((-2, -1), keepdim=True) + 1e-6)

    def catches(test) -> bool:
        return test(rms_norm) and not test(wrong)

    def future_is_hidden(norm) -> bool:
        other = x.clone()
        other[:, -1] *= 10
        return torch.allclose(norm(x)[:, :-1], norm(other)[:, :-1])

    return {
        "shape": catches(lambda norm: norm(x).shape == x.shape),
        "size": catches(lambda norm: abs(norm(x).square().mean() - 1) < 1e-3),
        "one-token": catches(
            lambda norm: torch.allclose(norm(x[:, :1]), rms_norm(x[:, :1]))
        ),
        "last-token": catches(future_is_hidden),
    }


def one_infinite_feature() -> dict[str, bool]:
    x = torch.tensor([[300.0, 1.0, -2.0, 3.0]], dtype=torch.float16)
    x[0, 0] *= x[0, 0].clone()  # 90000 lies beyond float16
    assert x.isinf().tolist() == [[True, False, False, False]]
    y = rms_norm(x)[0]  # widens to float32 before it squares
    first, others = y[0], y[1:]
    return {
        "nan-everywhere": bool(y.isnan().all()),
        "nan-and-zeros": bool(first.isnan() and (others == 0).all()),
        "infinite": bool(first.isinf() and torch.equal(others, x[0, 1:])),
        "finite": bool(y.isfinite().all()),
    }


def common_shift_of_the_logits() -> dict[str, bool]:
    torch.manual_seed(0)
    logits, target = torch.randn(20, 50).double(), torch.arange(20)
    moved = logits + 10
    loss = F.cross_entropy(moved, target) - F.cross_entropy(logits, target)
    level = moved.logsumexp(-1) - logits.logsumexp(-1)
    surer = moved.softmax(-1).amax(-1) - logits.softmax(-1).amax(-1)
    return {
        "loss": abs(loss.item() - 10) < 1e-6,
        "level": bool(((level - 10).abs() < 1e-6).all()) and abs(loss.item()) < 1e-6,
        "surer": bool((surer > 1e-3).all()),
        "nothing": bool((level.abs() < 1e-6).all()),
    }


def checkpoint_with_other_norm_names() -> dict[str, bool]:
    trained, tokens = _decoder()
    renamed = {
        name.replace("norm.gain", "ln.gain"): value
        for name, value in trained.state_dict().items()
    }
    torch.manual_seed(1)
    fresh = Decoder(Sizes(32, 2, 4, 2, 8, 64, 50))
    before = copy.deepcopy(fresh)
    assert fresh.load_state_dict(renamed, strict=False).missing_keys
    no_gains = copy.deepcopy(trained)
    zeros = copy.deepcopy(trained)
    with torch.no_grad():
        for name, parameter in no_gains.named_parameters():
            if name.endswith("gain"):
                parameter.fill_(1)
                zeros.get_parameter(name).zero_()
    models = {"trained": trained, "ones": no_gains, "zeros": zeros, "random": before}
    with torch.no_grad():
        found = fresh(tokens)
        return {
            name: torch.allclose(found, model(tokens), atol=1e-5)
            for name, model in models.items()
        }


def swapped_gains_of_queries_and_keys() -> dict[str, bool]:
    torch.manual_seed(0)
    q, k = torch.randn(2, 7, 16, dtype=torch.float64)

    def agree(q_gain: Tensor, k_gain: Tensor) -> bool:
        def logits(q_gain: Tensor, k_gain: Tensor) -> Tensor:
            return rotate(rms_norm(q, q_gain)) @ rotate(rms_norm(k, k_gain)).mT

        original, port = logits(q_gain, k_gain), logits(k_gain, q_gain)
        assert torch.allclose(original.diagonal(), port.diagonal())  # distance zero
        return torch.allclose(original, port)

    fresh = agree(torch.ones(16).double(), torch.ones(16).double())
    trained = agree(*(0.5 + torch.rand(2, 16, dtype=torch.float64)))
    return {
        "both-differ": not fresh and not trained,
        "both-agree": fresh and trained,
        "trained": fresh and not trained,
        "fresh": trained and not fresh,
    }


def epsilon_ten_times_too_large() -> dict[str, bool]:
    torch.manual_seed(0)
    model = Decoder(Sizes(64, 4, 4, 2, 16, 128, 50))
    with torch.no_grad():
        for parameter in model.blocks.parameters():
            if parameter.ndim > 1:
                parameter.mul_(3)  # the stream grows from block to block
    calls = norm_calls(model, torch.randint(50, (2, 12)))
    sizes = [call.x.square().mean().sqrt().item() for call in calls]
    assert abs(sizes[0] - 0.02) < 0.002
    assert sizes == sorted(sizes)
    errors = []
    for call in calls:
        right, port = (rms_norm(call.x, eps=eps) for eps in (1e-6, 1e-5))
        errors.append(((port - right).norm() / right.norm()).item())
    assert [calls[0].name, calls[-1].name] == ["blocks.0.attention_norm", "norm"]
    worst = errors.index(max(errors))
    return {
        "first": worst == 0 and max(errors) > 2 * errors[-1],
        "last": worst == len(errors) - 1,
        "equal": max(errors) < 1.01 * min(errors),
        "none": max(errors) < 1e-3,
    }


def norm_under_no_grad() -> dict[str, bool]:
    model, tokens = _decoder()
    for block in model.blocks:
        norm = block.attention_norm
        norm.forward = torch.no_grad()(norm.forward)
    F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
    missing = {name for name, p in model.named_parameters() if p.grad is None}
    names = dict(model.named_parameters())
    return {
        "gains": missing == {n for n in names if n.endswith("attention_norm.gain")},
        "attention": {n for n in names if ".attention." in n} <= missing,
        "earlier": "embedding.weight" in missing,
        "none": not missing,
    }
