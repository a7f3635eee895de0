import torch
from torch import Tensor, nn

from snippets.batch_norm_vs_layer_norm.norms import BatchNorm, LayerNorm

torch.manual_seed(0)
x = torch.randn(8, 6, 5, dtype=torch.float64)
target = torch.randn(8, 6, 5, dtype=torch.float64)


def gradient(norm: nn.Module, micro_batches: int) -> Tensor:
    """Gradient at a weight before the norm, accumulated over parts."""
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(5, 5, generator=generator, dtype=torch.float64)
    weight.requires_grad_()
    parts = x.chunk(micro_batches), target.chunk(micro_batches)
    for inputs, wanted in zip(*parts, strict=True):
        loss = (norm(inputs @ weight) - wanted).square().mean()
        (loss / micro_batches).backward()
    return weight.grad


print("relative change of the gradient")
for norm in (BatchNorm(5), LayerNorm(5)):
    whole = gradient(norm, 1)
    for count in (2, 8):
        change = (gradient(norm, count) - whole).norm() / whole.norm()
        name = type(norm).__name__
        print(f"{name}, {count} micro-batches: {change.item():.2f}")
