import torch
from torch.nn.functional import rms_norm


def walk(alpha, post, width=4096):
    torch.manual_seed(0)
    x = torch.randn(width)
    for block in range(1, 201):
        branch = torch.randn(width)  # (1)!
        x = alpha * x + branch  # (2)!
        share = branch.norm() / x.norm()
        x = rms_norm(x, (width,), eps=1e-6) if post else x
        if block in (1, 10, 100, 200):
            yield f"{x.norm() / width**0.5:5.2f} {share:.2f}"


print("Pre      ", "   ".join(walk(1, post=False)))
print("Post     ", "   ".join(walk(1, post=True)))
print("DeepNorm ", "   ".join(walk(200**0.25, post=True)))
