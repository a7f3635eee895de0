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
    """BatchNorm as PyTorch does it, in NumPy alone.

    x is (n, d), everything else (d,) in float32, or float64 like x: computes
    in that dtype, whatever x has. In training the two running arrays are
    updated in place; momentum is the weight of the new batch. The result has
    x's dtype. ValueError if n is 1 in training.
    """
    raise NotImplementedError
