import torch
from torch.nn import functional as F

from snippets.deepnorm.stacks import stack

print("gradient of down, last layer = 1")
print("at                first   1/4   1/2   3/4")
for placement, layers in (
    ("Post-Norm", 200),
    ("DeepNorm", 200),
    ("DeepNorm", 1000),
):
    torch.manual_seed(0)
    blocks = stack(placement, layers, d=16)
    x, target = torch.randn(2, 1, 8, 16, dtype=torch.float64)
    x = F.layer_norm(x, (16,))
    y = blocks(x)
    (y * target).sum(dim=-1).mean().backward()
    sizes = [block.branch.down.weight.grad.norm() for block in blocks[1::2]]
    print(f"{placement:<10}{layers:5}   ", end="")
    for quarter in range(4):
        size = sizes[max(quarter * layers // 4 - 1, 0)] / sizes[-1]
        print(f"{size:6.2f}", end="")
    print()

    spread = (y - y.mean(dim=1, keepdim=True)).square().mean().sqrt()
    cosine = F.cosine_similarity(y, x, dim=-1).mean()
    print(f"    tokens' distance from their mean: {spread:.2f}")
    print(f"    cosine of output and input: {cosine:.2f}")
