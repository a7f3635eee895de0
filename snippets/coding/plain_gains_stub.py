from torch import Tensor


def plain_gains(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """A checkpoint for norms that multiply by 1 + w, for plain norms.

    The gains are the entries whose names end in "norm.weight", stored in
    float32 or narrower; the result holds 1 + w for them, as exact as float32
    can. All other entries are the same tensors as before. state and its
    tensors are not changed.
    """
    raise NotImplementedError
