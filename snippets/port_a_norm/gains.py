# --8<-- [start:gain_of]
import torch
from torch import Tensor

FORMS = {"w": 0.0, "1+w": 1.0}  # what the norm adds to the stored weight


def gain_of(weight: Tensor, form: str) -> Tensor:
    """What a norm multiplies by, from what its checkpoint stores.

    weight is (d,) in any floating dtype; the result is float32 (float64 for
    float64). KeyError for an unknown form.
    """
    wide = torch.promote_types(weight.dtype, torch.float32)
    return FORMS[form] + weight.to(wide)  # (1)!


# --8<-- [end:gain_of]


# --8<-- [start:weight_of]
def weight_of(gain: Tensor, form: str) -> Tensor:
    """What a norm of this form stores for a gain: the inverse of gain_of."""
    wide = torch.promote_types(gain.dtype, torch.float32)
    return gain.to(wide) - FORMS[form]


# --8<-- [end:weight_of]
