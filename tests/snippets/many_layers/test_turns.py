"""Stream and share against √l and 1/√l, and the chapter's constants."""

from math import atan, degrees, sqrt

import pytest

from snippets.many_layers.turns import walk

BLOCKS = (1, 10, 100, 200)


def test_pre_norm_grows_like_the_root():
    for block, text in zip(BLOCKS, walk(1, post=False), strict=True):
        size, share = map(float, text.split())
        assert size == pytest.approx(sqrt(block + 1), rel=0.06)
        assert share == pytest.approx(1 / sqrt(block + 1), rel=0.08)


@pytest.mark.parametrize("alpha", [1, 200**0.25])
def test_post_norm_keeps_size_and_share(alpha):
    for text in walk(alpha, post=True):
        size, share = map(float, text.split())
        assert size == pytest.approx(1, abs=0.01)
        assert share == pytest.approx(1 / sqrt(alpha**2 + 1), rel=0.05)


def test_angles_and_constants():
    assert sqrt(1 + 99) == 10 and degrees(atan(1 / 10)) < 6
    drawn = [round(degrees(atan(1 / sqrt(block)))) for block in (1, 4, 16, 64)]
    assert drawn == [45, 27, 14, 7]
    assert round(200**0.25, 2) == 3.76 and round(800**-0.25, 2) == 0.19
