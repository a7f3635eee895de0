import numpy as np


def numpy_rms_norm(
    x: np.ndarray, gain: np.ndarray, eps: float = 1e-6
) -> np.ndarray:
    """RMSNorm over the last axis, in NumPy alone, rounded once.

    x is (..., d) in float16, float32 or float64; gain is (d,), in x's dtype
    or wider. The result has x's dtype; x is not changed.
    """
    raise NotImplementedError
