"""DeepNorm: its output by hand, and the spread of the weights that it draws."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from snippets.coding.deepnorm import DeepNorm
from tests.same_results import on_views
from tests.snippets.coding.cases import close, expect, gradients, numbers, unchanged
from tests.wrong import rejects

JUDGED = DeepNorm
NAMES = ("query", "key", "value", "output", "up", "down")


class Branch(nn.Module):
    """Linear layers of the names that the task knows; calls only some."""

    def __init__(self, d, wide=4):
        super().__init__()
        self.inner = nn.ModuleDict()
        for name in NAMES:
            sizes = {"up": (d, wide * d), "down": (wide * d, d)}.get(name, (d, d))
            self.inner[name] = nn.Linear(*sizes)
            nn.init.constant_(self.inner[name].bias, 0.5)

    def forward(self, x):
        return self.inner["down"](torch.tanh(self.inner["up"](x))) - 2 * x.roll(1, -1)


def _block(kind, layers, d=8, seed=0):
    torch.manual_seed(seed)
    return kind(Branch(d), d, layers)


def check_output(kind):
    for layers in (1, 6, 100):
        block, x = _block(kind, layers), numbers((2, 3, 8), dtype=torch.float32)
        case = f"{layers} layers, x (2, 3, 8) in float32"
        branch = next((m for m in block.modules() if isinstance(m, Branch)), None)
        expect(branch is not None, case, "the block does not hold its branch")
        with torch.no_grad(), unchanged(case, x):
            y = block(x)
            stream = x.double() * (2.0 * layers) ** 0.25 + branch(x).double()
        close("y", y, F.layer_norm(stream, (8,)), 1e-4, case=case)


def check_gradients(kind):
    block, case = _block(kind, 6), "6 layers, gradient of x by autograd"
    x = numbers((3, 8), dtype=torch.float32).requires_grad_()
    branch = next(m for m in block.modules() if isinstance(m, Branch))
    g = numbers((3, 8), dtype=torch.float32, seed=1)
    (ours,) = gradients(block(x), [x], g, case)
    exact = F.layer_norm(x * 12**0.25 + branch(x), (8,))
    close("gradient of x", ours, torch.autograd.grad(exact, x, g)[0], 1e-3, case=case)


def check_spread(kind):
    for layers in (2, 50):
        block = _block(kind, layers, d=96)
        branch = next(m for m in block.modules() if isinstance(m, Branch))
        for name in NAMES:
            layer = branch.inner[name]
            gain = 1.0 if name in ("query", "key") else (8 * layers) ** -0.25
            fan = sum(layer.weight.shape)
            wanted, found = gain * (2 / fan) ** 0.5, float(layer.weight.detach().std())
            case = f"{layers} layers, weights of {name}"
            words = f"deviation {found:.4f}, expected {wanted:.4f}"
            expect(abs(found / wanted - 1) < 0.04, case, words)
            tails = float((layer.weight.detach().abs() > 2.5 * found).double().mean())
            expect(tails > 0.004, case, "not drawn from a normal distribution")
            kept = bool((layer.bias == 0.5).all())
            expect(kept, case, "the bias was changed")


check_views = on_views(
    numbers((2, 3, 8), dtype=torch.float32),
    call=lambda kind, x: _block(kind, 6)(x),
)

CHECKS = [check_output, check_gradients, check_spread, check_views]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_right(check, judge):
    judge(check)


test_known_wrong = rejects(DeepNorm, CHECKS)
