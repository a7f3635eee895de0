import torch
from torch.nn import functional as F

from snippets.deepnorm.coefficients import coefficients

torch.manual_seed(0)
x, update = torch.randn(2, 64, 4096, dtype=torch.float64)

print("cosine of y and x    N = 1    100   1000")
for name, where in (("alpha * x + update", 0), ("x + alpha * update", 1)):
    cosines = []
    for layers in (1, 100, 1000):
        alpha = coefficients(decoder_layers=layers)["decoder"].alpha
        total = alpha * x + update if where == 0 else x + alpha * update
        y = F.layer_norm(total, (4096,))
        cosines.append(torch.cosine_similarity(y, x, dim=-1).mean())
    print(f"{name:<19}" + "".join(f"{c:7.2f}" for c in cosines))
