import numpy as np


def numpy_batch_norm(
    x: np.ndarray,
    gain: np.ndarray,
    bias: np.ndarray,
    running_mean: np.ndarray,
    running_var: np.ndarray,
    training: bool,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> np.ndarray:
    """x is (n, d). Ioffe & Szegedy (2015), algorithms 1 and 2."""
    wide = x.astype(gain.dtype)
    if training:
        n = len(x)
        if n < 2:
            raise ValueError("one sample has no variance to train with")
        mean, var = wide.mean(axis=0), wide.var(axis=0)  # divides by n
        running_mean += momentum * (mean - running_mean)
        running_var += momentum * (var * n / (n - 1) - running_var)
    else:
        mean, var = running_mean, running_var
    y = (wide - mean) / np.sqrt(var + eps)
    return (y * gain + bias).astype(x.dtype)
