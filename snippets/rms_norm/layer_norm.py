# --8<-- [start:layer_norm]
import torch
from torch import Tensor
from torch.nn import functional as F

from snippets.rms_norm.centring import centre, mean_share
from snippets.rms_norm.reference import rms_norm


def layer_norm(
    x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-6
) -> Tensor:
    """LayerNorm over the last dimension: centre, RMSNorm, shift.

    x is (..., d), gain and bias are (d,). Ba et al. (2016).
    """
    return rms_norm(centre(x), gain, eps) + bias


# --8<-- [end:layer_norm]


# --8<-- [start:check]
torch.manual_seed(0)
batch = torch.randn(2, 5, 48, dtype=torch.float64) + 3
weight, bias = torch.rand(2, 48, dtype=torch.float64)
library = F.layer_norm(batch, (48,), weight, bias, eps=1e-6)
gap = (layer_norm(batch, weight, bias) - library).abs().max()
print("centring + RMSNorm is LayerNorm to 1e-12:", bool(gap < 1e-12))

share = mean_share(batch)
cosine = torch.cosine_similarity(rms_norm(batch), rms_norm(centre(batch)), -1)
gap = (cosine - (1 - share).sqrt()).abs().max()
print("cosine of the two is sqrt(1 - share) to 1e-6:", bool(gap < 1e-6))
print(f"share of the mean here, in the middle token: {share.median():.2f}")
# --8<-- [end:check]
