# --8<-- [start:partial_rms_norm]
import torch
from torch import Tensor

from snippets.rms_norm.reference import rms_norm


def partial_rms_norm(x: Tensor, count: int, eps: float = 1e-6) -> Tensor:
    """pRMSNorm: the mean square of the first count features stands for all.

    x is (..., d), 1 <= count <= d; no gain. Zhang & Sennrich (2019).
    """
    first = x[..., :count]
    return x * torch.rsqrt(first.square().mean(dim=-1, keepdim=True) + eps)


# --8<-- [end:partial_rms_norm]


# --8<-- [start:outliers]
torch.manual_seed(0)
even = torch.randn(1000, 256, dtype=torch.float64)
late = even.clone()
late[:, -1] *= 50  # one large feature that the first 16 do not see
early = even.clone()
early[:, 0] *= 50  # the same feature, now among the first 16

print("output RMS, median [5%, 95%]     all 256      first 16")
quantiles = torch.tensor([0.5, 0.05, 0.95], dtype=torch.float64)
samples = {"even": even, "large last": late, "large first": early}
for name, sample in samples.items():
    cells = []
    for out in (rms_norm(sample), partial_rms_norm(sample, 16)):
        mid, low, high = out.square().mean(-1).sqrt().quantile(quantiles)
        cells.append(f"{mid:.2f} [{low:.2f}, {high:.2f}]")
    print(f"{name:<20}" + "".join(f"{cell:>20}" for cell in cells))
# --8<-- [end:outliers]
