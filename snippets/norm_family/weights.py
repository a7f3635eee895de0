# --8<-- [start:weight_norm]
import torch
from torch import Tensor

from snippets.norm_family.normalize import normalize


def weight_norm(v: Tensor, g: Tensor) -> Tensor:
    """w = g v / |v|, Salimans and Kingma (2016), eq. 2.

    v is (out, ...), g is (out,): one length for each output unit. A row of
    zeros gives NaN.
    """
    axes = tuple(range(1, v.ndim))
    length = torch.linalg.vector_norm(v, dim=axes, keepdim=True)
    return g.reshape(length.shape) * v / length


# --8<-- [end:weight_norm]


# --8<-- [start:weight_norm_backward]
def weight_norm_backward(
    grad_w: Tensor, v: Tensor, g: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of weight_norm with respect to v and g, eq. 3."""
    axes = tuple(range(1, v.ndim))
    length = torch.linalg.vector_norm(v, dim=axes, keepdim=True)
    u = v / length
    grad_g = (grad_w * u).sum(axes, keepdim=True)
    grad_v = g.reshape(length.shape) / length * (grad_w - u * grad_g)
    return grad_v, grad_g.reshape(g.shape)


# --8<-- [end:weight_norm_backward]


# --8<-- [start:weight_standardization]
def weight_standardization(w: Tensor, eps: float = 1e-5) -> Tensor:
    """Each output unit's weights to mean 0 and variance 1, Qiao et al.
    (2019). w is (out, ...)."""
    return normalize(w, tuple(range(1, w.ndim)), eps=eps).to(w.dtype)


def spectral_norm(w: Tensor) -> Tensor:
    """w over its largest singular value, Miyato et al. (2018). w is
    (out, in). Libraries estimate that value by power iteration."""
    return w / torch.linalg.matrix_norm(w, 2)


# --8<-- [end:weight_standardization]
