import torch
from torch import Tensor

from snippets.soft_capping.reference import soft_cap


def capped_attention(
    q: Tensor, k: Tensor, v: Tensor, cap: float | None, scale: float
) -> Tensor:
    """Causal attention with soft-capped logits: scale, cap, mask, softmax.

    q is (batch, heads, time, width), k and v are (batch, key heads, time,
    width); key heads divides heads. The result has q's shape and dtype; the
    logits are float32 (float64 for float64 input). cap None means no cap.
    """
    group = q.shape[1] // k.shape[1]
    k, v = (each.repeat_interleave(group, dim=1) for each in (k, v))
    wide = torch.promote_types(q.dtype, torch.float32)
    logits = q.to(wide) @ k.to(wide).mT * scale
    if cap is not None:
        logits = soft_cap(logits, cap)
    future = torch.ones_like(logits, dtype=torch.bool).triu(1)
    logits = logits.masked_fill(future, -torch.inf)  # (1)!
    return logits.softmax(dim=-1).to(v.dtype) @ v
