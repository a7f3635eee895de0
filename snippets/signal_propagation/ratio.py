import torch
from torch.nn import functional as F

from snippets.signal_propagation.covariance import gradient_ratio

N, D = 32, 256
generator = torch.Generator().manual_seed(0)


def draw(*shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def measured(cosine: float, size: float) -> float:
    """Of one random head; size multiplies the queries."""
    x = cosine**0.5 * draw(1, D) + (1 - cosine) ** 0.5 * draw(N, D)
    w_q, w_k, w_v = (draw(D, D) / D**0.5 for _ in range(3))
    w_q = (size * w_q).requires_grad_()
    w_v.requires_grad_()
    y = F.scaled_dot_product_attention(x @ w_q.T, x @ w_k.T, x @ w_v.T)
    grad_q, grad_v = torch.autograd.grad(y, (w_q, w_v), draw(N, D))
    return (grad_q.norm() / grad_v.norm()).item()


print("|grad W_Q| / |grad W_V|, 32 tokens")
print("cosine   formula   equal weights   drawn weights")
for cosine in (0.0, 0.5, 0.9, 0.99, 0.999):
    formula = gradient_ratio(cosine, N)
    equal, drawn = measured(cosine, 0.0), measured(cosine, 1.0)
    print(f"{cosine:6}   {formula:7.5f}   {equal:13.5f}   {drawn:13.5f}")
