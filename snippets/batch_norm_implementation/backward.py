# --8<-- [start:batch_norm_backward]
import torch
from torch import Tensor

from snippets.batch_norm_vs_layer_norm.norms import BatchNorm


def batch_norm_backward(
    grad_y: Tensor, x: Tensor, norm: BatchNorm
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of norm(x) with respect to x, norm.gain and norm.bias.

    grad_y and x are (n, d). In train mode mean and variance are functions
    of x, in eval mode they are constants. norm is not changed.
    """
    if norm.training:
        var, mean = torch.var_mean(x, 0, correction=0)
    else:
        mean, var = norm.running_mean, norm.running_var
    r = torch.rsqrt(var + norm.eps)  # (d,)
    n = (x - mean) * r
    u = grad_y * norm.gain
    if norm.training:
        u = u - u.mean(0) - n * (u * n).mean(0)  # sums over all tokens
    return r * u, (grad_y * n).sum(0), grad_y.sum(0)


# --8<-- [end:batch_norm_backward]


# --8<-- [start:check]
torch.manual_seed(0)
tokens = torch.randn(7, 3, dtype=torch.float64, requires_grad=True)
grad_y = torch.randn_like(tokens)
norm = BatchNorm(3).double()
norm.gain.data.uniform_(0.5, 1.5)
norm.running_var.fill_(4.0)

for mode in ("train", "eval"):
    norm.train(mode == "train")
    ours = batch_norm_backward(grad_y, tokens, norm)
    y = norm(tokens)
    inputs = (tokens, norm.gain, norm.bias)
    exact = torch.autograd.grad(y, inputs, grad_y)
    pairs = zip(ours, exact, strict=True)
    same = all(torch.allclose(a, b, atol=1e-12) for a, b in pairs)
    print(f"{mode}: equal to autograd: {same}")
    total = exact[0].sum(0).abs().max().item()
    print(f"  sum of grad_x over the tokens: {total:.2f}")

    alone = torch.zeros_like(tokens)
    alone[0] = 1  # a loss that reads token 0 only
    reached = batch_norm_backward(alone, tokens, norm)[0].abs().sum(1) > 0
    print(f"  tokens that get a gradient: {int(reached.sum())} of 7")
# --8<-- [end:check]
