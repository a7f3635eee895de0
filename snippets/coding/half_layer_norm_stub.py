from torch import Tensor


def half_layer_norm(x: Tensor, eps: float = 1e-5) -> Tensor:
    """LayerNorm without parameters, on a device that only knows float16.

    x is (..., d) in float16, finite, up to the largest float16. Every tensor
    that you make is float16 as well; eps stays a Python number. Inside a
    reduction such as mean the hardware adds in float32 and rounds once. The
    result is within one per cent of each row's largest value, for rows that
    are constant or have a deviation of 1e-3 or more.
    """
    raise NotImplementedError
