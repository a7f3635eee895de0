import torch

from snippets.rms_norm.reference import rms_norm

x = torch.tensor([3.0, -1.0, 4.0, -2.0], dtype=torch.float64)
y = rms_norm(x)
gain = torch.tensor([2.0, 0.5, 1.0, 0.1], dtype=torch.float64)


def show(claim: str, a: torch.Tensor, b: torch.Tensor) -> None:
    """Print the largest absolute difference between a and b."""
    print(f"{claim:<40} {(a - b).abs().max().item():8.1e}")


show("x and 8 x, no eps", rms_norm(8 * x, eps=0), rms_norm(x, eps=0))
show("x and 8 x, eps 1e-6", rms_norm(8 * x), y)
show("x and x / 1e4, eps 1e-6", rms_norm(x / 1e4), y)
show("x and x + 5", rms_norm(x + 5), y)
show("x and -x, after flipping the sign back", -rms_norm(-x), y)
show("once and twice", rms_norm(y), y)
once = rms_norm(x, gain)
show("once and twice, with a gain", rms_norm(once, gain), once)

for name, out in (("without", y), ("with", once)):
    cosine = torch.cosine_similarity(out, x, dim=0).item()
    print(f"cosine of input and output {name} a gain: {cosine:.3f}")
