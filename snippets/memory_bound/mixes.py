import torch
import triton

from snippets.memory_bound.interpreter import device
from snippets.memory_bound.streams import BLOCK, add_streams

torch.manual_seed(0)
size = 10_000
sources = torch.randn(3, size, device=device).to(torch.bfloat16)
for reads, writes in ((1, 1), (2, 1), (2, 2), (3, 1)):
    y, z = (torch.empty_like(sources[0]) for _ in range(2))
    add_streams[(triton.cdiv(size, BLOCK),)](
        *sources, y, z, size, reads, writes, BLOCK
    )
    exact = sources[:reads].double().sum(0)
    near = torch.allclose(y.double(), exact, rtol=2**-7)
    moved = (reads + writes) * size * y.element_size()
    print(f"{reads}R{writes}W: {moved} bytes, sum is right: {near}")
