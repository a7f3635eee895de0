import warnings

import torch
from torch.nn import functional as F

from snippets.low_precision.cast_order import (
    gemma_style,
    llama_style,
    t5_style,
)
from snippets.rms_norm.reference import rms_norm

warnings.filterwarnings("ignore", "Mismatch dtype")  # F.rms_norm's
methods = {
    "Llama": llama_style,
    "Gemma": gemma_style,
    "T5": t5_style,
    "rms_norm": rms_norm,
    "F.rms_norm": lambda x, gain, eps: F.rms_norm(x, (3,), gain, eps),
}
pairs = [
    (torch.bfloat16, torch.bfloat16),
    (torch.bfloat16, torch.float32),
    (torch.float16, torch.float32),
    (torch.float32, torch.bfloat16),
]
short_name = {
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.float32: "fp32",
}
print("x     gain  ", *(f"{name:>10}" for name in methods))
for x_dtype, gain_dtype in pairs:
    token = torch.tensor([1.0, -2.0, 3.0], dtype=x_dtype)
    scales = torch.tensor([0.5, 1.0, 1.5], dtype=gain_dtype)
    dtypes = [m(token, scales, 1e-6).dtype for m in methods.values()]
    print(
        f"{short_name[x_dtype]}  {short_name[gain_dtype]}  ",
        *(f"{short_name[dtype]:>10}" for dtype in dtypes),
    )
