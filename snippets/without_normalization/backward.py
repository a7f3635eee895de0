# --8<-- [start:dynamic_tanh_backward]
import torch
from torch import Tensor

from snippets.without_normalization.reference import dynamic_tanh


def dynamic_tanh_backward(
    grad_y: Tensor, x: Tensor, alpha: Tensor, gain: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of dynamic_tanh for x, alpha, gain and bias.

    grad_y and x are (..., d), gain is (d,), alpha is one number. The
    arithmetic is float32 (float64 for float64 input); each result has the
    dtype of what it is the gradient of, that of bias the dtype of gain.
    """
    d, wide = x.shape[-1], torch.promote_types(x.dtype, torch.float32)
    g, h = grad_y.to(wide), x.to(wide)
    t = torch.tanh(alpha.to(wide) * h)
    through = g * gain.to(wide) * (1 - t * t)  # gradient at alpha * x
    grad_x = alpha.to(wide) * through
    grad_alpha = (through * h).sum().reshape(alpha.shape)  # all numbers
    grad_gain = (g * t).reshape(-1, d).sum(dim=0)  # all tokens
    grad_bias = g.reshape(-1, d).sum(dim=0)
    return (
        grad_x.to(x.dtype),
        grad_alpha.to(alpha.dtype),
        grad_gain.to(gain.dtype),
        grad_bias.to(gain.dtype),
    )


# --8<-- [end:dynamic_tanh_backward]


# --8<-- [start:check]
generator = torch.Generator().manual_seed(0)
x = torch.randn(3, 5, 48, generator=generator, dtype=torch.float64)
gain = 0.5 + torch.rand(48, generator=generator, dtype=torch.float64)
alpha, bias = torch.tensor(0.7).double(), torch.zeros(48).double()
grad_y = torch.randn(3, 5, 48, generator=generator, dtype=torch.float64)

inputs = [each.requires_grad_() for each in (x, alpha, gain, bias)]
exact = torch.autograd.grad(dynamic_tanh(*inputs), inputs, grad_y)
with torch.no_grad():
    ours = dynamic_tanh_backward(grad_y, x, alpha, gain)
for name, a, b in zip(("x", "alpha", "gain", "bias"), ours, exact, strict=True):
    print(
        f"grad_{name} to 1e-12 of autograd:", bool((a - b).abs().max() < 1e-12)
    )

for size in (0.1, 1.0, 10.0):
    slope = 1 - torch.tanh(alpha * size * x).square()
    print(f"input RMS {size:4.1f}: mean slope of the tanh {slope.mean():.2f}")
# --8<-- [end:check]
