# --8<-- [start:relaxed_softmax]
import torch
from torch import Tensor
from torch.nn import functional as F


def relaxed_softmax(q: Tensor, k: Tensor, relax: float = 32.0) -> Tensor:
    """Attention weights with CogView's PB-Relax; no mask.

    q is (..., queries, d), k is (..., keys, d); the result is (..., queries,
    keys) in their dtype. Equals softmax(q k^T / sqrt(d)). Ding et al.
    (2021), section 2.4, where relax is called alpha.
    """
    d = q.shape[-1]
    small = (q / (relax * d**0.5)) @ k.mT  # (1)!
    small = small - small.amax(dim=-1, keepdim=True)  # at most 0
    return torch.softmax(small * relax, dim=-1)  # (2)!


# --8<-- [end:relaxed_softmax]


# --8<-- [start:relaxed_layer_norm]
def relaxed_layer_norm(x: Tensor, eps: float = 1e-5) -> Tensor:
    """LayerNorm(x / max |x|), the maximum over each vector; no gain.

    x is (..., d). Equals a LayerNorm of x with eps * max |x| ** 2.
    """
    largest = x.abs().amax(dim=-1, keepdim=True).detach()
    largest = largest.clamp_min(torch.finfo(x.dtype).tiny)  # a row of zeros
    return F.layer_norm(x / largest, x.shape[-1:], eps=eps)


# --8<-- [end:relaxed_layer_norm]
