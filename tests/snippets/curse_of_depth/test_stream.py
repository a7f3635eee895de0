"""trace and read_out, and what the page says about the stream."""

from functools import cache

import pytest
import torch

from snippets.curse_of_depth.depth_scaling import scale_norms, scale_writers
from snippets.curse_of_depth.skipping import read_out
from snippets.curse_of_depth.stream import trace
from snippets.pre_norm_vs_post_norm.trial import fresh, random_text
from tests.wrong import suite

NAME = "Pre-Norm with final norm"


def streams(decoder, text):
    """The stream before the first layer and behind each one."""
    with torch.no_grad():
        x = decoder.embedding(text)
        found = [x]
        for index, block in enumerate(decoder.blocks):
            x = block(x)
            if index % 2:
                found.append(x)
    return found


def check_rms(tracer):
    decoder, text = fresh(NAME, 4, 1), random_text(1)
    found = tracer(decoder, text)
    assert len(found) == 4, "one trace a layer"
    for row, x in zip(found, streams(decoder, text)[1:], strict=True):
        wanted = float(torch.linalg.vector_norm(x)) / x.numel() ** 0.5
        assert row.rms == pytest.approx(wanted, rel=1e-9)


def check_update(tracer):
    decoder, text = fresh(NAME, 4, 1), random_text(1)
    before = streams(decoder, text)
    for row, x, y in zip(tracer(decoder, text), before, before[1:], strict=False):
        wanted = float(torch.linalg.vector_norm(y - x) / torch.linalg.vector_norm(x))
        assert row.update == pytest.approx(wanted, rel=1e-9)


def check_cosine(tracer):
    decoder, text = fresh(NAME, 4, 1), random_text(1)
    before = streams(decoder, text)
    for row, x, y in zip(tracer(decoder, text), before, before[1:], strict=False):
        each = (x * y).sum(-1) / (x.pow(2).sum(-1) * y.pow(2).sum(-1)).sqrt()
        assert row.cosine == pytest.approx(float(each.mean()), rel=1e-9)


CHECKS = [check_rms, check_update, check_cosine]


test_right, test_known_wrong = suite(trace, CHECKS)


# What the page says ----------------------------------------------------------


def plain(decoder):
    pass


@cache
def traced(apply, layers=36, seed=11):
    decoder = fresh(NAME, layers, seed)
    apply(decoder)
    return trace(decoder, random_text(seed))


def test_growth_follows_the_root():
    rows = traced(plain)
    assert 2.5 < rows[35].rms / rows[3].rms < 3.6  # √(36 / 4) = 3
    assert 2.3 < rows[3].update / rows[35].update < 4.0


def test_cosine_is_fixed_by_the_update():
    """1 / sqrt(1 + r^2) for an update at a right angle."""
    for row in traced(plain)[8:]:
        assert row.cosine == pytest.approx((1 + row.update**2) ** -0.5, abs=0.01)


def test_remedies_at_initialization():
    usual, scaled, gpt2 = map(traced, (plain, scale_norms, scale_writers))
    assert scaled[35].rms < usual[35].rms / 2
    assert scaled[35].update < usual[35].update / 1.5  # weaker, not stronger
    assert scaled[35].cosine > usual[35].cosine
    assert gpt2[35].rms < 1.5
    assert gpt2[0].update / gpt2[35].update < 1.5


def test_bound_of_a_branch():
    """However large the stream, a branch gives no more than its weights allow."""
    generator = torch.Generator().manual_seed(0)
    attention, feed_forward = fresh(NAME, 1, 0).blocks
    length = 32**0.5  # of a normalized vector whose gain is one
    for block, heads in ((attention, 2), (feed_forward, 1)):
        reader, writer = block.sublayer.reader.weight, block.sublayer.writer.weight
        inner = reader.chunk(3)[2] if block is attention else reader
        size = [torch.linalg.matrix_norm(m, 2).item() for m in (inner, writer)]
        bound = heads**0.5 * size[0] * size[1] * length
        for scale in (1e-2, 1.0, 1e8):
            x = scale * torch.randn(3, 5, 32, generator=generator).double()
            update = block.sublayer(block.norm(x)).norm(dim=-1)
            assert update.max().item() <= bound
            # The block itself adds that update, up to rounding.
            assert torch.allclose((block(x) - x).norm(dim=-1), update, atol=1e-6)


def test_read_out():
    decoder, text = fresh(NAME, 4, 0), random_text(0)
    full = read_out(decoder, text)
    assert torch.allclose(decoder.head(full), decoder(text))
    nothing = read_out(decoder, text, range(1, 5))
    assert torch.equal(nothing, decoder.norm(decoder.embedding(text)))
    found = streams(decoder, text)
    assert torch.equal(read_out(decoder, text, (4,)), decoder.norm(found[3]))
    assert not torch.equal(read_out(decoder, text, (1,)), full)


def test_many_small_turns_make_a_large_one():
    cosines = []
    for seed in (3, 4, 5):
        decoder, text = fresh(NAME, 36, seed), random_text(seed)
        full = read_out(decoder, text)
        pair = [read_out(decoder, text, skip) for skip in ((36,), range(19, 37))]
        cosines.append([torch.cosine_similarity(full, y, dim=-1).mean() for y in pair])
    one, half = torch.tensor(cosines).mean(0).tolist()
    assert one > 0.97
    assert 0.55 < half < 0.85  # 1 / sqrt(2) = 0.71
