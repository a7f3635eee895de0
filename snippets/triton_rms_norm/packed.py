from textwrap import fill

import torch

from snippets.triton_rms_norm.device import device
from snippets.triton_rms_norm.operator import rms_norm

torch.manual_seed(0)
projection = torch.randn(2, 5, 3, 4, 64, device=device)
gain = torch.rand(64, device=device)
keys = projection[:, :, 1]  # (2, 5, 4, 64): a view, with gaps
print("contiguous:", keys.is_contiguous())
copied = rms_norm(keys.contiguous(), gain)
print("as of a copy:", torch.equal(rms_norm(keys, gain), copied))
for x, weight in (
    (projection.double(), gain),
    (keys, gain[:32]),
    (keys.transpose(2, 3), gain[:4]),
):
    try:
        rms_norm(x, weight)
    except (TypeError, ValueError) as error:
        print(fill(f"{type(error).__name__}: {error}", 70))
