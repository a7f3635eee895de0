from torch import Tensor


def batch_norm(
    x: Tensor,
    gain: Tensor,
    bias: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """BatchNorm as PyTorch does it; updates the running statistics in place.

    x is (n, d), everything else (d,) in float32, or float64 like x: computes
    in that dtype, whatever x has. momentum is the weight of the new batch.
    Gradients flow through the statistics of the batch, and none into the
    running ones. The result has x's dtype. ValueError if n is 1 in training.
    """
    raise NotImplementedError
