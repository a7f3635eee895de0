import warnings

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention

from snippets.soft_capping.attention import capped_attention


def cap_and_mask(
    score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor
) -> Tensor:
    """A score_mod: one logit, already scaled, with its indices."""
    capped = 50.0 * torch.tanh(score / 50.0)
    return torch.where(query >= key, capped, -torch.inf)


generator = torch.Generator().manual_seed(0)
q = 20 * torch.randn(2, 4, 16, 8, generator=generator)
k, v = torch.randn(2, 2, 2, 16, 8, generator=generator)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it asks for torch.compile
    flex = flex_attention(
        q, k, v, score_mod=cap_and_mask, scale=8**-0.5, enable_gqa=True
    )
ours = capped_attention(q, k, v, 50.0, 8**-0.5)
uncapped = capped_attention(q, k, v, None, 8**-0.5)
same = torch.allclose(flex, ours, atol=1e-5)
print("FlexAttention is the same to 1e-5:", same)
print(f"without the cap: off by {(uncapped - ours).abs().max():.1f}")
