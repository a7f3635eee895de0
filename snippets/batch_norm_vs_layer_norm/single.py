import torch
from torch import nn

torch.manual_seed(0)
norm = nn.BatchNorm1d(8).double()
for _ in range(100):
    norm(torch.randn(512, 8, dtype=torch.float64) * 2 + 1)
batch = torch.randn(64, 8, dtype=torch.float64) * 2 + 1

norm.eval()
alone = torch.cat([norm(row) for row in batch.split(1)])
same = torch.allclose(alone, norm(batch), rtol=0, atol=1e-12)
print("eval, one by one or 64 at once: same:", same)

norm.train()
try:
    norm(batch[:1])
except ValueError as error:
    print("train, one token:", type(error).__name__)
sequence = torch.randn(1, 8, 512, dtype=torch.float64) * 2 + 1  # (N, C, L)
y = norm(sequence)
print(f"train, one sequence of 512 tokens: std {y.std(correction=0):.2f}")
