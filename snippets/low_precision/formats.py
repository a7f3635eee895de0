import torch

print(f"{'':9} {'largest':>10} {'smallest':>9} {'1 + step':>10}")
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    info = torch.finfo(dtype)
    smallest = info.smallest_normal * info.eps  # the subnormals end here
    name = str(dtype).removeprefix("torch.")
    print(f"{name:9} {info.max:10.5g} {smallest:9.1e} {1 + info.eps:10.9g}")
