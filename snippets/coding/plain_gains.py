from torch import Tensor


def plain_gains(state: dict[str, Tensor], norms: set[str]) -> dict[str, Tensor]:
    """1 + w, in float32, for the weights (d,) of the named norms."""
    offsets = {f"{norm}.weight" for norm in norms}
    return {
        name: 1 + value.float() if name in offsets else value
        for name, value in state.items()
    }
