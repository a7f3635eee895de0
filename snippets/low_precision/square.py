import torch

last, next_one = torch.tensor([255.875, 256.0], dtype=torch.float16)
print(f"{last}² = {last * last}   {next_one}² = {next_one * next_one}")

squares = torch.full((4096,), 200.0, dtype=torch.float16).square()
print("each square:    ", squares.max().item())
print("sum in float16: ", squares.sum().item())
print("mean in float16:", squares.mean().item())
