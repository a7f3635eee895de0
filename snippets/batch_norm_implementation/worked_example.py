import torch
from torch import nn

batch = torch.tensor([[0.0], [2.0]])  # two tokens, one feature
norm = nn.BatchNorm1d(1, eps=1e-12, momentum=1.0)  # keep the last batch only

y = norm(batch)
print("train mode:", [f"{value:.3f}" for value in y.flatten()])
print(f"stored:     mean {norm.running_mean[0]:.1f}", end="   ")
print(f"variance {norm.running_var[0]:.1f}")

y = norm.eval()(batch)
print("eval mode: ", [f"{value:.3f}" for value in y.flatten()])
