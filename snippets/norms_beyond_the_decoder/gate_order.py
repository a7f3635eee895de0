import torch

from snippets.norms_beyond_the_decoder.gated import gated_rms_norm

generator = torch.Generator().manual_seed(0)
x, gate = torch.randn(2, 64, generator=generator, dtype=torch.float64)
closed = torch.full_like(gate, -6.0)  # SiLU(-6) is about -0.015
loud = x.clone()
loud[0] = 100.0  # one outlier, in the first of four groups


def size(y: torch.Tensor) -> float:
    return y.square().mean().sqrt().item()


print("RMS of the output           gate, then norm   norm, then gate")
for name, inputs in {
    "a mixed gate": (x, gate),
    "x ten times as large": (10 * x, gate),
    "gate closed everywhere": (x, closed),
    "gate closed in one half": (x, torch.cat([closed[:32], gate[32:]])),
}.items():
    first, last = (
        size(gated_rms_norm(*inputs, norm_before_gate=order))
        for order in (False, True)
    )
    print(f"{name:<26}{first:17.3f}{last:18.3f}")

print("\nRMS of the last 32 features, one outlier among the first 16")
for groups in (1, 4):
    y = gated_rms_norm(loud, gate, groups=groups)
    print(f"{groups} group(s){size(y[32:]):10.3f}")
