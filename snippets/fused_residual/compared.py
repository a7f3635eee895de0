import torch
from torch import Tensor, nn

from snippets.fused_residual.device import device
from snippets.fused_residual.stack import passed_along, plain


def run(stack, dtype: torch.dtype) -> list[Tensor]:
    """The output, then the gradients of x and of all gains."""
    torch.manual_seed(0)
    x = torch.randn(40, 96, device=device)
    branches = [nn.Linear(96, 96, device=device) for _ in range(8)]
    gains = [1 + torch.randn(96, device=device) / 4 for _ in range(9)]
    slope = torch.randn_like(x).to(torch.float16).to(dtype)
    rounded = [t.to(torch.float16).to(dtype) for t in (x, *gains)]
    x, *gains = (t.requires_grad_() for t in rounded)
    branches = [branch.to(torch.float16).to(dtype) for branch in branches]
    y = stack(x, branches, gains)
    return [y.detach(), *torch.autograd.grad(y, (x, *gains), slope)]


for dtype in (torch.float32, torch.float16):
    ours, theirs = run(passed_along, dtype), run(plain, dtype)
    print(dtype, "same bits in the output:", torch.equal(ours[0], theirs[0]))
    both = list(zip(ours[1:], theirs[1:], strict=True))
    limit = 16 * torch.finfo(dtype).eps
    near = [(a - b).norm() <= limit * b.norm() for a, b in both]
    print(f"  {len(both)} gradients agree:", all(near))
