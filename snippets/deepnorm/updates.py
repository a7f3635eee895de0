import torch
from torch.nn import functional as F

from snippets.deepnorm.stacks import stack

STEP = 1e-6  # small enough for the output to change in proportion to it
MATRICES = ("value", "output", "up", "down")
GROUPS = {
    "SGD, the scaled matrices": (MATRICES, False),
    "SGD, queries and keys": (("query", "key"), False),
    "SGD, the norms' gains and biases": (("norm",), False),
    "signs, the scaled matrices": (MATRICES, True),
}


def changes(placement: str, layers: int) -> list[float]:
    """RMS change of the output per unit of step, for each of GROUPS.

    One group moves at a time: along its gradient (SGD) or along the signs
    of it (the first step of Adam). The loss is a random linear function.
    """
    torch.manual_seed(0)
    blocks = stack(placement, layers, d=32)
    x, target = torch.randn(2, 2, 8, 32, dtype=torch.float64)
    x = F.layer_norm(x, (32,))
    y = blocks(x)
    (y * target).sum(dim=-1).mean().backward()
    sizes = []
    with torch.no_grad():
        for names, signs in GROUPS.values():
            moves = []
            for name, parameter in blocks.named_parameters():
                if any(part in name for part in names):
                    slope = parameter.grad.sign() if signs else parameter.grad
                    moves.append((parameter, STEP * slope))
            for parameter, move in moves:
                parameter -= move
            change = blocks(x) - y
            for parameter, move in moves:
                parameter += move
            sizes.append(change.square().mean().sqrt().item() / STEP)
    return sizes


depths = (4, 16, 64)
rows = {
    placement: [changes(placement, layers) for layers in depths]
    for placement in ("Post-Norm", "Pre-Norm", "DeepNorm")
}
print("layers          " + "".join(f"{n:8}" for n in depths))
for i, group in enumerate(GROUPS):
    print(group)
    for placement, by_depth in rows.items():
        print(f"    {placement:<12}", end="")
        for size in (sizes[i] for sizes in by_depth):
            size = float(f"{size:.2g}")  # two digits
            print(f"{size:8.2f}" if size < 10 else f"{size:8.0f}", end="")
        print()
