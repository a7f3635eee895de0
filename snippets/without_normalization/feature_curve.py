import torch

from snippets.rms_norm.reference import rms_norm

others = torch.ones(63, dtype=torch.float64)  # fixed features of the token
print("x of one feature   RMSNorm of it   x √(d / (x² + rest))")
for x in (0.1, 1.0, 4.0, 8.0, 16.0, 64.0, 1000.0):
    feature = torch.tensor([x], dtype=torch.float64)
    token = torch.cat((feature, others))
    norm = rms_norm(token, eps=0)[0]
    formula = x * (64 / (x**2 + 63)) ** 0.5
    print(f"{x:16.1f} {norm:15.2f} {formula:22.2f}")
