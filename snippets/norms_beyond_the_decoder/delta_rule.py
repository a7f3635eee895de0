import torch
from torch import Tensor


def l2_norm(x: Tensor, eps: float = 1e-6) -> Tensor:
    """x over its length, eps inside the root and not divided by d."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    length = (wide.square().sum(dim=-1, keepdim=True) + eps).sqrt()
    return (wide / length).to(x.dtype)


def delta_rule(
    q: Tensor, k: Tensor, v: Tensor, beta: Tensor, decay: Tensor
) -> tuple[Tensor, Tensor]:
    """S ← decay S;  S ← S + beta k (v - Sᵀk)ᵀ;  output Sᵀq, step by step.

    q, k: (..., time, d_k); v: (..., time, d_v); beta: (..., time);
    decay: (..., time, 1), one number a step, or (..., time, d_k).
    Returns the outputs (..., time, d_v) and the state (..., d_k, d_v).
    """
    state = torch.zeros(*k.shape[:-2], k.shape[-1], v.shape[-1]).to(v)
    outputs = []
    for t in range(k.shape[-2]):
        key, query = k[..., t, :, None], q[..., t, :, None]
        state = decay[..., t, :, None] * state
        error = v[..., t, :] - (state.mT @ key).squeeze(-1)
        step = beta[..., t, None, None] * error[..., None, :]
        state = state + key * step
        outputs.append((state.mT @ query).squeeze(-1))
    return torch.stack(outputs, dim=-2), state
