from torch import Tensor

from snippets.qk_norm.rope import rotate


def qk_norm_attention(
    q: Tensor, k: Tensor, v: Tensor, q_gain: Tensor, k_gain: Tensor
) -> Tensor:
    """Causal attention with QK-Norm per head, RoPE and grouped queries.

    q is (batch, time, heads * width), k and v are (batch, time, key_heads *
    width): what the three projections return. Both gains are (width,), so
    the width is known; key_heads divides heads, and query heads in a row
    share a key head. The norm is RMSNorm with eps 1e-6, F.rms_norm for
    instance. Given: rotate(x), RoPE on (..., time, width). Returns (batch,
    time, heads * width), for the output projection.
    """
    raise NotImplementedError
