from torch import Tensor


def layer_norm_backward(
    grad_y: Tensor, x: Tensor, gain: Tensor, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of LayerNorm with respect to x, gain and bias, by hand.

    grad_y and x are (..., d), gain is (d,), all in one dtype, as are the
    results. Computes in float32 or wider. No autograd. Nothing is changed in
    place.
    """
    raise NotImplementedError
