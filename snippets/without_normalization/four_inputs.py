import torch

from snippets.rms_norm.reference import rms_norm
from snippets.without_normalization.reference import dynamic_tanh

one, zero, half = torch.ones(4), torch.zeros(4), torch.tensor(0.5)
token = torch.tensor([3.0, -1.0, 4.0, -2.0])
inputs = {
    "x": token,
    "10 x": 10 * token,
    "x / 10": token / 10,
    "4 -> 40": torch.tensor([3.0, -1.0, 40.0, -2.0]),
}

print("input     RMSNorm                     DyT, alpha = 0.5")
for name, x in inputs.items():
    outputs = (rms_norm(x), dynamic_tanh(x, half, one, zero))
    cells = [" ".join(f"{v:5.2f}" for v in y.tolist()) for y in outputs]
    print(f"{name:9} {cells[0]}     {cells[1]}")
