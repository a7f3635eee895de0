import torch

row = torch.tensor([300.0, 1.0, -200.0, 2.0], dtype=torch.float16)


def narrow(x):
    return x * torch.rsqrt(x.square().mean() + 1e-6)  # (1)!


def wide(x):
    return narrow(x.float()).to(x.dtype)  # (2)!


print("squares", row.square().tolist())
print("narrow ", narrow(row).tolist())
print("wide   ", [round(y, 3) for y in wide(row).tolist()])
print("1 + 1/256 =", (torch.ones(1).bfloat16() + 1 / 256).item())
