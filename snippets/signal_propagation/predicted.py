import torch

from snippets.signal_propagation.gram import normalized, predict
from snippets.signal_propagation.similarity import mean_cosine
from snippets.signal_propagation.stacks import stack

DEPTHS = (1, 2, 4, 8, 16, 32)
torch.manual_seed(0)
x = torch.randn(8, 16, 256, dtype=torch.float64)  # 16 tokens, unrelated

print("mean cosine after layer   " + "".join(f"{n:7}" for n in DEPTHS))
for placement in ("Post-Norm", "Pre-Norm"):
    cosines = []
    for layers in DEPTHS:
        gram = torch.eye(16, dtype=torch.float64)
        gram = normalized(predict(placement, gram, layers, 1.0, 1.0))
        cosines.append((gram.sum() - 16) / (16 * 15))
    name = f"{placement}, predicted"
    print(f"{name:<26}" + "".join(f"{c:7.3f}" for c in cosines))

    for drawn, equal in (("equal weights", True), ("drawn weights", False)):
        y, found = x, {}
        with torch.no_grad():
            for i, block in enumerate(stack(placement, 32, 256, equal)):
                y = block(y)
                found[(i + 1) / 2] = mean_cosine(y).mean()
        row = "".join(f"{found[layers]:7.3f}" for layers in DEPTHS)
        print(f"    {drawn:<22}" + row)
