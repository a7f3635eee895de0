import torch
from torch import Tensor

torch.manual_seed(0)
slope, unit = torch.randn(2, 4096, 64, dtype=torch.float64)  # (rows, width)
exact = (slope * unit).sum(dim=0)
products = (slope * unit).float()


def added(rows: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The sum of the rows, one after the other, rounded each time."""
    total = torch.zeros(rows.shape[1], dtype=dtype)
    for row in rows:
        total = (total + row).to(dtype)
    return total


def walked(programs: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Partial sums: program p adds the rows p, p + programs, ..."""
    sums = [added(products[p::programs], dtype) for p in range(programs)]
    return torch.stack(sums)


def results(orders: list[Tensor]) -> int:
    """How many different results the orders of addition give."""
    return len({tuple(added(products[order]).tolist()) for order in orders})


shuffled = [torch.randperm(4096) for _ in range(20)]
print("results of 20 orders:", results(shuffled))
print("results of one order, 20 times:", results(20 * shuffled[:1]))
sums = [added(walked(programs)) for programs in (108, 132)]
print("108 and 132 programs, the same bits:", torch.equal(*sums))
for dtype in (torch.float32, torch.bfloat16):
    gap = (added(walked(128, dtype)) - exact).norm() / exact.norm()
    print(f"error, sums in {dtype}: {gap:.0e}")
