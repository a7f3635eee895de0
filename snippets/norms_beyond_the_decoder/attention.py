import torch
from torch import Tensor


def causal_logits(q: Tensor, k: Tensor) -> Tensor:
    """q kᵀ / √d with the future at -inf; q, k are (..., heads, time, d)."""
    time = q.shape[-2]
    future = torch.ones(time, time, dtype=torch.bool, device=q.device).triu(1)
    logits = q @ k.mT / q.shape[-1] ** 0.5
    return logits.masked_fill(future, -torch.inf)


def gated_attention(q: Tensor, k: Tensor, v: Tensor, gate: Tensor) -> Tensor:
    """Attention's output, each number times the sigmoid of its gate.

    gate is (..., heads, time, d) or (..., heads, time, 1), a projection of
    the same x as q. The output projection comes after the gate.
    """
    return torch.sigmoid(gate) * (causal_logits(q, k).softmax(dim=-1) @ v)


def sink_attention(q: Tensor, k: Tensor, v: Tensor, sink: Tensor) -> Tensor:
    """Softmax with one more logit a head, (heads,), which has no value."""
    logits = causal_logits(q, k)
    total = logits.logsumexp(dim=-1, keepdim=True)
    total = torch.logaddexp(total, sink[:, None, None])
    return (logits - total).exp() @ v
