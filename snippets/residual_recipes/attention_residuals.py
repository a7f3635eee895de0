import torch
from torch import Tensor, nn

from snippets.rms_norm.reference import RMSNorm

Sources = tuple[Tensor, ...]  # the embedding and all updates, each (..., d)


class DepthAttention(nn.Module):
    """A weighted mean of all sources, token by token.

    Weights are a softmax over the sources of query . RMSNorm(source);
    the query is learned and starts at 0. Kimi Team (2026).
    """

    def __init__(self, d: int) -> None:
        super().__init__()
        self.query, self.norm = nn.Parameter(torch.zeros(d)), RMSNorm(d)

    def forward(self, sources: Sources) -> Tensor:
        values = torch.stack(sources)  # (sources, ..., d)
        logits = self.norm(values) @ self.query  # (sources, ...)
        weights = logits.softmax(dim=0).unsqueeze(-1)  # (1)!
        return (weights * values).sum(dim=0)  # (..., d)


class AttentionResidual(nn.Module):
    """Append branch(norm(mean of the sources)) to the sources."""

    def __init__(self, branch: nn.Module, d: int) -> None:
        super().__init__()
        self.mix, self.norm, self.branch = DepthAttention(d), RMSNorm(d), branch

    def forward(self, sources: Sources) -> Sources:
        return (*sources, self.branch(self.norm(self.mix(sources))))


class AttentionResidualEnd(nn.Module):
    """norm(mean of the sources): what the head reads."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.mix, self.norm = DepthAttention(d), RMSNorm(d)

    def forward(self, sources: Sources) -> Tensor:
        return self.norm(self.mix(sources))
