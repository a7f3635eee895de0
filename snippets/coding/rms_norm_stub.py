from torch import Tensor


def rms_norm(x: Tensor, gain: Tensor, eps: float = 1e-6) -> Tensor:
    """RMSNorm over the last dimension, rounded once.

    x is (..., d) in float16, bfloat16, float32 or float64; gain is (d,), in
    x's dtype or wider. The result has x's dtype; x is not changed.
    """
    raise NotImplementedError
