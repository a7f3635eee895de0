from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from snippets.qk_norm.rope import rotate

Norm = Callable[[Tensor], Tensor]  # over the last dimension
PLACES = ("head", "projection", "rotated")


class Attention(nn.Module):
    """Causal self-attention with rotary positions and optional QK-Norm.

    x is (batch, time, d), and so is the result. key_heads divides heads;
    heads / key_heads query heads in a row share a key head. norm builds a
    norm from the number of features it will see; queries and keys get one
    each. place says where: on each "head" alone, on the whole "projection"
    (all heads are one vector), or on each head after it was "rotated".
    scale multiplies the dot products: a number, a parameter that is
    learned, or None for 1 / sqrt(width). ValueError for another place.
    """

    def __init__(
        self,
        d: int,
        heads: int,
        key_heads: int | None = None,
        width: int | None = None,
        *,
        norm: Callable[[int], Norm] | None = None,
        place: str = "head",
        scale: float | nn.Parameter | None = None,
    ) -> None:
        super().__init__()
        if place not in PLACES:
            raise ValueError(f"place is {place!r}, not one of {PLACES}")
        self.heads, self.key_heads = heads, key_heads or heads
        self.width, self.place = width or d // heads, place
        q_size, k_size = self.heads * self.width, self.key_heads * self.width
        self.query = nn.Linear(d, q_size, bias=False)
        self.key = nn.Linear(d, k_size, bias=False)
        self.value = nn.Linear(d, k_size, bias=False)
        self.output = nn.Linear(q_size, d, bias=False)
        sizes = (q_size, k_size) if place == "projection" else [self.width] * 2
        self.query_norm, self.key_norm = (
            norm(size) if norm else nn.Identity() for size in sizes
        )
        self.scale = self.width**-0.5 if scale is None else scale

    def split(self, x: Tensor) -> Tensor:
        """(batch, time, n * width) as (batch, n, time, width)."""
        return x.unflatten(-1, (-1, self.width)).transpose(1, 2)

    def normed(self, place: str, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """q and k through their norms, if this is their place."""
        if place == self.place:
            return self.query_norm(q), self.key_norm(k)
        return q, k

    def queries_keys(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Both sides of the dot product, the scale already in the queries.

        (batch, heads, time, width) and (batch, key_heads, time, width).
        """
        q, k = self.normed("projection", self.query(x), self.key(x))
        q, k = self.normed("head", self.split(q), self.split(k))
        q, k = self.normed("rotated", rotate(q), rotate(k))
        return q * self.scale, k  # (1)!

    def logits(self, x: Tensor) -> Tensor:
        """Before mask and softmax: (batch, heads, queries, keys)."""
        q, k = self.queries_keys(x)
        return q @ k.repeat_interleave(self.heads // self.key_heads, dim=1).mT

    def forward(self, x: Tensor) -> Tensor:
        q, k = self.queries_keys(x)
        v = self.split(self.value(x))
        y = F.scaled_dot_product_attention(
            q, k, v, is_causal=True, scale=1.0, enable_gqa=True
        )
        return self.output(y.transpose(1, 2).flatten(start_dim=2))


def largest_logit(logits: Tensor) -> Tensor:
    """Per head, the largest logit that a causal mask lets through: (heads,).

    logits is (batch, heads, time, time).
    """
    seen = torch.ones_like(logits, dtype=torch.bool).tril()
    return logits.where(seen, -torch.inf).amax(dim=(0, 2, 3))
