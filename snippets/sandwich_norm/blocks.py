# --8<-- [start:SandwichNorm]
from torch import Tensor, nn

from snippets.rms_norm.reference import RMSNorm


class SandwichNorm(nn.Module):
    """x + post(branch(pre(x))), the sandwich of CogView, Gemma 2 and Peri-LN.

    x is (..., d); branch keeps the shape and gets the other arguments. norm
    builds both norms from d: nn.LayerNorm makes CogView's Sandwich-LN.
    """

    def __init__(
        self, branch: nn.Module, d: int, norm: type[nn.Module] = RMSNorm
    ) -> None:
        super().__init__()
        self.pre, self.branch, self.post = norm(d), branch, norm(d)

    def forward(self, x: Tensor, *args, **options) -> Tensor:
        return x + self.post(self.branch(self.pre(x), *args, **options))


# --8<-- [end:SandwichNorm]


# --8<-- [start:ReorderedNorm]
class ReorderedNorm(nn.Module):
    """x + post(branch(x)), OLMo 2's reordered norm: nothing in front."""

    def __init__(
        self, branch: nn.Module, d: int, norm: type[nn.Module] = RMSNorm
    ) -> None:
        super().__init__()
        self.branch, self.post = branch, norm(d)

    def forward(self, x: Tensor, *args, **options) -> Tensor:
        return x + self.post(self.branch(x, *args, **options))


# --8<-- [end:ReorderedNorm]
