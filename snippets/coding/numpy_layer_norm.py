import numpy as np


def numpy_layer_norm(
    x: np.ndarray, gain: np.ndarray, bias: np.ndarray, eps: float = 1e-5
) -> np.ndarray:
    """x is (..., d). Ba et al. (2016), eq. 3 and 4, eps inside the root."""
    wide = x.astype(np.result_type(x, np.float32))
    centred = wide - wide.mean(axis=-1, keepdims=True)
    variance = np.square(centred).mean(axis=-1, keepdims=True)
    y = centred / np.sqrt(variance + eps)
    return (y * gain + bias).astype(x.dtype)
