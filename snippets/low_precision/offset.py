import torch

print("offset         1 + offset: bfloat16   float32")
for value in (0.00390625, 0.01, 15.8125):
    offset = torch.tensor(value, dtype=torch.bfloat16)
    narrow, wide = 1 + offset, 1 + offset.float()
    print(f"{offset.item():<12.8g} {narrow.item():21.8g} {wide.item():13.8g}")
