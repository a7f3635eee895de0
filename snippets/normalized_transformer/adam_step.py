import torch

from snippets.normalized_transformer.scale import Scale

for name, init, scale in (
    ("alpha, stored at 1/√1024", 0.05, 1024**-0.5),
    ("alpha, stored as it is", 0.05, 0.05),
    ("s_qk,  stored at 1/√1024", 1.0, 1024**-0.5),
    ("s_qk,  stored as it is", 1.0, 1.0),
):
    vector = Scale(4, init, scale)
    before = vector().detach()[0].item()
    optimizer = torch.optim.Adam(vector.parameters(), lr=1e-3)
    vector().sum().backward()
    optimizer.step()
    moved = abs(vector()[0].item() - before)
    print(f"{name:<26} at {before:.2f}, one step moves it by {moved:.4f}")
