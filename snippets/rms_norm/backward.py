# --8<-- [start:rms_norm_backward]
import torch
from torch import Tensor

from snippets.rms_norm.reference import rms_norm


def rms_norm_backward(
    grad_y: Tensor, x: Tensor, gain: Tensor, eps: float = 1e-6
) -> tuple[Tensor, Tensor]:
    """Gradients of rms_norm with respect to x and gain.

    grad_y and x are (..., d), gain is (d,). The arithmetic is float32
    (float64 for float64 input); each result has the dtype of what it is
    the gradient of.
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    g, h = grad_y.to(wide), x.to(wide)
    r = torch.rsqrt(h.square().mean(dim=-1, keepdim=True) + eps)  # (..., 1)
    n = h * r
    u = g * gain.to(wide)
    grad_x = r * (u - n * (u * n).mean(dim=-1, keepdim=True))
    grad_gain = (g * n).reshape(-1, x.shape[-1]).sum(dim=0)  # all tokens
    return grad_x.to(x.dtype), grad_gain.to(gain.dtype)


# --8<-- [end:rms_norm_backward]


# --8<-- [start:check]
torch.manual_seed(0)
tokens = torch.randn(3, 5, 48, dtype=torch.float64, requires_grad=True)
gain = torch.empty(48, dtype=torch.float64).uniform_(0.5, 1.5)
gain.requires_grad_()
grad_y = torch.randn_like(tokens)

exact = torch.autograd.grad(rms_norm(tokens, gain), (tokens, gain), grad_y)

for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
    inputs = (each.detach().to(dtype) for each in (grad_y, tokens, gain))
    for name, ours, autograd in zip(
        ("x", "gain"), rms_norm_backward(*inputs), exact, strict=True
    ):
        gap = (ours - autograd).abs().max() / autograd.abs().max()
        close = bool(gap < tolerance)
        print(f"{dtype}: grad_{name} to {tolerance:.0e} of autograd: {close}")

cosine = torch.cosine_similarity(exact[0], tokens, dim=-1).abs().max()
print("grad_x is orthogonal to x, up to eps:", bool(cosine < 1e-5))
# --8<-- [end:check]
