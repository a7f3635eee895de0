from torch import Tensor

from snippets.rms_norm.reference import rms_norm


def normed_parameters(
    projected: Tensor,
    rank: int,
    states: int,
    gains: tuple[Tensor | None, Tensor | None, Tensor | None] = (None,) * 3,
    eps: float = 1e-6,
) -> tuple[Tensor, Tensor, Tensor]:
    """dt (..., rank), B and C (..., states), each with an RMSNorm of its own.

    projected is (..., rank + 2 * states). Jamba learns the gains,
    Falcon-Mamba has none. dt is normed before its second projection.
    """
    parts = projected.split((rank, states, states), dim=-1)
    dt, b, c = (
        rms_norm(part, gain, eps)
        for part, gain in zip(parts, gains, strict=True)
    )
    return dt, b, c
