import torch

query = torch.tensor([3.0, 4.0])
for name, key in (("short", [4.0, 3.0]), ("long", [10.0, 0.0])):
    key = torch.tensor(key)
    cosine = (query / query.norm()) @ (key / key.norm())
    print(f"{name:5} key: product {query @ key:.0f}, cosine {cosine:.2f}")
