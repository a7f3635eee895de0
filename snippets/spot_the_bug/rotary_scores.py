from torch import Tensor, nn

from snippets.qk_norm.rope import rotate


class RotaryScores(nn.Module):
    """Attention scores with QK-Norm and rotary positions.

    q and k are (batch, heads, time, width). A shift of all positions leaves
    the scores as they are.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.q_norm = nn.RMSNorm(width, eps=1e-6)
        self.k_norm = nn.RMSNorm(width, eps=1e-6)

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        q, k = rotate(q), rotate(k)
        q, k = self.q_norm(q), self.k_norm(k)
        return q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
