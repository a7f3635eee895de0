from torch import Tensor


def image_batch_norm(
    x: Tensor,
    gain: Tensor,
    bias: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """BatchNorm of images as PyTorch does it; updates the running statistics.

    x is (n, c, h, w), everything else (c,) in float32, or float64 like x:
    computes in that dtype, whatever x has. Each channel has at least two
    values. momentum is the weight of the new batch. Gradients flow through
    the statistics of the batch, and none into the running ones. The result
    has x's shape and dtype.
    """
    raise NotImplementedError
