import torch
from torch import Tensor
from torch.nn import functional as F


def cloud(d: int = 512) -> tuple[Tensor, Tensor, Tensor]:
    """(sizes, tokens, LayerNorm of the tokens): six tokens, faint to loud.

    sizes is (6,); the others are (6, d), all float64.
    """
    generator = torch.Generator().manual_seed(0)
    sizes = 2.0 ** torch.arange(-1, 5)
    tokens = torch.randn(6, d, generator=generator, dtype=torch.float64)
    tokens = tokens * sizes[:, None]
    return sizes, tokens, F.layer_norm(tokens, (d,))
