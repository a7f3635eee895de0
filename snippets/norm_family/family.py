# --8<-- [start:batch_norm]
from torch import Tensor

from snippets.norm_family.normalize import normalize


def per_channel(n: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    """n · gain + bias with one gain and bias a channel; n is (N, C, ...)."""
    shape = (1, -1) + (1,) * (n.ndim - 2)
    return n * gain.reshape(shape) + bias.reshape(shape)


def batch_norm(
    x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5
) -> Tensor:
    """BatchNorm in training, Ioffe and Szegedy (2015). x is (N, C, ...)."""
    axes = (0, *range(2, x.ndim))
    n = normalize(x, axes, eps=eps)
    return per_channel(n, gain, bias).to(x.dtype)


# --8<-- [end:batch_norm]


# --8<-- [start:instance_norm]
def instance_norm(
    x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5
) -> Tensor:
    """InstanceNorm, Ulyanov et al. (2016). x is (N, C, positions...)."""
    axes = tuple(range(2, x.ndim))
    n = normalize(x, axes, eps=eps)
    return per_channel(n, gain, bias).to(x.dtype)


# --8<-- [end:instance_norm]


# --8<-- [start:group_norm]
def group_norm(
    x: Tensor, groups: int, gain: Tensor, bias: Tensor, eps: float = 1e-5
) -> Tensor:
    """GroupNorm, Wu and He (2018). x is (N, C, ...), groups divides C.

    A group is C / groups neighbouring channels; gain and bias stay (C,).
    """
    grouped = x.unflatten(1, (groups, -1))  # (N, groups, C / groups, ...)
    n = normalize(grouped, tuple(range(2, grouped.ndim)), eps=eps)
    return per_channel(n.flatten(1, 2), gain, bias).to(x.dtype)


# --8<-- [end:group_norm]


# --8<-- [start:layer_norm]
def layer_norm(
    x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5
) -> Tensor:
    """LayerNorm of a Transformer, Ba et al. (2016). x is (..., d)."""
    return (normalize(x, (-1,), eps=eps) * gain + bias).to(x.dtype)


def rms_norm(x: Tensor, gain: Tensor, eps: float = 1e-6) -> Tensor:
    """RMSNorm, Zhang and Sennrich (2019). x is (..., d)."""
    return (normalize(x, (-1,), centre=False, eps=eps) * gain).to(x.dtype)


# --8<-- [end:layer_norm]
