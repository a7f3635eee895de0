import torch

x = torch.tensor([3.0, -1.0, 4.0, -2.0])

mean = x.mean()  # (3 - 1 + 4 - 2) / 4
centred = x - mean
variance = centred.square().mean()  # (4 + 4 + 9 + 9) / 4, divided by d
y = centred / variance.sqrt()

print(f"mean      {mean:.1f}")
print("centred  ", "  ".join(f"{value:6.3f}" for value in centred))
print(f"variance  {variance:.1f}")
print("output   ", "  ".join(f"{value:6.3f}" for value in y))
print(f"its sum    {y.sum().abs():.3f}   its length {y.norm():.3f}")
