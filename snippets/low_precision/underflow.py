import torch

from snippets.low_precision.naive import rms_norm_naive
from snippets.rms_norm.reference import rms_norm

faint = torch.full((4,), 1e-4, dtype=torch.float16)
print(f"{faint[0]:.1e} squared in float16: {faint[0] * faint[0]}")

blank, unit = torch.zeros_like(faint), torch.ones_like(faint)
print("eps     stored    naive: faint  zero   upcast: faint  zero")
for eps in (1e-5, 1e-6, 1e-8, 1e-12):
    stored = torch.tensor(eps, dtype=torch.float16).item()
    outputs = [
        method(row, unit, eps)[0].item()
        for method in (rms_norm_naive, rms_norm)
        for row in (faint, blank)
    ]
    cells = "{:13.3f} {:5.1f} {:15.3f} {:5.1f}".format(*outputs)
    print(f"{eps:.0e}   {stored:.0e} {cells}")
