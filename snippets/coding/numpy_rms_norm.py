import numpy as np


def numpy_rms_norm(
    x: np.ndarray, gain: np.ndarray, eps: float = 1e-6
) -> np.ndarray:
    """x is (..., d). Zhang & Sennrich (2019), eps inside the root."""
    wide = x.astype(np.result_type(x, np.float32))
    mean_square = np.square(wide).mean(axis=-1, keepdims=True)
    y = wide / np.sqrt(mean_square + eps)
    return (y * gain).astype(x.dtype)
