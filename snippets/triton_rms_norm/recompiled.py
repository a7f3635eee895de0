import torch

from snippets.triton_rms_norm.device import device
from snippets.triton_rms_norm.fake import FAKES

for name, means in FAKES.items():
    graphs = []

    def count(graph, inputs, graphs=graphs):
        """A backend that counts the compilations and runs the graph."""
        graphs.append(graph)
        return graph

    torch._dynamo.reset()
    compiled = torch.compile(means, fullgraph=True, backend=count)
    try:
        for length in range(4, 20):
            compiled(torch.randn(length, 8, device=device))
        print(f"{name:5} 16 row counts, compilations:", len(graphs))
    except Exception as error:
        print(f"{name:5} {type(error).__name__} after {len(graphs)} of them")
