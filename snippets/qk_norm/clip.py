import torch
from torch import Tensor

from snippets.qk_norm.attention import Attention


@torch.no_grad()
def qk_clip(attention: Attention, largest: Tensor, tau: float = 100.0) -> None:
    """After an optimizer step, shrink the heads whose logits were too large.

    largest is (heads,): the largest logit of each head in the forward pass
    of this step. A head above tau gets its logits times tau / largest, half
    of it (the root) in W_q and half in W_k, in place. A key head that
    several query heads share is left alone; then W_q gets all of it. Kimi
    K2 (2025), section 2.1.
    """
    one = torch.ones_like(largest)
    factor = torch.where(largest > tau, tau / largest, one)  # (1)!
    shared = attention.heads > attention.key_heads
    parts = [(attention.query, factor if shared else factor.sqrt())]
    if not shared:
        parts.append((attention.key, factor.sqrt()))
    for projection, part in parts:
        rows = projection.weight.view(attention.heads, attention.width, -1)
        rows.mul_(part[:, None, None].to(rows.dtype))
