from torch import Tensor


def add_rms_norm(
    x: Tensor, residual: Tensor, gain: Tensor, eps: float = 1e-6
) -> tuple[Tensor, Tensor]:
    """The add and the norm between two sublayers, as one fused call.

    x is the output of the last sublayer, residual the stream before it: both
    (..., d) in one dtype; gain is (d,) in that dtype. Returns the input of
    the next sublayer and the new stream, in that order and dtype. The stream
    is bit for bit the sum in that dtype. The other is RMSNorm of this stream,
    in float32 or wider and rounded once. Nothing is changed in place.
    """
    raise NotImplementedError
