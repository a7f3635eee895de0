from collections import Counter

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Operations(TorchDispatchMode):
    """Counts what runs below autograd, views left out."""

    def __init__(self) -> None:
        super().__init__()
        self.found = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if not function.is_view:
            self.found[function.overloadpacket.__name__] += 1
        return result


packed = torch.randn(2, 7, 64, requires_grad=True)  # q 32, k 16, v 16
cuts = {
    "slices": lambda x: (x[..., :32], x[..., 32:48], x[..., 48:]),
    "split": lambda x: x.split([32, 16, 16], dim=-1),
}
for name, cut in cuts.items():
    parts = cut(packed)
    slopes = [torch.ones(part.shape) for part in parts]
    with Operations() as operations:
        torch.autograd.grad(parts, packed, slopes)
    print(f"{name:6}", dict(operations.found))
