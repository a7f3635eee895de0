import copy

import torch

from snippets.rms_norm.folding import centre_stream, swap_norms
from snippets.rms_norm.small_decoder import SmallDecoder

torch.manual_seed(0)
layer_norm_model = SmallDecoder(d=48, layers=3, heads=4, context=32).double()
with torch.no_grad():
    for parameter in layer_norm_model.parameters():
        parameter.add_(0.2 * torch.randn_like(parameter))  # also gains, biases
text = torch.randint(256, (2, 32))
logits = layer_norm_model(text)


def largest_gap(*steps) -> float:
    """Largest change of a logit after the steps, run on a copy."""
    model = copy.deepcopy(layer_norm_model)
    for step in steps:
        step(model)
    return (model(text) - logits).abs().max().item()


print(f"logits have standard deviation {logits.std():.1f}")
gap = largest_gap(centre_stream)
print("centre_stream alone: the same model to 1e-11:", gap < 1e-11)
print(f"swap_norms alone changes a logit by {largest_gap(swap_norms):.2f}")
gap = largest_gap(centre_stream, swap_norms)
print("both: the same model to 1e-11:", gap < 1e-11)
