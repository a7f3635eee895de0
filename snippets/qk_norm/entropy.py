import torch
from torch import Tensor


def attention_entropy(logits: Tensor) -> Tensor:
    """Entropy in nats of the softmax over the last dimension.

    logits is (..., keys), with -inf for masked keys; the result is (...),
    between 0 (one key has all) and log(keys) (all keys alike).
    """
    return torch.special.entr(logits.softmax(dim=-1)).sum(dim=-1)


def softmax_jacobian(logits: Tensor) -> Tensor:
    """diag(p) - p pᵀ, the derivative of p = softmax(logits).

    logits is (..., keys), the result (..., keys, keys).
    """
    p = logits.softmax(dim=-1)
    return torch.diag_embed(p) - p[..., :, None] * p[..., None, :]
