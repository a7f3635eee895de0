import torch

from snippets.rms_norm.reference import RMSNorm

torch.manual_seed(0)
model = torch.nn.Sequential(RMSNorm(8), torch.nn.Linear(8, 8))
try:
    torch.optim.Muon(model.parameters())
except ValueError as error:
    print(str(error).partition(" whereas")[0])

matrices = [p for p in model.parameters() if p.ndim == 2]
vectors = [p for p in model.parameters() if p.ndim < 2]
optimizers = (
    torch.optim.Muon(matrices, lr=0.02),
    torch.optim.AdamW(vectors, lr=3e-4, weight_decay=0.0),
)
before = [p.detach().clone() for p in (*matrices, *vectors)]
model(torch.randn(64, 8)).square().mean().backward()
for optimizer in optimizers:
    optimizer.step()
for old, p in zip(before, (*matrices, *vectors), strict=True):
    step = p.detach() - old
    if p.ndim == 2:
        sizes, of = torch.linalg.svdvals(step), "singular values"
    else:
        sizes, of = step.abs(), "entries"
    print(f"{tuple(p.shape)!s:6} {of}: {sizes.min():.4f} to {sizes.max():.4f}")
