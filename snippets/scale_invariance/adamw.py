import torch
from torch.nn import functional as F


def angle(rate: float, decay: float, beta: float) -> float:
    """RMS turn of a scale-invariant weight by AdamW in balance, in radians."""
    torch.manual_seed(0)
    weight = torch.randn(256, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.AdamW(
        [weight], lr=rate, betas=(beta, 0.999), weight_decay=decay
    )
    steps, squares = round(8 / (rate * decay)), []  # eight of its time scales
    for step in range(steps):
        noise = torch.randn(256, dtype=torch.float64)
        loss = F.normalize(weight, dim=0) @ noise  # only the direction counts
        optimizer.zero_grad()
        loss.backward()
        before = weight.detach().clone()
        optimizer.step()
        if step > steps // 2:
            cosine = F.cosine_similarity(before, weight.detach(), dim=0)
            squares.append(cosine.clamp(max=1).arccos().square())
    return torch.stack(squares).mean().sqrt().item()


print("  rate  decay  beta_1  angle  predicted")
for rate, decay, beta in (
    (0.02, 0.3, 0.9),
    (0.06, 0.1, 0.9),
    (0.02, 0.3, 0.0),
):
    predicted = (2 * rate * decay * (1 - beta) / (1 + beta)) ** 0.5
    found = angle(rate, decay, beta)
    print(f"{rate:6} {decay:6} {beta:7} {found:7.4f} {predicted:9.4f}")
