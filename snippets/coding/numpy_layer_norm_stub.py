import numpy as np


def numpy_layer_norm(
    x: np.ndarray, gain: np.ndarray, bias: np.ndarray, eps: float = 1e-5
) -> np.ndarray:
    """LayerNorm over the last axis, in NumPy alone.

    x is (..., d) in float16, float32 or float64; gain and bias are (d,) in
    that dtype. Computes in float32 or wider and rounds once, at the end. The
    result has x's shape and dtype; x is not changed.
    """
    raise NotImplementedError
