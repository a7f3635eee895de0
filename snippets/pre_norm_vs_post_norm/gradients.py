import torch
from torch import Tensor

from snippets.pre_norm_vs_post_norm.decoder import Decoder
from snippets.pre_norm_vs_post_norm.trial import next_token_loss


def gradient_norms(decoder: Decoder, text: Tensor) -> list[float]:
    """Per layer: the gradient norm of the feed-forward's last matrix."""
    writers = [block.sublayer.writer.weight for block in decoder.blocks[1::2]]
    loss = next_token_loss(decoder, text)
    return [g.norm().item() for g in torch.autograd.grad(loss, writers)]
