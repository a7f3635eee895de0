import torch

from snippets.triton_rms_norm.rows import row_layout

packed = torch.empty(2, 5, 3, 4, 8)  # batch, time, q k v, heads, width
print("shape            rows heads token_stride head_stride")
for name, view in {
    "(7, 20)": torch.empty(7, 20),
    "(7, 20)[:, :16]": torch.empty(7, 20)[:, :16],
    "the keys": packed[:, :, 1],
}.items():
    rows, heads, token_stride, head_stride = row_layout(view)
    print(f"{name:16} {rows:4} {heads:5} {token_stride:12} {head_stride:11}")
