import torch

from snippets.scale_invariance.linear import (
    effective_learning_rate,
    scale_invariant_linear,
)

torch.manual_seed(0)
x, target = torch.randn(2, 9, 16, dtype=torch.float64)
start = torch.randn(16, 16, dtype=torch.float64)


def gradient(weight: torch.Tensor) -> torch.Tensor:
    weight = weight.detach().requires_grad_()
    y = scale_invariant_linear(x, weight)
    return torch.autograd.grad((y - target).square().mean(), weight)[0]


print("factor  |gradient|  product  cosine")
for factor in (0.1, 1.0, 10.0):
    weight = factor * start
    grad = gradient(weight)
    cosine = (grad * weight).sum() / (grad.norm() * weight.norm())
    product = factor * grad.norm()
    print(f"{factor:6}{grad.norm():12.5f}{product:9.5f}", end="")
    print(f"{abs(cosine):8.3f}")

outputs = []
for factor, lr in ((1.0, 20.0), (10.0, 2000.0)):
    weight = factor * start
    rate = effective_learning_rate(lr, weight)
    outputs.append(scale_invariant_linear(x, weight - lr * gradient(weight)))
    print(f"factor {factor:4}, lr {lr:6}: rate {rate:.4f}")
gap = (outputs[0] - outputs[1]).abs().max()
print("the same function after one step:", bool(gap < 1e-12))
