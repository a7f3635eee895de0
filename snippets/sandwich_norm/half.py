import torch
from torch import Tensor
from torch.nn import functional as F

from snippets.sandwich_norm.pb_relax import relaxed_layer_norm, relaxed_softmax


def scale_last(q: Tensor, k: Tensor) -> Tensor:
    return torch.softmax((q @ k.mT) / q.shape[-1] ** 0.5, dim=-1)


def scale_first(q: Tensor, k: Tensor) -> Tensor:
    return torch.softmax((q / q.shape[-1] ** 0.5) @ k.mT, dim=-1)


def relax_last(q: Tensor, k: Tensor, relax: float = 32.0) -> Tensor:
    """PB-Relax applied to finished logits: too late for the product."""
    small = ((q / q.shape[-1] ** 0.5) @ k.mT) / relax
    small = small - small.amax(dim=-1, keepdim=True)
    return torch.softmax(small * relax, dim=-1)


torch.manual_seed(0)
q, k = torch.randn(2, 64, 64, dtype=torch.float64)
gap = (relaxed_softmax(q, k) - scale_last(q, k)).abs().max()
print("float64: the same as softmax to 1e-14:", bool(gap < 1e-14))

print("float16: rows with NaN, error of the others")
for size in (1, 40, 200):
    a, b = (size * q).half(), (size * k).half()
    wanted = scale_last(a.double(), b.double())
    for function in (scale_last, scale_first, relax_last, relaxed_softmax):
        weights = function(a, b)
        fine = weights.isfinite().all(dim=-1)
        lost = "none" if fine.all() else "some" if fine.any() else "all"
        gap = (weights.double() - wanted)[fine].abs()
        worst = "-"
        if len(gap):
            worst = "< 0.01" if gap.max() < 0.01 else "> 0.01"
        print(f"q, k x {size:<4}{function.__name__:<17}{lost:<6}{worst}")

x = 5 + torch.randn(4, 64, dtype=torch.float64)
x[:, 0] = 1000.0
relaxed = relaxed_layer_norm(x)
for title, factor in (("eps", 1), ("eps * max^2", 1000**2)):
    plain = F.layer_norm(x, (64,), eps=1e-5 * factor)
    same = bool((relaxed - plain).abs().max() < 1e-12)
    print(f"LN(x / max) is LN(x) with {title}: {same}")
