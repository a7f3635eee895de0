import torch

from snippets.qk_norm.attention import Attention
from snippets.rms_norm.reference import RMSNorm

torch.manual_seed(0)
attention = Attention(32, heads=4, norm=RMSNorm).double()
tokens = torch.randn(2, 12, 32, dtype=torch.float64)
grad_y = torch.randn_like(tokens)
start = {name: p.detach().clone() for name, p in attention.named_parameters()}


def run(changed: str, factor: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Output and gradient of one matrix, with that matrix times factor."""
    with torch.no_grad():
        for name, parameter in attention.named_parameters():
            scale = factor if name == changed else 1
            parameter.copy_(scale * start[name])
    y = attention(tokens)
    (grad,) = torch.autograd.grad(y, attention.get_parameter(changed), grad_y)
    return y.detach(), grad


print("matrix   times 10: output changes by   gradient times   cosine")
for name in ("query", "key", "value", "output"):
    y, grad = run(f"{name}.weight", 1)
    y_10, grad_10 = run(f"{name}.weight", 10)
    change = (y_10 - y).norm() / y.norm()
    ratio = grad_10.norm() / grad.norm()
    weight = start[f"{name}.weight"].flatten()
    cosine = torch.cosine_similarity(grad.flatten(), weight, dim=0).abs()
    print(f"{name:8} {change:26.3f} {ratio:16.2f} {cosine:8.3f}")
