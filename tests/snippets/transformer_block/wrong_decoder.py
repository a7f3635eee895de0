"""A wrong decoder that differs at every matrix: no change of one place says it."""

from types import MethodType

import torch
from torch import nn
from torch.nn import functional as F

from snippets.rms_norm.reference import RMSNorm, rms_norm
from snippets.transformer_block.decoder import Decoder


def _norms(sizes, forward):
    """A Decoder whose norms run another forward(norm, x)."""
    model = Decoder(sizes)
    for module in model.modules():
        if isinstance(module, RMSNorm):
            module.forward = MethodType(forward, module)
    return model


def norm_returns_float32(sizes):
    """Everything behind a norm is wide; right in float64 and float32."""

    def norm(self, x):
        wide = torch.promote_types(x.dtype, torch.float32)
        return rms_norm(x.to(wide), self.gain, self.eps)

    def linear(self, x):
        return F.linear(x, self.weight.to(x.dtype))

    model = _norms(sizes, norm)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.forward = MethodType(linear, module)

    def forward(tokens):
        x = model.embedding(tokens)
        for block in model.blocks:
            x = block(x)
        x = model.norm(x)
        return F.linear(x, model.embedding.weight.to(x.dtype))

    model.forward = forward
    return model
