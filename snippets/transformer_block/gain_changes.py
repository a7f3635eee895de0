from torch import Tensor


def gain_changes(
    before: dict[str, Tensor], after: dict[str, Tensor], one: float = 0.0
) -> dict[str, tuple[float, float]]:
    """Per norm: the factor that all its gains share, and the relative rest.

    The factor is the best one in least squares. Pass one=1 for gains that are
    stored as their distance from one.
    """
    found = {}
    for name, stored in before.items():
        if name.endswith(("norm.gain", "norm.weight")):
            old, new = one + stored.double(), one + after[name].double()
            factor = (old @ new) / (old @ old)
            rest = (new - factor * old).norm() / old.norm()
            found[name] = factor.item(), rest.item()
    return found
