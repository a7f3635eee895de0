import torch
import triton
import triton.language as tl

from snippets.memory_bound.interpreter import device


@triton.jit
def sign(y, size, BLOCK: tl.constexpr):
    """Every program writes its number into its block."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + place, tl.program_id(0), mask=place < size)


y = torch.full((16,), -1, device=device)
size = 10
grid = (triton.cdiv(size, 4),)
sign[grid](y, size, 4)
print("programs:", grid[0])
print(y.tolist())
