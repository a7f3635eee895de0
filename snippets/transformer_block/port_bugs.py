import copy

import torch
from torch import nn

from snippets.transformer_block.decoder import Decoder, Sizes
from snippets.transformer_block.first_difference import first_difference
from snippets.transformer_block.norm_calls import norm_calls

torch.manual_seed(0)
small = Sizes(48, 2, 4, 2, 16, 96, 100, qk_norm=True)
original = Decoder(small)
with torch.no_grad():  # gains that are not one, or swapped gains hide
    for parameter in original.parameters():
        if parameter.ndim == 1:
            parameter.uniform_(0.5, 1.5)
        else:
            parameter.mul_(3)


def eps_of_another_model(port: Decoder) -> None:
    for block in port.blocks:
        block.attention_norm.eps = block.ffn_norm.eps = 1e-6


def gain_read_as_offset(port: Decoder) -> None:
    for name, parameter in port.named_parameters():
        if name.endswith("gain"):
            parameter.data += 1


def query_and_key_gains_swapped(port: Decoder) -> None:
    for block in port.blocks:
        layer = block.attention
        layer.q_norm, layer.k_norm = layer.k_norm, layer.q_norm


def rotary_pairs_adjacent(port: Decoder) -> None:
    for block in port.blocks:  # rows of Meta's order in code for halves
        for linear in (block.attention.q, block.attention.k):
            rows = linear.weight.data.unflatten(0, (-1, 2, small.width // 2))
            linear.weight.data = rows.transpose(1, 2).flatten(0, 2)


def gate_and_up_swapped(port: Decoder) -> None:
    for block in port.blocks:
        block.ffn.gate, block.ffn.up = block.ffn.up, block.ffn.gate


def ffn_norm_forgotten(port: Decoder) -> None:
    for block in port.blocks:
        block.ffn_norm = nn.Identity()


def final_norm_forgotten(port: Decoder) -> None:
    port.norm = nn.Identity()


def all_in_bfloat16(port: Decoder) -> None:
    port.bfloat16()


tokens = torch.randint(100, (2, 12))
expected = norm_calls(original, tokens)
for bug in (
    eps_of_another_model,
    gain_read_as_offset,
    query_and_key_gains_swapped,
    rotary_pairs_adjacent,
    gate_and_up_swapped,
    ffn_norm_forgotten,
    final_norm_forgotten,
    all_in_bfloat16,
):
    port = copy.deepcopy(original)
    bug(port)
    found = first_difference(expected, norm_calls(port, tokens))
    print(
        f"{bug.__name__}:\n  "
        + found.replace(": ", "\n    ").replace(" (", "\n    (")
    )
