import torch
from torch import nn

torch.manual_seed(0)
mine, calm = torch.randn(2, 1, 3, 4)  # (1)!
layer, batch = nn.LayerNorm(4), nn.BatchNorm1d(4)

for name, other in (("calm", calm), ("wild", 10 * calm)):
    tokens = torch.cat([mine, other]).flatten(0, 1)  # (2)!
    rows, columns = layer(tokens)[0, 0], batch(tokens)[0, 0]
    print(f"{name}  LayerNorm {rows:.3f}  BatchNorm {columns:.3f}")

batch.eval()  # (3)!
print(f"eval  BatchNorm {batch(tokens)[0, 0]:.3f}")
