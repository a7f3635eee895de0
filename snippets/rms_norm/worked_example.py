import torch

x = torch.tensor([3.0, -1.0, 4.0, -2.0])
centred = x - x.mean()

for name, v in (("RMSNorm  ", x), ("LayerNorm", centred)):
    mean_square = v.square().mean()
    y = v / mean_square.sqrt()
    print(
        f"{name}  mean square {mean_square:.1f}, root {mean_square.sqrt():.3f}"
    )
    print("          ", "  ".join(f"{value:6.3f}" for value in y))
    print(f"           length {y.norm():.3f}, mean {y.mean().abs():.3f}")
