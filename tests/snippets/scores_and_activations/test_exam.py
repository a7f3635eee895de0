"""The five marks: what the chapter says of them by hand."""

import pytest
import torch

from snippets.scores_and_activations.exam import marks, z_scores


def test_by_hand():
    assert marks.mean().item() == pytest.approx(76.8)
    squares = [10.2**2, 15.2**2, 11.8**2, 22.2**2, 35.8**2]
    assert (sum(squares) / 5) ** 0.5 == pytest.approx(21.2, abs=0.05)
    assert z_scores(marks)[0].item() == pytest.approx(0.48, abs=0.005)
    assert sorted(marks.tolist(), reverse=True).index(87) == 2


@pytest.mark.parametrize("count", [2, 5, 101])
def test_zero_point_and_unit_go(count):
    torch.manual_seed(0)
    x = torch.randn(count, dtype=torch.float64)
    z = z_scores(x)
    assert abs(z.mean()) < 1e-12 and z.square().mean().item() == pytest.approx(1)
    assert torch.allclose(z_scores(0.4 * x - 7), z)
    assert torch.allclose(z_scores(-x), -z)
