import torch
from torch.nn.functional import rms_norm


def direct(post, blocks=48, width=512):
    torch.manual_seed(0)
    start = x = torch.randn(width, requires_grad=True)
    for _ in range(blocks):
        x = x + torch.randn(width)  # (1)!
        if post:
            x = rms_norm(x, (width,), eps=1e-6)
    incoming = torch.randn(width)
    x.backward(incoming)
    return start.grad.norm() / incoming.norm()


print(f"Post {direct(True):.1e}  Pre {direct(False):.1f}  {2**-24:.1e}")
