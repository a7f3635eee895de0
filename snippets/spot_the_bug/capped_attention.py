import torch
from torch import Tensor


def capped_attention(
    q: Tensor, k: Tensor, v: Tensor, cap: float = 50.0
) -> Tensor:
    """Causal attention with soft-capped scores.

    q, k, v are (batch, heads, time, width) in float32.
    """
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    future = torch.ones_like(scores, dtype=torch.bool).triu(1)
    scores = scores.masked_fill(future, float("-inf"))
    scores = cap * torch.tanh(scores / cap)
    return scores.softmax(-1) @ v
