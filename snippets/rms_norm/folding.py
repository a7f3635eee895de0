# --8<-- [start:centre_stream]
import torch
from torch import nn

from snippets.rms_norm.centring import centre
from snippets.rms_norm.reference import RMSNorm
from snippets.rms_norm.small_decoder import SmallDecoder


@torch.no_grad()
def centre_stream(model: SmallDecoder) -> None:
    """Centre, in place, all that writes to the residual stream."""
    for table in (model.token, model.position):
        table.weight.copy_(centre(table.weight))  # each row is written
    for branch in model.branches:
        writer = branch.body.writer
        writer.weight.copy_(centre(writer.weight.T).T)  # P W
        writer.bias.copy_(centre(writer.bias))  # P b


# --8<-- [end:centre_stream]


# --8<-- [start:swap_norms]
@torch.no_grad()
def to_rms_norm(norm: nn.LayerNorm, reader: nn.Linear) -> RMSNorm:
    """An RMSNorm with norm's gain; norm's bias moves into reader's, in place.

    W (gain * n + bias) + b = W (gain * n) + (W bias + b)
    """
    reader.bias.add_(reader.weight @ norm.bias)
    replacement = RMSNorm(norm.weight.numel(), norm.eps)
    replacement.gain = nn.Parameter(norm.weight.clone())
    return replacement


def swap_norms(model: SmallDecoder) -> None:
    """Replace each LayerNorm of model by an RMSNorm, in place."""
    for branch in model.branches:
        branch.norm = to_rms_norm(branch.norm, branch.body.reader)
    model.norm = to_rms_norm(model.norm, model.head)


# --8<-- [end:swap_norms]
