import torch
from torch import Tensor


def fold_norm(
    gain: Tensor, bias: Tensor | None, weight: Tensor, offset: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """W (g n + b) + c = (W diag(g)) n + (W b + c); weight is (out, d)."""
    wide = weight.to(torch.promote_types(weight.dtype, torch.float32))
    folded = (wide * gain).to(weight.dtype)  # scales the columns
    if bias is None:
        return folded, offset
    moved = wide @ bias.to(wide.dtype)
    moved = moved if offset is None else moved + offset
    return folded, moved.to(weight.dtype)
