from torch import Tensor, nn


class DeepNorm(nn.Module):
    """LayerNorm(alpha x + branch(x)), x is (..., d). Wang et al. (2022)."""

    def __init__(self, branch: nn.Module, d: int, layers: int) -> None:
        super().__init__()
        self.alpha = (2 * layers) ** 0.25
        self.branch, self.norm = branch, nn.LayerNorm(d)
        beta = (8 * layers) ** -0.25
        for name, layer in branch.named_modules():
            if isinstance(layer, nn.Linear):
                plain = name.rpartition(".")[2] in ("query", "key")
                nn.init.xavier_normal_(layer.weight, 1.0 if plain else beta)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.alpha * x + self.branch(x))
