import torch

from snippets.signal_propagation.gram import normalized, predict

DEPTHS = (6, 24, 96)
TOKENS = 16

print("left of 1 - cosine, n =" + "".join(f"{n:9}" for n in DEPTHS))
for placement in ("Post-Norm", "Pre-Norm", "DeepNorm"):
    row = []
    for layers in DEPTHS:
        alpha, beta = 1.0, 1.0
        if placement == "DeepNorm":
            alpha, beta = (2 * layers) ** 0.25, (8 * layers) ** -0.25
        outer = "Pre-Norm" if placement == "Pre-Norm" else "Post-Norm"
        gram = torch.eye(TOKENS, dtype=torch.float64)  # unrelated tokens
        gram = normalized(predict(outer, gram, layers, alpha, beta))
        pairs = TOKENS * (TOKENS - 1)
        row.append((1 - gram).sum().item() / pairs)
    print(f"{placement:<23}" + "".join(f"{value:9.2g}" for value in row))
