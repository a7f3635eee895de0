from torch import Tensor


def fold_norm(
    gain: Tensor, bias: Tensor | None, weight: Tensor, offset: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """The linear layer after a norm, with the norm's parameters folded in.

    The norm ends in n * gain + bias (RMSNorm: bias is None), the layer is
    weight @ y + offset (offset may be None). gain and bias are (d,), weight
    is (out, d), offset is (out,). Returns the new weight and offset for a
    norm without parameters: offset is None only if both were. The norm may
    be in float32 and the layer in bfloat16. Computes in float32 or wider,
    rounds once to weight's dtype, changes nothing in place.
    """
    raise NotImplementedError
