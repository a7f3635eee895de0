import torch
from torch import Tensor
from torch.nn import functional as F

from snippets.pre_norm_vs_post_norm.blocks import PostNormBlock, PreNormBlock
from snippets.pre_norm_vs_post_norm.decoder import Decoder, initialize

PLACEMENTS = {  # name: block, final norm
    "Post-Norm": (PostNormBlock, False),
    "Pre-Norm with final norm": (PreNormBlock, True),
    "Pre-Norm without final norm": (PreNormBlock, False),
}
VOCABULARY = 64


def fresh(placement: str, layers: int, seed: int) -> Decoder:
    """A narrow decoder at initialization, in float64."""
    block, final_norm = PLACEMENTS[placement]
    decoder = Decoder(
        32, layers, 2, VOCABULARY, block=block, final_norm=final_norm
    )
    return initialize(decoder, seed).double()


def random_text(seed: int, batch: int = 4, time: int = 17) -> Tensor:
    """Uniform random tokens of shape (batch, time)."""
    generator = torch.Generator().manual_seed(1000 + seed)
    return torch.randint(VOCABULARY, (batch, time), generator=generator)


def next_token_loss(decoder: Decoder, text: Tensor) -> Tensor:
    """Mean cross-entropy of each next token; text is (batch, time)."""
    logits = decoder(text[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())


def spread(values: list[float]) -> str:
    """Median [lowest, highest] of an odd number of values."""
    ordered = sorted(values)
    middle = ordered[len(ordered) // 2]
    return f"{middle:.2f} [{ordered[0]:.2f}, {ordered[-1]:.2f}]"
