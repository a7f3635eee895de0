from torch import Tensor


def batch_norm_backward(
    grad_y: Tensor, x: Tensor, gain: Tensor, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of BatchNorm in training: for x, gain and bias, by hand.

    grad_y and x are (n, d) in one dtype, and n is at least 2; gain is (d,) in
    float32, or float64 like x. Computes in that dtype. The first result has
    x's dtype, the others have gain's. No autograd. Nothing is changed in
    place.
    """
    raise NotImplementedError
