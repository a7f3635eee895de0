"""The balance of AdamW turns a scale-invariant weight by the predicted angle."""

import math

import pytest

from snippets.scale_invariance.adamw import angle


@pytest.mark.parametrize(
    ("rate", "decay", "beta"), [(0.05, 0.2, 0.9), (0.05, 0.2, 0.0)]
)
def test_angle(rate, decay, beta):
    predicted = math.sqrt(2 * rate * decay * (1 - beta) / (1 + beta))
    assert math.isclose(angle(rate, decay, beta), predicted, rel_tol=0.06)
