# --8<-- [start:attention_gradients]
import torch
from torch import Tensor


def attention_gradients(
    q: Tensor, k: Tensor, v: Tensor, upstream: Tensor, causal: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of one head's queries, keys and values, without autograd.

    All are (tokens, d of the head); upstream is the gradient of the head's
    output softmax(q k^T / sqrt(d)) v.
    """
    scale = q.shape[-1] ** -0.5
    logits = scale * q @ k.T
    if causal:
        logits = logits.masked_fill(
            torch.ones_like(logits).triu(1) > 0, -torch.inf
        )
    a = logits.softmax(dim=-1)  # token t's weight on token s
    apart_k = k - (a @ k)[:, None]  # (t, s, d): from t's weighted mean
    apart_v = v - (a @ v)[:, None]
    covariance = torch.einsum("ts,tsi,tsj->tij", a, apart_k, apart_v)
    grad_q = scale * torch.einsum("tij,tj->ti", covariance, upstream)
    pull = torch.einsum("ts,tsj,tj->ts", a, apart_v, upstream)
    return grad_q, scale * pull.T @ q, a.T @ upstream


# --8<-- [end:attention_gradients]


# --8<-- [start:gradient_ratio]
def gradient_ratio(cosine: float, tokens: int) -> float:
    """|grad W_Q| / |grad W_V| of a head whose attention is equal weights.

    For tokens of RMS 1 with this cosine between any two, random matrices
    of variance 1 / d and independent upstream gradients.
    """
    return (1 - cosine) / (1 + (tokens - 1) * cosine) ** 0.5


# --8<-- [end:gradient_ratio]
