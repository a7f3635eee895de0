import torch

from snippets.soft_capping.reference import soft_cap, soft_cap_backward

cap = 50.0
grid = torch.linspace(0, 300, 1201, dtype=torch.float64)  # 1201 logits
levels = torch.tensor([100.0, 400.0, 800.0], dtype=torch.float64)
print("dtype      distinct values   is 1 - tanh^2 zero at 100, 400, 800")
for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
    values = soft_cap(grid, cap).to(dtype).unique().numel()
    t = torch.tanh((levels / cap).to(dtype))
    zero = [str(flag) for flag in (1 - t.square() == 0).tolist()]
    print(f"{str(dtype)[6:]:10} {values:15d}   {', '.join(zero)}")

z = torch.tensor([800.0])
slope = soft_cap_backward(torch.ones(1), z, cap).item()
print(f"float32, as 1 / cosh^2, at 800: {slope:.0e}")
product = torch.tensor([300.0], dtype=torch.float16)
logit = product * product  # too large for float16
print(f"float16 logit {logit.item()}, capped {soft_cap(logit, cap).item()}")
