import torch

from snippets.soft_capping.reference import soft_cap

cap = 30.0
z = torch.tensor([1.0, 10.0, 30.0, 60.0, 120.0], dtype=torch.float64)
z.requires_grad_()
soft, hard = soft_cap(z, cap), z.clamp(-cap, cap)
(soft_slope,) = torch.autograd.grad(soft.sum(), z)
(hard_slope,) = torch.autograd.grad(hard.sum(), z)
print("logit   soft cap   slope     clamp   slope")
for row in zip(z, soft, soft_slope, hard, hard_slope, strict=True):
    print("{:5.0f} {:10.2f} {:7.4f} {:9.2f} {:7.4f}".format(*row))

# Two logits, 60 and 0; the second is the right answer.
runaway = {"soft cap": soft_cap, "clamp": lambda z, cap: z.clamp(-cap, cap)}
for name, function in runaway.items():
    logits = torch.tensor([60.0, 0.0], requires_grad=True)
    optimizer = torch.optim.SGD([logits], lr=1.0)
    for _ in range(1000):
        optimizer.zero_grad()
        (-function(logits, cap).log_softmax(dim=-1)[1]).backward()
        optimizer.step()
    right = function(logits, cap).softmax(dim=-1)[1].item()
    print(f"{name}: weight of the right one after training {right:.3f}")
