import torch
from torch import Tensor, nn

from snippets.memory_bound.interpreter import device
from snippets.memory_bound.soft_cap import soft_cap


class CappedHead(nn.Module):
    """An output layer with capped logits."""

    def __init__(self, width: int, vocabulary: int, cap: float = 30.0):
        super().__init__()
        self.project = nn.Linear(width, vocabulary, bias=False)
        self.cap = cap

    def forward(self, x: Tensor) -> Tensor:
        return soft_cap(self.project(x), self.cap)


torch.manual_seed(0)
head = CappedHead(16, 40).to(device)
x = torch.randn(6, 16, device=device)
backend = "inductor" if device == "cuda" else "aot_eager"  # (1)!
compiled = torch.compile(head, fullgraph=True, backend=backend)
gradients = []
for run in (head, compiled):
    head.zero_grad()
    run(x).sum().backward()
    gradients.append(head.project.weight.grad)
print("same values, compiled:", torch.equal(compiled(x), head(x)))
print("same gradients:", torch.equal(*gradients))

program = torch.export.export(head, (x,))
for node in program.graph.nodes:
    if node.op == "call_function":
        print("exported:", node.target)
