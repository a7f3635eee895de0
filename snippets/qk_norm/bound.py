# --8<-- [start:logit_bound]
import torch
from torch import Tensor

from snippets.qk_norm.rope import rotate
from snippets.rms_norm.reference import rms_norm


def logit_bound(q_gain: Tensor, k_gain: Tensor, rotary: bool) -> Tensor:
    """No |logit| is above it: RMSNorm on each head, scale 1 / sqrt(width).

    Both gains are (width,), the result has no dimension. With rotary, the
    norms come before RoPE, which mixes the features i and i + width / 2:
    a pair counts with its largest gains.
    """
    width = q_gain.shape[-1]
    if rotary:
        q_gain, k_gain = (
            gain.abs().unflatten(-1, (2, -1)).amax(dim=-2)  # of each pair
            for gain in (q_gain, k_gain)
        )
    return width**0.5 * (q_gain * k_gain).abs().amax(dim=-1)


# --8<-- [end:logit_bound]


# --8<-- [start:search]
def worst_pair(q_gain: Tensor, k_gain: Tensor, time: int) -> Tensor:
    """The largest logit that a query 0 to time - 1 positions later can have.

    width ** -0.5 * (R_t G_q n) . (G_k m) is bilinear in the unit-RMS vectors
    n and m: its maximum is found from the singular vectors of G_q R_tᵀ G_k.
    """
    width = q_gain.shape[-1]
    units = torch.eye(width).double().unsqueeze(1).expand(-1, time, -1)
    turned = rotate(units).transpose(0, 1)  # (time, feature, its image)
    form = q_gain[:, None] * turned * k_gain
    left, _, right = torch.linalg.svd(form)
    n, m = left[:, :, 0], right[:, 0]  # (time, width); rms_norm sets lengths
    q, k = rms_norm(n, q_gain, eps=0), rms_norm(m, k_gain, eps=0)
    rotated = torch.einsum("ti,tij->tj", q, turned)
    return (rotated * k).sum(dim=-1).amax() / width**0.5


ones = torch.ones(64).double()
loud = ones.clone()
loud[0] = 3  # the same feature in queries and keys
q_loud, k_loud = ones.clone(), ones.clone()
q_loud[0], k_loud[32] = 3, 3  # the two features of one RoPE pair
print("gains             no RoPE: bound  found    RoPE: bound  found")
for name, gains in {
    "all one": (ones, ones),
    "feature 0: 3, 3": (loud, loud),
    "0: 3, 1; 32: 1, 3": (q_loud, k_loud),
}.items():
    cells = []
    for rotary, time in ((False, 1), (True, 400)):
        cells += [logit_bound(*gains, rotary), worst_pair(*gains, time)]
    print(f"{name:18}" + "{:14.1f} {:6.1f} {:13.1f} {:6.1f}".format(*cells))
# --8<-- [end:search]
