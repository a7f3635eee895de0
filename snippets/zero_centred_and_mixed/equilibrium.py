import torch

from snippets.rms_norm.reference import RMSNorm
from snippets.zero_centred_and_mixed.zero_centred import ZeroCentredRMSNorm


def rest(norm: torch.nn.Module, wish: float, pull: float) -> float:
    """The gain where pull / 2 * (gain - wish)² and weight decay balance."""
    (stored,) = norm.parameters()
    shift = 1.0 if isinstance(norm, ZeroCentredRMSNorm) else 0.0
    optimizer = torch.optim.SGD([stored], lr=0.5, weight_decay=0.1)
    for _ in range(300):
        optimizer.zero_grad()
        (pull / 2 * (stored + shift - wish).square()).sum().backward()
        optimizer.step()
    return (stored + shift)[0].item()


print("the loss wants   with a pull of   plain rests at   zero-centred at")
for wish, pull in ((1.0, 0.01), (1.0, 1.0), (8.0, 0.01), (8.0, 1.0)):
    plain = rest(RMSNorm(4), wish, pull)
    centred = rest(ZeroCentredRMSNorm(4), wish, pull)
    print(f"{wish:14.1f} {pull:16.2f} {plain:16.2f} {centred:17.2f}")

x = torch.tensor([3.0, 5.0, 4.0, 8.0])
mean = ZeroCentredRMSNorm(4)(x).mean()
print(f"mean of the output: {mean:.2f}, so nothing was centred")
