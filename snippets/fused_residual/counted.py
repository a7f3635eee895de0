import torch
from torch import Tensor

from snippets.fused_residual.device import device
from snippets.fused_residual.operator import add_rms_norm
from snippets.fused_residual.traffic import Traffic
from snippets.triton_rms_norm.operator import rms_norm


def by_hand(x: Tensor, branch: Tensor, gain: Tensor) -> tuple[Tensor, Tensor]:
    """In eager PyTorch, in the order of Hugging Face's Llama."""
    x = x + branch
    wide = x.to(torch.float32)
    mean_square = wide.pow(2).mean(-1, keepdim=True)
    return x, gain * (wide * torch.rsqrt(mean_square + 1e-6)).to(x.dtype)


def two_kernels(x: Tensor, branch: Tensor, gain: Tensor):
    x = x + branch
    return x, rms_norm(x, gain)


LARGE = 16_384 * 4096  # elements of x, for the times of the model
BANDWIDTHS = {"H100": 3.35e12, "H200": 4.8e12}  # bytes a second, datasheets

rows, width = 32, 64
print("bytes/element   forth  back  both  model us:", *BANDWIDTHS)
for dtype in (torch.bfloat16, torch.float32):
    print(dtype)
    for function in (by_hand, two_kernels, add_rms_norm):
        drawn = torch.randn(4, rows, width, device=device).to(dtype)
        x, branch, dstream, dy = drawn
        gain = torch.ones(width, dtype=dtype, device=device)
        inputs = [t.requires_grad_() for t in (x, branch, gain)]
        with Traffic(x.numel()) as there:
            outputs = function(*inputs)
        with Traffic(x.numel()) as back:
            torch.autograd.grad(outputs, inputs, (dstream, dy))
        counts = [t.bytes // x.numel() for t in (there, back)]
        line = f"{counts[0]:5} {counts[1]:5} {sum(counts):5}"
        moved = 1e6 * sum(counts) * LARGE
        times = [f"{moved / rate:5.0f}" for rate in BANDWIDTHS.values()]
        print(f"  {function.__name__:13}{line} {' '.join(times):>22}")
