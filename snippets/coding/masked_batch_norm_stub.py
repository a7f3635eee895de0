from torch import Tensor


def masked_batch_norm(
    x: Tensor, mask: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5
) -> Tensor:
    """BatchNorm in training, over the real tokens of a padded batch.

    x is (batch, time, d), mask is (batch, time), True where a token is real;
    at least one is. gain and bias are (d,) in x's dtype. Padding may hold
    anything, NaN too, and comes out as zero. No boolean indexing: the shapes
    of a compiled program must not depend on the mask. Computes in float32 or
    wider, the result has x's dtype.
    """
    raise NotImplementedError
