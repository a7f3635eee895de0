import torch

from snippets.why_normalize.deep_stack import (
    batch_normed,
    make_layers,
    normed,
    plain,
    residual,
    residual_normed,
    size,
    spread,
)

d, depth = 128, 30
default, xavier, he = (3 * d) ** -0.5, d**-0.5, (2 / d) ** 0.5
torch.manual_seed(0)
x, grad_y = torch.randn(2, 64, d, dtype=torch.float64)
x.requires_grad_()

print("                RMS at  spread   grad")
print("                10     30  / RMS in/out")
for name, layer, weight_std, bias_std in (
    ("default", plain, default, default),
    ("Xavier", plain, xavier, 0.0),
    ("He", plain, he, 0.0),
    ("N(0, 1)", plain, 1.0, 0.0),
    ("default, LN", normed, default, default),
    ("N(0, 1), LN", normed, 1.0, 0.0),
    ("default, BN", batch_normed, default, default),
    ("N(0, 1), BN", batch_normed, 1.0, 0.0),
    ("He, residual", residual, he, 0.0),
    ("  with LN", residual_normed, he, 0.0),
):
    states = [x]
    for weight, bias in make_layers(depth, d, weight_std, bias_std):
        states.append(layer(states[-1], weight, bias))
    tenth, last = states[10], states[-1]
    share = spread(last) / size(last)
    (grad_x,) = torch.autograd.grad(last, x, grad_y)
    ratio = size(grad_x) / size(grad_y)
    columns = size(tenth), size(last), share, ratio
    row = "".join(f"{column:7.0e}" for column in columns)
    print(f"{name:<13}{row}")
