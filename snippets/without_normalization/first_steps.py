import torch

from snippets.without_normalization.stack import stack

generator = torch.Generator().manual_seed(1)
x, target = torch.randn(2, 32, 64, generator=generator, dtype=torch.float64)
model = stack("ReZero", depth=64)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step in range(3):
    optimizer.zero_grad()
    loss = (model(x) - target).square().sum(dim=1).mean()
    loss.backward()
    alphas = torch.stack([block.alpha.grad for block in model]).abs().mean()
    matrix = model[0].body[0].weight.grad.norm()
    print(f"step {step}: gradient of an alpha {alphas:.2f}", end="   ")
    print(f"of the first matrix {matrix:.2f}")
    optimizer.step()
