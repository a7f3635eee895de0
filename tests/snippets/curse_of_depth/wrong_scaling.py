"""Wrong LayerNorm Scalings: (norm, layer) -> module, and decoder -> None."""

import torch
from torch import nn

from snippets.curse_of_depth.depth_scaling import ScaledNorm


class _Norm(nn.Module):
    def __init__(self, norm, layer):
        super().__init__()
        self.norm, self.layer = norm, layer

    def forward(self, x):
        return self.norm(x) * self.factor()


class multiplied_by_the_root(_Norm):
    def factor(self):
        return self.layer**0.5


class divided_by_the_layer(_Norm):
    def factor(self):
        return 1 / self.layer


class variance_scaled_by_the_root(_Norm):  # the abstract, taken literally
    def factor(self):
        return self.layer**-0.25


class layers_counted_from_zero(_Norm):
    def factor(self):
        return max(self.layer - 1, 1) ** -0.5


class one_layer_ahead(_Norm):
    def factor(self):
        return (self.layer + 1) ** -0.5


class factor_forgotten(_Norm):
    def factor(self):
        return 1.0


class input_scaled(_Norm):  # the norm ignores it
    def forward(self, x):
        return self.norm(x / self.layer**0.5)


class gradient_cut_at_the_factor(_Norm):
    def forward(self, x):
        y = self.norm(x)
        return y + (y * (self.layer**-0.5 - 1)).detach()


class scaled_in_place(_Norm):
    def forward(self, x):
        y = self.norm(x)
        x.data.mul_(self.layer**-0.5)
        return y * self.layer**-0.5


class output_in_float32(_Norm):
    def forward(self, x):
        return self.norm(x) * torch.tensor([self.layer**-0.5], device=x.device)


class factor_in_bfloat16(_Norm):
    def forward(self, x):
        factor = torch.tensor(self.layer**-0.5).bfloat16().to(x.dtype)
        return self.norm(x) * factor


WRONG_NORMS = [
    multiplied_by_the_root,
    divided_by_the_layer,
    variance_scaled_by_the_root,
    layers_counted_from_zero,
    one_layer_ahead,
    factor_forgotten,
    input_scaled,
    gradient_cut_at_the_factor,
    scaled_in_place,
    output_in_float32,
    factor_in_bfloat16,
]


def block_for_layer(decoder):
    for index, block in enumerate(decoder.blocks):
        block.norm = ScaledNorm(block.norm, index + 1)


def total_depth_for_layer(decoder):
    for block in decoder.blocks:
        block.norm = ScaledNorm(block.norm, len(decoder.blocks) // 2)


def only_before_attention(decoder):
    for index, block in enumerate(decoder.blocks):
        if index % 2 == 0:
            block.norm = ScaledNorm(block.norm, index // 2 + 1)


def final_norm_scaled_too(decoder):
    for index, block in enumerate(decoder.blocks):
        block.norm = ScaledNorm(block.norm, index // 2 + 1)
    decoder.norm = ScaledNorm(decoder.norm, len(decoder.blocks) // 2)


def branch_output_scaled(decoder):  # the same only for a linear branch
    for index, block in enumerate(decoder.blocks):
        block.sublayer = ScaledNorm(block.sublayer, index // 2 + 1)


def residual_scaled_too(decoder):
    for index, block in enumerate(decoder.blocks):
        decoder.blocks[index] = ScaledNorm(block, index // 2 + 1)


def deepest_layer_first(decoder):
    layers = len(decoder.blocks) // 2
    for index, block in enumerate(decoder.blocks):
        block.norm = ScaledNorm(block.norm, layers - index // 2)


def writers_scaled_instead(decoder):
    for index, block in enumerate(decoder.blocks):
        block.sublayer.writer.weight.data.mul_((index // 2 + 1) ** -0.5)


WRONG_PLACES = [
    block_for_layer,
    total_depth_for_layer,
    only_before_attention,
    final_norm_scaled_too,
    branch_output_scaled,
    residual_scaled_too,
    deepest_layer_first,
    writers_scaled_instead,
]
