import torch
from torch import Tensor

from snippets.transformer_block.decoder import Decoder, Sizes
from snippets.transformer_block.norm_calls import norm_calls


def rms(x: Tensor) -> float:
    """Root mean square over everything."""
    return x.square().mean().sqrt().item()


torch.manual_seed(0)
minimind = Decoder(Sizes(qk_norm=True))
prompt = torch.randint(6400, (2, 16))
print("norm               input     rms in    out")
for call in norm_calls(minimind, prompt):
    name = call.name.removeprefix("blocks.")
    if name.startswith(("0", "7", "norm")):
        shape = "x".join(map(str, call.x.shape))
        row = f"{name:18} {shape:10}"
        print(f"{row}{rms(call.x):6.3f} {rms(call.y):6.3f}")
