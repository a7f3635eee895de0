import torch
from torch import nn

from snippets.triton_layer_norm.device import device
from snippets.triton_layer_norm.module import LayerNorm

torch.manual_seed(0)
linear = nn.Linear(64, 64)
ours = nn.Sequential(LayerNorm(64), linear).to(device)
theirs = nn.Sequential(nn.LayerNorm(64), linear).to(device)
theirs.load_state_dict(ours.state_dict())  # the same names
compiled = torch.compile(ours, fullgraph=True, backend="aot_eager")

x = torch.randn(2, 10, 64, device=device)
results = []
for model in (ours, compiled, theirs):
    model.zero_grad()
    model(x).square().mean().backward()
    first = model[0] if model is not compiled else ours[0]
    results.append((first.weight.grad.clone(), first.bias.grad.clone()))
eager, graph, torch_own = results
print("compiled, bit for bit:", all(map(torch.equal, eager, graph)))
print("as nn.LayerNorm:", all(map(torch.allclose, eager, torch_own)))
