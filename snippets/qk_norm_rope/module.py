# --8<-- [start:QueriesAndKeys]
import torch
from torch import Tensor, nn

from snippets.qk_norm_rope.device import device
from snippets.qk_norm_rope.operator import angles, qk_norm_rope


class QueriesAndKeys(nn.Module):
    """Projects tokens; norms and rotates queries and keys, head by head."""

    def __init__(self, d: int, heads: int, keys: int, width: int) -> None:
        super().__init__()
        self.sizes = [heads * width, keys * width, keys * width]
        self.width = width
        self.projection = nn.Linear(d, sum(self.sizes), bias=False)
        self.q_gain = nn.Parameter(torch.ones(width))
        self.k_gain = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> list[Tensor]:
        q, k, v = (
            part.unflatten(-1, (-1, self.width))  # a view
            for part in self.projection(x).split(self.sizes, dim=-1)
        )
        q = qk_norm_rope(q, self.q_gain, cos, sin)
        k = qk_norm_rope(k, self.k_gain, cos, sin)
        return [t.transpose(1, 2) for t in (q, k, v)]  # as attention takes it


# --8<-- [end:QueriesAndKeys]


# --8<-- [start:graph]
def show(graph, inputs):
    """A backend of torch.compile that prints the graph and runs it."""
    calls = [n for n in graph.graph.nodes if n.op.startswith("call")]
    names = [getattr(n.target, "__name__", str(n.target)) for n in calls]
    print(f"{len(names)} calls:", *dict.fromkeys(names))
    return graph


torch.manual_seed(0)
layer = QueriesAndKeys(48, heads=4, keys=2, width=16).to(device)
tokens = torch.randn(2, 7, 48, device=device)
tables = angles(7, 16, device=device)
compiled = torch.compile(layer, fullgraph=True, backend=show)
with torch.no_grad():  # with gradients, each call stands in a graph within
    parts = zip(layer(tokens, *tables), compiled(tokens, *tables), strict=True)
    print("as in eager mode:", all(torch.equal(a, b) for a, b in parts))
# --8<-- [end:graph]
