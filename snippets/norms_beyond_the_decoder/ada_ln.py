from torch import Tensor, nn


class AdaLNZero(nn.Module):
    """x + alpha * body((1 + scale) * LayerNorm(x) + shift).

    shift, scale and alpha come from the condition c, (batch, d); x is
    (batch, time, d). They start at zero, so the block starts as x.
    """

    def __init__(self, d: int, body: nn.Module, eps: float = 1e-6) -> None:
        super().__init__()
        self.body = body
        self.norm = nn.LayerNorm(d, eps=eps, elementwise_affine=False)
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(d, 3 * d))
        nn.init.zeros_(self.modulation[1].weight)
        nn.init.zeros_(self.modulation[1].bias)

    def forward(self, x: Tensor, c: Tensor) -> Tensor:
        parts = self.modulation(c).unsqueeze(1).chunk(3, dim=-1)
        shift, scale, alpha = parts  # each (batch, 1, d)
        return x + alpha * self.body((1 + scale) * self.norm(x) + shift)
