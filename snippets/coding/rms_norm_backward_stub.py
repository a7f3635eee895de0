from torch import Tensor


def rms_norm_backward(
    grad_y: Tensor, x: Tensor, gain: Tensor, eps: float = 1e-6
) -> tuple[Tensor, Tensor]:
    """Gradients of RMSNorm with respect to x and gain, by hand.

    grad_y and x are (..., d), gain is (d,), all in one dtype, as are the
    results. Computes in float32 or wider. No autograd. Nothing is changed in
    place.
    """
    raise NotImplementedError
