"""The page's table of gradients: measured right, and what it says holds."""

import pytest
import torch

from snippets.normformer.block import Block
from snippets.normformer.parameters import NORMFORMER, PRE_LN, count
from snippets.normformer.stack import Stack, fc2_gradients, initialize

SIZES = (768, 1024, 2048, 2560)


def ratio(switches, scheme, seeds=(10, 11, 12), blocks=12):
    """First block's gradient relative to the last's, on seeds the page lacks."""
    total = 0.0
    for seed in seeds:
        torch.manual_seed(seed)
        model = Stack(blocks, 64, 4, **switches)
        initialize(model, scheme)
        total += float(fc2_gradients(model, torch.randint(100, (8, 33)))[0])
    return total / len(seeds)


def test_early_gradients_are_larger_in_pre_norm():
    assert ratio(PRE_LN, "gpt") > 1.1
    assert ratio(PRE_LN, "xavier") > 1.7


def test_normformer_does_not_level_them_at_the_start():
    assert ratio(NORMFORMER, "gpt") > 1.1
    assert ratio(NORMFORMER, "xavier") > ratio(PRE_LN, "xavier")


@pytest.mark.parametrize("scheme", ("gpt", "xavier"))
def test_the_inner_norm_alone_makes_it_steeper(scheme):
    inner = PRE_LN | {"scale_fc": True}
    assert ratio(inner, scheme) > ratio(PRE_LN, scheme)


def test_head_scales_change_nothing_at_the_start():
    logits = []
    for heads in (False, True):
        torch.manual_seed(0)
        model = Stack(2, 16, 2, **(PRE_LN | {"scale_heads": heads}))
        logits.append(model(torch.arange(12).reshape(2, 6)))
    assert torch.equal(*logits)


def test_gains_that_rise_with_depth_level_the_gradients():
    torch.manual_seed(20)
    model = Stack(12, 64, 4)
    initialize(model, "xavier")
    text = torch.randint(100, (8, 33))
    before = fc2_gradients(model, text)
    for _ in range(2):
        sizes = fc2_gradients(model, text)
        with torch.no_grad():
            for block, size in zip(model.blocks, sizes, strict=True):
                block.ffn.norm.weight.div_(size)
    after = fc2_gradients(model, text)
    assert float(before.max() / before.min()) > 2
    assert float(after.max() / after.min()) < 1.3
    gains = [block.ffn.norm.weight.detach().mean() for block in model.blocks]
    assert gains[0] < gains[5] < gains[-1]


def test_pre_norm_has_the_lever_too():
    """The control of the page's table: the gain in front of fc1."""
    torch.manual_seed(21)
    model = Stack(12, 64, 4, **PRE_LN)
    initialize(model, "xavier")
    text = torch.randint(100, (8, 33))
    before = fc2_gradients(model, text)
    for _ in range(2):
        sizes = fc2_gradients(model, text)
        with torch.no_grad():
            for block, size in zip(model.blocks, sizes, strict=True):
                block.ffn_norm.weight.div_(size)
    after = fc2_gradients(model, text)
    assert float(before.max() / before.min()) > 1.7
    assert float(after.max() / after.min()) < 1.1


def test_fc2_gradients_are_those_of_backward():
    torch.manual_seed(0)
    model = Stack(3, 16, 2)
    initialize(model, "gpt")
    text = torch.randint(100, (2, 9))
    found = fc2_gradients(model, text)
    logits = model(text[:, :-1]).log_softmax(-1)
    picked = logits.gather(-1, text[:, 1:, None])
    (-picked.mean()).backward()
    sizes = torch.stack([b.ffn.fc2.weight.grad.abs().mean() for b in model.blocks])
    assert torch.allclose(found, sizes / sizes[-1], rtol=1e-4)


def test_fc2_gradient_is_proportional_to_the_gain_in_front():
    """Of the last block, where nothing later depends on it but the head."""
    torch.manual_seed(0)
    block = Block(16, 2).double()
    x, upstream = torch.randn(2, 1, 5, 16).double()
    sizes = []
    for gain in (1.0, 0.25):
        block.ffn.norm.weight.data.fill_(gain)
        block.zero_grad()
        block(x).backward(upstream)
        sizes.append(block.ffn.fc2.weight.grad.clone())
    assert torch.allclose(sizes[0], 4 * sizes[1])


@pytest.mark.parametrize("d", SIZES)
def test_count(d):
    heads = d // 64
    before, read = count(d, heads, **PRE_LN)
    after, more = count(d, heads, **NORMFORMER)
    assert before == 12 * d * d + 13 * d
    assert after - before == heads + 2 * d + 2 * 4 * d
    assert (read, more) == (2 * d, 7 * d)
    assert (after - before) / before < 0.004, "less than the abstract says"


def test_initialize_keeps_gains_and_biases():
    model = Stack(1, 16, 2, scale_resids=True)
    before = {n: p.clone() for n, p in model.named_parameters() if p.ndim == 1}
    for scheme in ("gpt", "xavier"):
        initialize(model, scheme)
        for name, value in before.items():
            assert torch.equal(dict(model.named_parameters())[name], value), name
