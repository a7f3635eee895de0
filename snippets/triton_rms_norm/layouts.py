import torch

from snippets.triton_rms_norm.rows import row_layout

packed = torch.empty(2, 5, 3, 4, 8)  # batch, time, q k v, heads, width
print("shape           rows heads token_stride head_stride align")
for name, view in {
    "(7, 20)": torch.empty(7, 20),
    "(7, 20)[:, :16]": torch.empty(7, 20)[:, :16],
    "(7, 5000)": torch.empty(7, 5000),
    "the keys": packed[:, :, 1],
}.items():
    rows, heads, *strides, align = row_layout(view)
    places = f"{strides[0]:12} {strides[1]:11} {align:5}"
    print(f"{name:15} {rows:4} {heads:5} {places}")
