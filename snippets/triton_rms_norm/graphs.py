import torch
from torch import nn

from snippets.triton_rms_norm.device import device
from snippets.triton_rms_norm.formula import formula
from snippets.triton_rms_norm.module import RMSNorm
from snippets.triton_rms_norm.operator import rms_norm


def show(graph, inputs):
    """A backend of torch.compile that prints the graph and runs it."""
    calls = [n for n in graph.graph.nodes if n.op.startswith("call")]
    names = [getattr(n.target, "__name__", str(n.target)) for n in calls]
    print(f"{len(names)} calls:", ", ".join(names))
    return graph


torch.manual_seed(0)
x = torch.randn(6, 8, device=device)
results = []
for norm in (rms_norm, formula):
    block = nn.Sequential(RMSNorm(8, norm=norm), nn.SiLU()).to(device)
    compiled = torch.compile(block, fullgraph=True, dynamic=False, backend=show)
    with torch.no_grad():  # with gradients, the call stands in a graph within
        results.append(compiled(x))
print("close:", torch.allclose(*results, atol=1e-6))
