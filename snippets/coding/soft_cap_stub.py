from torch import Tensor


def soft_cap(z: Tensor, cap: float) -> tuple[Tensor, Tensor]:
    """cap * tanh(z / cap), and its derivative with respect to z.

    z has any shape and floating dtype; both results have z's shape and
    dtype. The derivative is right to the last digits even where it is tiny.
    """
    raise NotImplementedError
