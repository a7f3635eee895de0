import torch

from snippets.low_precision.cast_order import (
    gemma_style,
    llama_style,
    t5_style,
)
from snippets.rms_norm.reference import rms_norm

methods = (llama_style, gemma_style, t5_style, rms_norm)
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
print("x     gain  ", *(f"{m.__name__:>11}" for m in methods))
for x_dtype, gain_dtype in pairs:
    token = torch.tensor([1.0, -2.0, 3.0], dtype=x_dtype)
    scales = torch.tensor([0.5, 1.0, 1.5], dtype=gain_dtype)
    names = [short_name[m(token, scales, 1e-6).dtype] for m in methods]
    print(
        f"{short_name[x_dtype]}  {short_name[gain_dtype]}  ",
        *(f"{name:>11}" for name in names),
    )
