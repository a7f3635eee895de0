import torch

from snippets.signal_propagation.similarity import mean_cosine
from snippets.signal_propagation.stacks import stack

TOKENS, D = 16, 64
torch.manual_seed(0)
x = torch.randn(1, TOKENS, D, dtype=torch.float64, requires_grad=True)
readout = torch.randn(D, dtype=torch.float64)

print("what the last token's output depends on: share of the squared gradient")
print("              layers   cosine   first token   2 to 15   last token")
for placement in ("Post-Norm", "Pre-Norm"):
    for layers in (2, 8, 32, 96):
        y = x
        for block in stack(placement, layers, D, equal_weights=False):
            y = block(y)
        (grad,) = torch.autograd.grad(y[0, -1] @ readout, x)
        parts = grad[0].square().sum(dim=-1)
        parts = parts / parts.sum()
        cosine = mean_cosine(y).item()
        print(f"{placement:<12}{layers:8}{cosine:9.3f}", end="")
        print(f"{parts[0]:14.3f}{parts[1:-1].sum():10.3f}{parts[-1]:13.3f}")
