import torch
from torch import nn

norm = nn.BatchNorm1d(5)  # five features
x = torch.arange(60.0).reshape(2, 6, 5)  # batch, sequence, features

try:
    norm(x)
except RuntimeError as error:
    print("6 positions:", type(error).__name__)

square = x[:, :5]  # sequence of 5: as long as there are features
wrong = norm(square)
right = norm(square.transpose(1, 2)).transpose(1, 2)
print("5 positions: no error, right:", torch.allclose(wrong, right))
