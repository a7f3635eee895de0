# --8<-- [start:layer_norm_backward]
import torch
from torch import Tensor

from snippets.layer_norm.reference import layer_norm


def layer_norm_backward(
    grad_y: Tensor, x: Tensor, gain: Tensor, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of layer_norm with respect to x, gain and bias.

    grad_y and x are (..., d), gain is (d,). The arithmetic is float32 (float64
    for float64 input); the results have the dtypes of x, gain and gain.
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    g, h = grad_y.to(wide), x.to(wide)
    c = h - h.mean(dim=-1, keepdim=True)
    r = torch.rsqrt(c.square().mean(dim=-1, keepdim=True) + eps)  # (..., 1)
    n = c * r
    u = g * gain.to(wide)
    along_ones = u.mean(dim=-1, keepdim=True)
    along_n = (u * n).mean(dim=-1, keepdim=True)
    grad_x = r * (u - along_ones - n * along_n)
    rows = (-1, x.shape[-1])  # a token each
    grad_gain = (g * n).reshape(rows).sum(dim=0).to(gain.dtype)
    grad_bias = g.reshape(rows).sum(dim=0).to(gain.dtype)
    return grad_x.to(x.dtype), grad_gain, grad_bias


# --8<-- [end:layer_norm_backward]


# --8<-- [start:check]
torch.manual_seed(0)
tokens = (3 + torch.randn(3, 5, 48, dtype=torch.float64)).requires_grad_()
gain = torch.empty(48, dtype=torch.float64).uniform_(0.5, 1.5).requires_grad_()
bias = torch.randn(48, dtype=torch.float64, requires_grad=True)
grad_y = torch.randn_like(tokens)

numeric = torch.autograd.gradcheck(layer_norm, (tokens[0], gain, bias))
print("autograd agrees with differences:", numeric)
exact = torch.autograd.grad(
    layer_norm(tokens, gain, bias), (tokens, gain, bias), grad_y
)
for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
    inputs = (each.detach().to(dtype) for each in (grad_y, tokens, gain))
    for name, ours, autograd in zip(
        ("x", "gain", "bias"), layer_norm_backward(*inputs), exact, strict=True
    ):
        gap = (ours - autograd).abs().max() / autograd.abs().max()
        close = bool(gap < tolerance)
        print(f"{dtype}, grad_{name} to {tolerance:.0e}: {close}")

centred = (tokens - tokens.mean(dim=-1, keepdim=True)).detach()
total = exact[0].sum(dim=-1).abs().max()
print("grad_x sums to zero, to 1e-12:", bool(total < 1e-12))
for size in (1.0, 0.003, 0.0001):
    grad_x, _, _ = layer_norm_backward(grad_y, size * tokens, gain)
    cosine = torch.cosine_similarity(grad_x, centred, dim=-1).abs().max()
    print(f"{size} x: cosine with the centred x {cosine:.2f}")
# --8<-- [end:check]
