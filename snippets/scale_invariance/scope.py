import torch

from snippets.scale_invariance.linear import scale_invariant_linear
from snippets.why_normalize.standardize import standardize

torch.manual_seed(0)
stream, hidden = torch.randn(2, 32, 16, dtype=torch.float64)
weight = torch.randn(16, 16, dtype=torch.float64)
one_row = weight.clone()
one_row[0] *= 10  # one output feature


def show(what: str, a: torch.Tensor, b: torch.Tensor) -> None:
    """Say whether a and b are the same to 1e-12."""
    same = bool((a - b).abs().max() < 1e-12)
    print(f"{what:<35}{'same' if same else 'different'}")


y = scale_invariant_linear(hidden, weight)
show("norm(W h), 10 W", scale_invariant_linear(hidden, 10 * weight), y)
show("norm(W h), -W", scale_invariant_linear(hidden, -weight), y)
show("norm(W h), one row times 10", scale_invariant_linear(hidden, one_row), y)

over_batch = standardize(hidden @ weight.mT, dim=0)
scaled = standardize(hidden @ one_row.mT, dim=0)
show("BatchNorm of W h, one row times 10", scaled, over_batch)

branch = hidden @ weight.mT
y = standardize(stream + branch)
show("norm(stream + W h), 10 W", standardize(stream + 10 * branch), y)
scaled = standardize(10 * stream + 10 * branch)
show("norm(stream + W h), both times 10", scaled, y)
