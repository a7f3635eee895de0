"""The direct path, and the chapter's four lines held against autograd."""

import pytest
import torch
from torch.nn.functional import layer_norm

from snippets.two_placements.direct_path import direct


@pytest.mark.parametrize("blocks", [2, 8, 48])
def test_direct_path(blocks):
    assert direct(False, blocks).item() == pytest.approx(1)
    halved = 2 ** (-blocks / 2)
    assert direct(True, blocks).item() == pytest.approx(halved, rel=0.05 * blocks)


def test_jacobian_of_layer_norm():
    torch.manual_seed(0)
    d = 9
    x = 3 * torch.randn(d, dtype=torch.float64) + 1
    right = torch.autograd.functional.jacobian(lambda x: layer_norm(x, (d,), eps=0), x)
    sigma, n, one = x.std(correction=0), layer_norm(x, (d,), eps=0), torch.ones(d, 1)
    formula = (torch.eye(d) - (one @ one.T + n[:, None] @ n[None]) / d) / sigma
    assert torch.allclose(right, formula.double())


@pytest.mark.parametrize("post", [True, False])
def test_products_of_factors(post):
    """J (I + F') block by block, later ones on the left, is the whole Jacobian."""
    torch.manual_seed(0)
    d, weights = 6, [torch.randn(6, 6, dtype=torch.float64) for _ in range(3)]

    def block(x, w):
        if post:
            return layer_norm(x + torch.tanh(w @ x), (d,), eps=0)
        return x + torch.tanh(w @ layer_norm(x, (d,), eps=0))

    def stack(x):
        for w in weights:
            x = block(x, w)
        return x

    x = start = torch.randn(d, dtype=torch.float64)
    product, jacobian = torch.eye(d).double(), torch.autograd.functional.jacobian
    for w in weights:
        if post:
            inner = torch.eye(d) + jacobian(lambda x, w=w: torch.tanh(w @ x), x)
            outer = jacobian(lambda s: layer_norm(s, (d,), eps=0), x + (w @ x).tanh())
            factor = outer @ inner
        else:
            factor = jacobian(lambda x, w=w: block(x, w), x)
        product, x = factor @ product, block(x, w)
    assert torch.allclose(jacobian(stack, start), product)
