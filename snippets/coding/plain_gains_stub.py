from torch import Tensor


def plain_gains(state: dict[str, Tensor], norms: set[str]) -> dict[str, Tensor]:
    """A checkpoint with norms that multiply by 1 + w, for plain norms.

    norms names the modules that do so, such as "model.norm". Their weights w
    are stored in float32 or narrower; the result holds 1 + w for them, as exact
    as float32 can. All other entries, the gains of plain norms among them, are
    the same tensors as before. state and its tensors are not changed.
    """
    raise NotImplementedError
