import torch

from snippets.triton_layer_norm.device import device
from snippets.triton_layer_norm.variances import variance_of_row


def worst_error(x, way):
    """Largest relative error of a row's variance, and rows below zero."""
    rows, width = x.shape
    found = torch.empty(rows, device=x.device)
    with torch.cuda.device_of(x):
        variance_of_row[(rows,)](x, found, width, 512, way)
    right = x.double().var(dim=-1, correction=0)
    return float((found / right - 1).abs().max()), int((found < -1e-5).sum())


torch.manual_seed(0)
noise = torch.randn(8, 500, dtype=torch.float64, device=device)
print(" mean centred  merged moments NaN unmasked")
for mean in (0, 1, 10, 100, 1000, 3000):
    x = (noise + mean).float()
    ways = ("centred", "merged", "moments", "unmasked")
    centred, merged, moments, unmasked = (worst_error(x, way) for way in ways)
    print(
        f"{mean:5} {centred[0]:7.0e} {merged[0]:7.0e} {moments[0]:7.0e} "
        f"{moments[1]:3} {unmasked[0]:8.0e}"
    )
