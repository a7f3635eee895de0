from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F

from snippets.rms_norm.reference import rms_norm


class CausalAttention(nn.Module):
    """Causal self-attention, if wanted with RMSNorm on queries and keys.

    x is (batch, time, d). As in OLMo 2 the norm takes all heads together;
    it has no gain here.
    """

    def __init__(self, d: int, heads: int, qk_norm: bool) -> None:
        super().__init__()
        self.heads, self.qk_norm = heads, qk_norm
        linear = partial(nn.Linear, d, d, bias=False)
        self.query, self.key, self.value = linear(), linear(), linear()
        self.output = linear()

    def queries_and_keys(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Two tensors (batch, heads, time, d / heads)."""
        q, k = self.query(x), self.key(x)
        if self.qk_norm:
            q, k = rms_norm(q), rms_norm(k)
        return self.split(q), self.split(k)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        q, k = self.queries_and_keys(x)
        v = self.split(self.value(x))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.output(y.transpose(1, 2).flatten(start_dim=2))
