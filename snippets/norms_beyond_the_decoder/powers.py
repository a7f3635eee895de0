import torch
from torch.nn import functional as F

from snippets.norms_beyond_the_decoder.state_space import normed_parameters

rank, states = 4, 8
generator = torch.Generator().manual_seed(0)
w_x = torch.randn(rank + 2 * states, 32, generator=generator).double()
w_dt = torch.randn(32, rank, generator=generator).double() / rank**0.5
x = torch.randn(32, generator=generator).double()


def first_output(x: torch.Tensor, norms: bool) -> torch.Tensor:
    """One Mamba step from an empty state: y = x softplus(W dt) (B · C)."""
    projected = w_x @ x / 32**0.5
    dt, b, c = projected.split((rank, states, states))
    if norms:
        dt, b, c = normed_parameters(projected, rank, states)
    return x * F.softplus(w_dt @ dt) * (b @ c)


print("x times    output times, no norms   with norms on dt, B and C")
bare, normed = (first_output(x, norms).norm() for norms in (False, True))
for factor in (1, 10, 100):
    a = first_output(factor * x, norms=False).norm() / bare
    b = first_output(factor * x, norms=True).norm() / normed
    print(f"{factor:7}{a:25.0f}{b:28.0f}")
