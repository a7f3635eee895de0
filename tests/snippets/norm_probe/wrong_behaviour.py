"""Ways to read off a norm that go wrong in the wild. Same signature as recognise."""

import torch

from snippets.norm_probe import behaviour
from snippets.norm_probe.behaviour import recognise


def other_rows_not_watched(norm, x):
    """Scale and shift invariance only: BatchNorm passes."""
    found = recognise(norm, x)
    if found:
        return found
    with torch.no_grad():
        x = 8 * torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
        same = behaviour.close(norm(2 * x), norm(x)) and norm(x).shape == x.shape
    d = x.shape[-1]
    made = behaviour.Behaviour("LayerNorm", d, "none", False, 1e-5, "", "", True)
    return (
        made if same and not behaviour.close(norm(x), 0 * x + norm(x)[0, 0]) else None
    )
