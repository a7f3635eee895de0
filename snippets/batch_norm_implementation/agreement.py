import torch
from torch import nn

from snippets.batch_norm_vs_layer_norm.norms import BatchNorm, LayerNorm

torch.manual_seed(0)
x = torch.randn(4, 6, 5, dtype=torch.float64) * 3 + 2  # batch, sequence, d
upstream = torch.randn_like(x)


def pair(ours: nn.Module, theirs: nn.Module) -> tuple[nn.Module, nn.Module]:
    """Both in float64 with the same random gain and bias."""
    for mine, yours in (("gain", "weight"), ("bias", "bias")):
        values = torch.rand(5, dtype=torch.float64) + 0.5
        setattr(ours, mine, nn.Parameter(values.clone()))
        setattr(theirs, yours, nn.Parameter(values.clone()))
    return ours.double(), theirs.double()


def gap(mine, yours, x, upstream) -> float:
    """Largest difference of outputs and of all gradients."""
    found = []
    for module in (mine, yours):
        x = x.detach().requires_grad_()
        y = module(x)
        inputs = (x, *module.parameters())
        found.append([y, *torch.autograd.grad(y, inputs, upstream)])
    return max((a - b).abs().max().item() for a, b in zip(*found, strict=True))


def channels_second(norm: nn.Module) -> nn.Module:
    """norm, which wants (batch, d, sequence), on (batch, sequence, d)."""

    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = norm

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.norm(x.transpose(1, 2)).transpose(1, 2)

    return Wrapped()


ours, library = pair(BatchNorm(5), nn.BatchNorm1d(5))
wrapped = channels_second(library)
close = gap(ours, library, x[:, 0], upstream[:, 0]) < 1e-12
print("BatchNorm1d, (N, C), train:   ", close)
print("BatchNorm1d, (N, C, L), train:", gap(ours, wrapped, x, upstream) < 1e-12)
for name in ("running_mean", "running_var"):
    same = torch.allclose(getattr(ours, name), getattr(library, name))
    print(f"{name} after two batches:", same)
ours.eval(), library.eval()
print("BatchNorm1d, (N, C, L), eval: ", gap(ours, wrapped, x, upstream) < 1e-12)
ours, library = pair(LayerNorm(5), nn.LayerNorm(5))
print("LayerNorm:                    ", gap(ours, library, x, upstream) < 1e-12)
