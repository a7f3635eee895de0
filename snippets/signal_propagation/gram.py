# --8<-- [start:branches]
import torch
from torch import Tensor


def after_attention(gram: Tensor, weights: Tensor) -> Tensor:
    """What an attention branch with random value matrices writes.

    gram is (tokens, tokens), x_t · x_s / d of what it reads; weights are
    the attention weights, each row with sum 1. A random matrix of variance
    1 / d keeps inner products: only the mixing is left.
    """
    return weights @ gram @ weights.T


def after_feed_forward(gram: Tensor) -> Tensor:
    """The same for a feed-forward branch with ReLU: Cho and Saul (2009)."""
    size = gram.diagonal().sqrt()
    size = size[:, None] * size
    angle = (gram / size).clamp(-1, 1).arccos()
    turned = angle.sin() + (torch.pi - angle) * angle.cos()
    return size * turned / (2 * torch.pi)


# --8<-- [end:branches]


# --8<-- [start:predict]
def normalized(gram: Tensor) -> Tensor:
    """Every token scaled to RMS 1: only the cosines are left."""
    size = gram.diagonal().sqrt()
    return gram / (size[:, None] * size)


def predict(
    placement: str, gram: Tensor, layers: int, alpha: float, beta: float
) -> Tensor:
    """The stream's Gram matrix after causal layers with equal weights.

    placement is "Post-Norm" (with DeepNorm's alpha and beta, or 1 and 1) or
    "Pre-Norm". Both matrices of a branch are beta times as large.
    """
    n = len(gram)
    weights = torch.ones(n, n, dtype=gram.dtype).tril()
    weights = weights / weights.sum(dim=1, keepdim=True)  # 1/t each
    for _ in range(layers):
        for branch in (
            lambda g: after_attention(g, weights),
            after_feed_forward,
        ):
            reads = normalized(gram) if placement == "Pre-Norm" else gram
            gram = alpha**2 * gram + beta**4 * branch(reads)
            if placement == "Post-Norm":
                gram = normalized(gram)
    return gram


# --8<-- [end:predict]
