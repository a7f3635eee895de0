"""What the page says of the profiles, for all layers and not only those shown."""

import pytest

from snippets.zero_centred_and_mixed.profile import profiles

EVEN = ("Post-Norm", "HybridNorm", "HybridNorm*")
FALLING = ("Pre-Norm", "Mix-LN", "Peri-LN")


def _spread(name):
    gradients, _ = profiles[name]
    return max(gradients) / min(gradients)


def test_stacks_that_renormalize_the_stream_are_the_most_even():
    assert max(map(_spread, EVEN)) < 2
    assert min(map(_spread, FALLING)) > 3


def test_mix_ln_is_no_more_even_than_pre_norm():
    assert _spread("Mix-LN") > _spread("Pre-Norm")


@pytest.mark.parametrize("name", FALLING)
def test_late_layers_turn_a_growing_stream_less(name):
    gradients, angles = profiles[name]
    assert sum(gradients[:4]) > 2 * sum(gradients[-4:])
    assert min(angles[:4]) > max(angles[-4:])


@pytest.mark.parametrize("name", EVEN)
def test_layers_turn_a_short_stream_by_similar_angles(name):
    _, angles = profiles[name]
    assert max(angles) < 1.5 * min(angles)


def test_first_layer_of_the_star_is_close_to_the_mean():
    assert abs(profiles["HybridNorm*"][0][0] - 1) < 0.1
    assert profiles["HybridNorm"][0][0] > 1.3
