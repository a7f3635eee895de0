# --8<-- [start:merge]
import torch
from torch import Tensor

from snippets.batch_norm_vs_layer_norm.norms import BatchNorm


def merge(
    counts: Tensor, means: Tensor, variances: Tensor
) -> tuple[Tensor, Tensor]:
    """Mean and biased variance of all tokens from those of the parts.

    counts is (workers,), means and variances are (workers, d). A part
    without tokens has count 0 and finite statistics.
    """
    share = (counts / counts.sum())[:, None]
    mean = (share * means).sum(0)
    var = (share * (variances + (means - mean).square())).sum(0)  # (1)!
    return mean, var


# --8<-- [end:merge]


# --8<-- [start:compare]
torch.manual_seed(0)
d = 6
shifts = torch.tensor([0.0, 1.0, 4.0], dtype=torch.float64)
workers = [
    shift + torch.randn(n, d, dtype=torch.float64)
    for n, shift in zip((10, 30, 20), shifts, strict=True)
]
everything = torch.cat(workers)
exact_var, exact_mean = torch.var_mean(everything, 0, correction=0)

pairs = [torch.var_mean(tokens, 0, correction=0) for tokens in workers]
variances, means = map(torch.stack, zip(*pairs, strict=True))
counts = torch.tensor([float(len(tokens)) for tokens in workers]).double()
mean, var = merge(counts, means, variances)
print("merged mean is exact:    ", torch.allclose(mean, exact_mean))
print("merged variance is exact:", torch.allclose(var, exact_var))
print(f"variance of feature 0: {exact_var[0]:.2f}")
print(f"  average of the workers': {variances.mean(0)[0]:.2f}")

sent = torch.cat([means[0], variances[0], counts[:1]])  # one worker's share
print(f"forward: {sent.numel()} numbers per worker, 2 * {d} + 1")

grads = [torch.randn_like(tokens) for tokens in workers]
norm = BatchNorm(d).double()
r = torch.rsqrt(var + norm.eps)
sums = [
    torch.cat([g.sum(0), (g * (tokens - mean) * r).sum(0)])
    for g, tokens in zip(grads, workers, strict=True)
]
print(f"backward: {sums[0].numel()} numbers per worker, 2 * {d}")
sum_g, sum_gn = (torch.stack(sums).sum(0) / counts.sum()).split(d)
grad_x = [
    r * (g - sum_g - (tokens - mean) * r * sum_gn)
    for g, tokens in zip(grads, workers, strict=True)
]
everything.requires_grad_()
(alone,) = torch.autograd.grad(norm(everything), everything, torch.cat(grads))
print("gradients are exact:", torch.allclose(torch.cat(grad_x), alone))
# --8<-- [end:compare]
