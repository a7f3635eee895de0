from torch import Tensor


def batch_norm_backward(
    grad_y: Tensor, x: Tensor, gain: Tensor, eps: float = 1e-5
) -> tuple[Tensor, Tensor, Tensor]:
    """grad_y and x are (n, d). Ioffe & Szegedy (2015), section 3."""
    g, h = grad_y.to(gain.dtype), x.to(gain.dtype)
    c = h - h.mean(dim=0)
    r = (c.square().mean(dim=0) + eps).rsqrt()
    n = c * r
    grad_gain, grad_bias = (g * n).sum(dim=0), g.sum(dim=0)
    grad_x = gain * r * (g - (grad_bias + n * grad_gain) / len(x))
    return grad_x.to(x.dtype), grad_gain, grad_bias
