import torch
from torch.nn import functional as F

from snippets.signal_propagation.similarity import mean_cosine
from snippets.signal_propagation.stacks import stack

LAYERS, TOKENS = 24, 16


def ratios(placement: str, d: int, scaled: bool, seed: int) -> list[float]:
    """Cosine of two tokens of the output; the last layer's |grad W_Q| over
    |grad W_V|; how far a step on all queries and keys moves the output, over
    one on all values: of SGD, and along the signs, as Adam's first.
    """
    blocks = stack(placement, LAYERS, d, equal_weights=False, seed=seed)
    if scaled:  # each branch over the root of their number
        with torch.no_grad():
            for block in blocks:
                block.sublayer.writer.weight *= (2 * LAYERS) ** -0.5
    torch.manual_seed(seed)
    x, target = torch.randn(2, 2, TOKENS, d, dtype=torch.float64)

    def output():
        y = x
        for block in blocks:
            y = block(y)
        return F.rms_norm(y, (d,))

    y = output()
    (y * target).sum(dim=-1).mean().backward()
    weights = [block.sublayer.reader.weight for block in blocks[0::2]]

    def moved(rows: slice, signs: bool) -> float:
        slopes = [weight.grad[rows] for weight in weights]
        if signs:
            slopes = [slope.sign() for slope in slopes]
        step = 1e-6 / torch.cat(slopes).square().mean().sqrt()
        with torch.no_grad():
            for way in (step, -step):  # there, and back
                for weight, slope in zip(weights, slopes, strict=True):
                    weight[rows] -= way * slope
                if way > 0:
                    change = output() - y
        return (change.norm() / step).item()

    asks, values = slice(0, 2 * d), slice(2 * d, None)
    grad = weights[-1].grad
    return [
        mean_cosine(y.detach()).mean().item(),
        (grad[:d].norm() / grad[values].norm()).item(),
        *(moved(asks, signs) / moved(values, signs) for signs in (False, True)),
    ]


print("24 layers          d   cosine   W_Q / W_V      SGD   signs (Adam)")
for placement in ("Post-Norm", "Pre-Norm"):
    for scaled in (False, True):
        for d in (32, 128):
            rows = [ratios(placement, d, scaled, seed) for seed in range(3)]
            cosine, gradient, sgd, signs = torch.tensor(rows).median(0).values
            name = placement + ", scaled" * scaled
            print(f"{name:<18}{d:3}{cosine:8.3f}{gradient:12.5f}", end="")
            print(f"{sgd:11.5f}{signs:10.5f}")
