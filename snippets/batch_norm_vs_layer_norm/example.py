import torch

tokens = torch.tensor([[1.0, 3.0], [5.0, 7.0]])  # two tokens, two features


def standardized(x, axis):
    mean = x.mean(axis, keepdim=True)
    return (x - mean) / x.std(axis, correction=0, keepdim=True)


print("LayerNorm, over features:", standardized(tokens, 1).tolist())
print("BatchNorm, over tokens:  ", standardized(tokens, 0).tolist())
