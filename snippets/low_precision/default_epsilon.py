# --8<-- [start:recovered_epsilon]
import torch
from torch.nn import functional as F

from snippets.rms_norm.reference import rms_norm


def recovered_epsilon(dtype: torch.dtype) -> float:
    """The eps that F.rms_norm adds for this input dtype if given none.

    A constant row x comes out as y = x / sqrt(x² + eps); solve for eps.
    """
    row = torch.full((8,), 2.0**-20, dtype=dtype)
    x, y = row[0].item(), F.rms_norm(row, (8,))[0].item()
    return (x / y) ** 2 - x**2


# --8<-- [end:recovered_epsilon]


# --8<-- [start:compare]
for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
    name = str(dtype).removeprefix("torch.")
    used, own = recovered_epsilon(dtype), torch.finfo(dtype).eps
    print(f"{name:9} eps used: {used:.1e}   finfo({name}).eps: {own:.1e}")

choices = {"fp32 finfo": 2.0**-23, "1e-6": 1e-6, "1e-5": 1e-5}
choices["bf16 finfo"] = 2.0**-7
print("\noutput RMS    ", *(f"{name:>10}" for name in choices))
for size in (1.0, 0.1, 0.01, 0.001):
    flat = torch.full((8,), size)  # a row with this RMS
    sizes = [rms_norm(flat, eps=eps)[0].item() for eps in choices.values()]
    print(f"input RMS {size:<5g}", *(f"{value:10.3f}" for value in sizes))
# --8<-- [end:compare]
