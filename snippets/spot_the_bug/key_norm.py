import torch
from torch import Tensor
from torch.nn import functional as F


def key_norm_attention(
    q: Tensor, k: Tensor, v: Tensor, q_gain: Tensor, k_gain: Tensor
) -> Tensor:
    """Causal attention with QK-Norm per head.

    q, k, v are (batch, heads, time, width) in float32, the gains (width,). So
    that the product needs no transpose, k is laid out (..., width, time).
    """
    width = q.shape[-1]
    k = k.transpose(-2, -1)
    q = F.normalize(q, dim=-1) * q_gain * width**0.5
    k = F.normalize(k, dim=-1) * k_gain[:, None] * width**0.5
    scores = q @ k / width**0.5
    future = torch.ones_like(scores, dtype=torch.bool).triu(1)
    return scores.masked_fill(future, float("-inf")).softmax(-1) @ v
