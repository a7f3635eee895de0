import torch

x = torch.tensor([3.0, -1.0, 4.0, -2.0])

mean_square = x.square().mean()  # (9 + 1 + 16 + 4) / 4
rms = mean_square.sqrt()
y = x / rms

print(f"mean square {mean_square:.1f}")
print(f"RMS         {rms:.3f}")
print("output     ", "  ".join(f"{value:.3f}" for value in y))
print(f"its length  {y.norm():.3f}   its mean {y.mean():.3f}")
