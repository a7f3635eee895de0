from torch import Tensor
from torch.nn import functional as F

from snippets.qk_norm.rope import rotate


def qk_norm_attention(
    q: Tensor, k: Tensor, v: Tensor, q_gain: Tensor, k_gain: Tensor
) -> Tensor:
    """q is (batch, time, heads * width). Norm, then RoPE, as in Qwen3."""
    width = len(q_gain)
    q, k, v = (
        each.unflatten(-1, (-1, width)).transpose(1, 2) for each in (q, k, v)
    )  # (batch, heads or key_heads, time, width)
    q = rotate(F.rms_norm(q, (width,), q_gain, eps=1e-6))
    k = rotate(F.rms_norm(k, (width,), k_gain, eps=1e-6))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    return y.transpose(1, 2).flatten(start_dim=2)
